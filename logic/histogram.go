package logic

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram is a distribution of durations, in buckets that are an eighth of a power of two
// wide: a quantile is at most 12.5% too high. The zero value is empty; copies are independent.
type Histogram struct {
	Count   uint64
	Sum     time.Duration
	Max     time.Duration
	buckets [bucketCount]uint64
}

const (
	bucketBits  = 3                                            // buckets to a power of two, as a power of two
	maxExponent = 42                                           // 2^42 ns is over an hour; longer ones share the last bucket
	bucketCount = (maxExponent - bucketBits + 2) << bucketBits // see bucketOf
)

// Quantile is the duration that the share p of all observations did not exceed; 0 when
// there are none. p is cut to 0..1.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (h *Histogram) Quantile(p float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank := uint64(min(max(p, 0), 1)*float64(h.Count) + 0.5)
	rank = min(max(rank, 1), h.Count)
	var seen uint64
	for i, n := range h.buckets {
		if seen += n; seen >= rank {
			return min(bucketEnd(i), h.Max)
		}
	}
	return h.Max
}

// Mean is the average; 0 when there are no observations.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Below is how many observations were shorter than 2^exponent nanoseconds: exact for exponents from 3 to 42.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (h *Histogram) Below(exponent int) (n uint64) {
	for _, k := range h.buckets[:bucketOf(1<<min(max(exponent, 0), maxExponent))] {
		n += k
	}
	return n
}

// Since is the distribution of what was observed after an earlier copy of the same
// histogram: for a status line that speaks of the last second. Max stays that of all time.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (h *Histogram) Since(earlier *Histogram) Histogram {
	d := *h
	d.Count -= earlier.Count
	d.Sum -= earlier.Sum
	for i := range d.buckets {
		d.buckets[i] -= earlier.buckets[i]
	}
	return d
}

// bucketOf numbers the bucket of ns: values below 8 have one each, then every power of two
// has eight.
func bucketOf(ns uint64) int {
	if ns < 1<<bucketBits {
		return int(ns)
	}
	e := bits.Len64(ns) - 1
	if e > maxExponent {
		return bucketCount - 1
	}
	return (e-bucketBits+1)<<bucketBits + int(ns>>(e-bucketBits))&(1<<bucketBits-1)
}

// bucketEnd is the largest duration of bucket i.
func bucketEnd(i int) time.Duration {
	if i < 1<<bucketBits {
		return time.Duration(i)
	}
	e, sub := i>>bucketBits+bucketBits-1, uint64(i&(1<<bucketBits-1))
	return time.Duration((1<<bucketBits+sub+1)<<(e-bucketBits) - 1)
}

// meter is a Histogram that grows: any number of readers, and writers that seldom meet.
type meter struct {
	sum, max atomic.Int64
	buckets  [bucketCount]atomic.Uint64
}

// add records a duration. Writers take turns, as a rule: Logic, or whoever holds the window,
// or has just handed it on.
func (m *meter) add(ns int64) {
	ns = max(ns, 0) // a clock that was moved is no reason to fail
	m.buckets[bucketOf(uint64(ns))].Add(1)
	m.sum.Add(ns)
	for most := m.max.Load(); ns > most; most = m.max.Load() {
		if m.max.CompareAndSwap(most, ns) {
			return
		}
	}
}

// read copies the meter. A reading beside a writer may miss its last observation in one of
// the fields; Count always is the sum of the buckets.
func (m *meter) read() (h Histogram) {
	for i := range m.buckets {
		h.buckets[i] = m.buckets[i].Load()
		h.Count += h.buckets[i]
	}
	h.Sum = time.Duration(m.sum.Load())
	h.Max = time.Duration(m.max.Load())
	return h
}
