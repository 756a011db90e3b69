package logic_test

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// BenchmarkStep is a frame without anything to do, and one with eight systems that do nothing.
func BenchmarkStep(b *testing.B) {
	for _, systems := range []int{0, 8} {
		b.Run(fmt.Sprintf("systems=%d", systems), func(b *testing.B) {
			w := newWorld(b)
			for i := range systems {
				_, err := w.e.AddSystem(logic.Phase(i%4), "idle", func(*logic.Frame) {})
				require.NoError(b, err)
			}
			_ = w.e.Step()
			b.ReportAllocs()
			for b.Loop() {
				_ = w.e.Step()
			}
		})
	}
}

// BenchmarkIdle is the share of one core that an engine takes at 60 frames a second with
// nothing to do: run it with -benchtime=5x.
func BenchmarkIdle(b *testing.B) {
	w := newWorld(b)
	w.run()
	var cpu, wall time.Duration
	for b.Loop() {
		before, start := cpuTime(b), time.Now()
		<-time.After(time.Second)
		cpu, wall = cpu+cpuTime(b)-before, wall+time.Since(start)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*float64(cpu)/float64(wall), "%core")
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDefer is an operation's whole way, from the producer through the window, with
// producers at work all the time: each with a lane of its own, all in the engine's lane, and as
// the yardstick all in one channel that a system empties.
func BenchmarkDefer(b *testing.B) {
	for _, producers := range []int{1, 2, 8, 64} {
		for _, way := range []string{"lanes", "shared", "channel"} {
			b.Run(fmt.Sprintf("%s/producers=%d", way, producers), func(b *testing.B) {
				const queue = 1 << 16
				w := newWorld(b, fast, func(c *logic.Config) { c.QueueSize = queue })
				channel := make(chan func(*registry.Window) error, queue)
				if way == "channel" {
					_, err := w.e.AddSystem(logic.PrePhysics, "empties", func(*logic.Frame) {
						for range len(channel) {
							_ = logic.Callback(w.e, <-channel)
						}
					})
					require.NoError(b, err)
				}
				w.run()
				var lanes []*logic.Producer
				for range producers {
					lanes = append(lanes, w.e.Producer())
				}
				b.ReportAllocs()
				for b.Loop() {
					produce(w, lanes, way, channel)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N*deferred), "ns/operation")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// deferred is how many operations one round of produce is.
const deferred = 1 << 15

//go:noinline
func produce(w *world, lanes []*logic.Producer, way string, channel chan func(*registry.Window) error) {
	var ran, all sync.WaitGroup
	ran.Add(deferred)
	fn := func(*registry.Window) error { ran.Done(); return nil }
	for _, lane := range lanes {
		all.Go(func() {
			add := w.e.Defer
			switch way {
			case "lanes":
				add = lane.Defer
			case "channel":
				add = func(fn func(*registry.Window) error) error { channel <- fn; return nil }
			}
			for range deferred / len(lanes) {
				_ = add(fn)
			}
		})
	}
	all.Wait()
	ran.Wait()
}

// BenchmarkLanes is the queue alone, filled by producers while Logic empties it: a lane for
// each producer, one lane for all, one channel for all, and one lock-free queue for all.
func BenchmarkLanes(b *testing.B) {
	for _, producers := range []int{1, 2, 8, 64} {
		for _, way := range []string{"lanes", "shared", "channel", "mpmc"} {
			b.Run(fmt.Sprintf("%s/producers=%d", way, producers), func(b *testing.B) {
				lanes, channel := logic.NewLanes(producers), make(chan func(*registry.Window) error, 1<<16)
				queue := xsync.NewMPMCQueueOf[func(*registry.Window) error](1 << 16)
				for b.Loop() {
					fillAndEmpty(lanes, channel, queue, producers, way)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N*deferred), "ns/operation")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

//go:noinline
func fillAndEmpty(lanes *logic.Lanes, channel chan func(*registry.Window) error, queue *xsync.MPMCQueueOf[func(*registry.Window) error], producers int, way string) {
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			lane := p
			if way == "shared" {
				lane = 0
			}
			for range deferred / producers {
				switch way {
				case "channel":
					channel <- noChange
				case "mpmc":
					for !queue.TryEnqueue(noChange) {
						runtime.Gosched()
					}
				default:
					lanes.Add(lane, noChange)
				}
			}
		})
	}
	for n := 0; n < deferred/producers*producers; {
		switch way {
		case "channel":
			for range len(channel) {
				if fn := <-channel; fn != nil {
					n++
				}
			}
		case "mpmc":
			for fn, ok := queue.TryDequeue(); ok && fn != nil; fn, ok = queue.TryDequeue() {
				n++
			}
		default:
			n += lanes.Collect()
		}
		yield()
	}
	all.Wait()
}
