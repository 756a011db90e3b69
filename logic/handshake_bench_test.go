package logic_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// handshakes is what one measurement found.
type handshakes struct {
	stall float64 // ns Logic stood still, a caller
	trip  float64 // ns from a caller's call to its return
}

// slice is how long one measurement takes.
const slice = 20 * time.Millisecond

// callers runs n goroutines that go through the window until the slice is over, and gives the
// mean round trip. pass is called once in each to make what it calls then.
func callers(n int, pass func() func()) float64 {
	var (
		wg    sync.WaitGroup
		calls atomic.Int64
		over  atomic.Bool
		start = time.Now()
	)
	for range n {
		wg.Go(func() {
			mine, through := 0, pass()
			for !over.Load() {
				through()
				mine++
			}
			calls.Add(int64(mine))
		})
	}
	<-time.After(slice)
	over.Store(true)
	wg.Wait()
	return float64(time.Since(start)) * float64(n) / float64(calls.Load())
}

// channels is the yardstick: two unbuffered channels a caller, by which Logic grants and
// takes back, and a queue of who waits.
type channels struct {
	queue  chan *caller
	served int
	stall  time.Duration
}

type caller struct{ grant, done chan struct{} }

func newChannels() *channels { return &channels{queue: make(chan *caller, 1024)} }

func newCaller() *caller { return &caller{make(chan struct{}), make(chan struct{})} }

func (c *channels) pass(me *caller, fn func()) {
	c.queue <- me
	<-me.grant
	fn()
	me.done <- struct{}{}
}

// serve lets everybody through who waits.
//
//go:noinline
func (c *channels) serve() int {
	n := len(c.queue)
	if n == 0 {
		return 0
	}
	start := time.Now()
	for range n {
		next := <-c.queue
		next.grant <- struct{}{}
		<-next.done
	}
	c.stall += time.Since(start)
	c.served += n
	return n
}

// bareChannels and bareGate measure the mechanisms alone: Logic does nothing else.
//
//go:noinline
func bareChannels(n int, work time.Duration) handshakes {
	c := newChannels()
	var over atomic.Bool
	var logicDone sync.WaitGroup
	logicDone.Go(func() {
		for !over.Load() {
			burn(work)
			if c.serve() == 0 || work > 0 {
				runtime.Gosched()
			}
		}
	})
	trip := callers(n, func() func() {
		me := newCaller()
		return func() { c.pass(me, nothing) }
	})
	over.Store(true)
	logicDone.Wait()
	return handshakes{float64(c.stall) / float64(c.served), trip}
}

//go:noinline
func bareGate(n int, work time.Duration) handshakes {
	g := logic.NewGate()
	var (
		over      atomic.Bool
		logicDone sync.WaitGroup
		served    int
		stall     time.Duration
	)
	logicDone.Go(func() {
		for !over.Load() {
			burn(work)
			k, d, yielded := g.Serve()
			served, stall = served+k, stall+d
			if !yielded {
				runtime.Gosched()
			}
		}
	})
	trip := callers(n, func() func() { return func() { _ = g.Pass(nothing) } })
	over.Store(true)
	logicDone.Wait()
	return handshakes{float64(stall) / float64(served), trip}
}

func nothing() {}

func noChange(*registry.Window) error { return nil }

// burn keeps Logic busy, as systems would.
func burn(d time.Duration) {
	if d == 0 {
		return
	}
	for start := time.Now(); time.Since(start) < d; {
	}
}

// freeRunning is an engine whose frames follow one another without a pause, each with work.
func freeRunning(b *testing.B, work time.Duration) *world {
	w := newWorld(b, func(c *logic.Config) { c.Rate = int(time.Second) })
	if work > 0 {
		_, err := w.e.AddSystem(logic.Physics, "work", func(*logic.Frame) { burn(work) })
		require.NoError(b, err)
	}
	w.run()
	return w
}

//go:noinline
func engineSpawn(w *world, n int) handshakes {
	before := w.e.Stats()
	trip := callers(n, func() func() {
		return func() { _ = w.e.Spawn(context.Background(), noChange) }
	})
	after := w.e.Stats()
	stall := after.WindowStall.Since(&before.WindowStall)
	wait := after.HandshakeWait.Since(&before.HandshakeWait)
	_ = wait
	return handshakes{float64(stall.Sum) / (float64(slice) * float64(n) / trip), trip}
}

// engineChannels has a system of the same engine serve the yardstick's channels.
//
//go:noinline
func engineChannels(b *testing.B, w *world, n int) handshakes {
	c := newChannels()
	s, err := w.e.AddSystem(logic.PrePhysics, "channels", func(*logic.Frame) { c.serve() })
	require.NoError(b, err)
	empty := func() { _ = logic.Callback(w.e, noChange) } // what a Spawn runs, too
	trip := callers(n, func() func() {
		me := newCaller()
		return func() { c.pass(me, empty) }
	})
	require.NoError(b, s.Remove())
	for range 2 { // after the second window it has not run for a frame
		require.NoError(b, w.e.Spawn(context.Background(), func(*registry.Window) error { return nil }))
	}
	return handshakes{float64(c.stall) / float64(c.served), trip}
}

// compare runs candidate and yardstick by turns and reports the medians of the ratios.
func compare(b *testing.B, candidate, yardstick func() handshakes) {
	var stall, trip, stalls, trips []float64
	for b.Loop() {
		y, c := yardstick(), candidate()
		stall = append(stall, c.stall/y.stall)
		trip = append(trip, c.trip/y.trip)
		stalls, trips = append(stalls, c.stall), append(trips, c.trip)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(stall), "stall-ratio")
	b.ReportMetric(median(trip), "trip-ratio")
	b.ReportMetric(median(stalls), "stall-ns")
	b.ReportMetric(median(trips), "trip-ns")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkHandshake compares the airlock with two unbuffered channels a caller, in pairs:
// run it with -benchtime=15x.
func BenchmarkHandshake(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		for _, work := range []time.Duration{0, 50 * time.Microsecond} {
			b.Run(fmt.Sprintf("door/callers=%d/frame=%v", n, work), func(b *testing.B) {
				compare(b, func() handshakes { return bareGate(n, work) }, func() handshakes { return bareChannels(n, work) })
			})
			b.Run(fmt.Sprintf("engine/callers=%d/frame=%v", n, work), func(b *testing.B) {
				w := freeRunning(b, work)
				compare(b, func() handshakes { return engineSpawn(w, n) }, func() handshakes { return engineChannels(b, w, n) })
			})
		}
	}
}
