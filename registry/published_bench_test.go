package registry_test

import (
	"sync/atomic"
	"testing"
	"time"
)

// acquires is how many pairs are timed together.
const acquires = 1000

//go:noinline
func acquireAndRelease(s *stage) {
	for range acquires {
		snap, err := s.r.Acquire()
		if err != nil {
			panic(err)
		}
		snap.Release()
	}
}

// twoAdds is the yardstick: two atomic additions that nobody contends.
//
//go:noinline
func twoAdds(a, b *atomic.Uint64) {
	for range acquires {
		a.Add(1)
		b.Add(1)
	}
}

// BenchmarkAcquire takes and gives back the newest frame, in turn with two atomic additions. ratio is the
// median of the ratios of the pairs.
func BenchmarkAcquire(b *testing.B) {
	s := newStage(b, 8)
	s.spawnActors(1000)
	s.frame(nil, nil)
	var words [2]struct {
		n atomic.Uint64
		_ [56]byte
	}
	b.ReportAllocs()
	var ratios, times, adds []float64
	for b.Loop() {
		begin := time.Now()
		acquireAndRelease(s)
		took := time.Since(begin)
		begin = time.Now()
		twoAdds(&words[0].n, &words[1].n)
		plain := time.Since(begin)
		ratios = append(ratios, float64(took)/float64(plain))
		times, adds = append(times, float64(took)/acquires), append(adds, float64(plain)/acquires)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(times), "ns/acquire")
	b.ReportMetric(median(adds), "ns/adds")
}
