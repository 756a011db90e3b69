package logic_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// task is a registry.Task from a function.
type task func(f *registry.Frame, worker, part int)

func (t task) Part(f *registry.Frame, worker, part int) { t(f, worker, part) }

func workers(n int) func(*logic.Config) { return func(c *logic.Config) { c.Workers = n } }

// system has fn run in every frame.
func (w *world) system(name string, fn func(*registry.Frame)) {
	w.t.Helper()
	_, err := w.e.AddSystem(logic.Physics, name, func(f *logic.Frame) { fn(f.Frame) })
	require.NoError(w.t, err)
}

// fork has the engine's workers do parts, whatever their size.
func fork(f *registry.Frame, parts int, fn task) { registry.Fork(f, fn, parts, true) }

func TestConfigBoundsTheWorkers(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = logic.New(r, logic.Config{Workers: 1 << 20})
	require.ErrorContains(t, err, "logic: Config.Workers")
	for _, n := range []int{0, 1, 5} {
		w := newWorld(t, workers(n))
		w.system("asks", func(f *registry.Frame) {
			want := n
			if n == 0 {
				want = runtime.GOMAXPROCS(0)
			}
			assert.Equal(t, want, registry.Workers(f))
			fork(f, 1, func(f *registry.Frame, _, _ int) { assert.Equal(t, 1, registry.Workers(f)) })
		})
		w.step()
		w.update(func(win *registry.Window) error {
			assert.Equal(t, 1, registry.Workers(win))
			return nil
		})
	}
}

// chronicle is a registry that says what happens in it: which handles come out, what observers and
// subscribers hear, what every entity is after a frame.
type chronicle struct {
	*world
	known []handles.Local // in the order in which they were handed out
	lines []string        // one a frame
	heard []string        // since the last line
}

func newChronicle(t *testing.T, n int) *chronicle {
	w := newWorldIn(t, registry.Config{MaxEntities: 2000, Deterministic: true}, workers(n))
	c := &chronicle{world: w}
	for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
		_, err := w.r.Observe(kind, func(_ *registry.Frame, es []registry.Event) { c.heard = append(c.heard, fmt.Sprint(es)) })
		require.NoError(t, err)
	}
	_, err := w.r.OnMove(func(ms []registry.Move) { c.heard = append(c.heard, fmt.Sprint(ms)) })
	require.NoError(t, err)
	w.update(func(win *registry.Window) error {
		c.known, err = w.class.SpawnBatch(win, 500, nil)
		for i, h := range c.known {
			if i%7 == 3 && err == nil {
				err = registry.SetParent(win, h, c.known[i-3])
			}
		}
		return err
	})
	return c
}

// write closes a frame.
func (c *chronicle) write() {
	sum := fnv.New64a()
	live := c.known[:0]
	c.update(func(w *registry.Window) error {
		for _, h := range c.known {
			v, err := registry.Peek[value](w, h)
			if err != nil {
				continue
			}
			live = append(live, h)
			at, _ := registry.CacheIndex(w, h)
			fmt.Fprintln(sum, h, v, at, registry.Active(w, h), registry.Has[tag](w, h))
		}
		return c.r.Verify()
	})
	c.known = live
	stats := fmt.Sprintf("%+v", c.r.Stats())
	c.lines = append(c.lines, fmt.Sprintf("%d live, state %x: %v, %s, failures %v", len(live), sum.Sum64(), c.heard, stats, c.told()))
	c.heard = nil
}

// act is a part that does everything a part may do, as its random numbers say.
func (c *chronicle) act(f *registry.Frame, part, parts int) (born []handles.Local) {
	rnd := f.Rand()
	mine := func() handles.Local { // an entity of this part
		n := len(c.known) / parts
		return c.known[part*n+rnd.IntN(n)]
	}
	anyone := func() handles.Local { return c.known[rnd.IntN(len(c.known))] }
	for range rnd.IntN(12) {
		switch rnd.IntN(9) {
		case 0, 1, 2:
			if h, err := c.class.SpawnLater(f, thing{value{rnd.IntN(1000)}}); err == nil {
				born = append(born, h)
				if rnd.IntN(8) == 0 {
					_ = f.Destroy(h) // before it is born
				}
			}
		case 3:
			_ = f.Destroy(anyone()) // others may do that, too
		case 4:
			_ = f.Destroy(c.known[int(f.FrameNumber())%len(c.known)]) // all want the same
		case 5:
			_ = registry.SetActive(f, mine(), rnd.IntN(2) == 0)
		case 6:
			_ = registry.AddLater(f, anyone(), tag{rnd.IntN(1000)})
		case 7:
			_ = registry.RemoveLater[tag](f, anyone())
		case 8:
			h, n := anyone(), rnd.IntN(1000)
			f.Defer(func(w *registry.Window) error { return registry.Set(w, h, value{n}) })
		}
		if rnd.IntN(4) == 0 {
			runtime.Gosched()
		}
	}
	return born
}

func (c *chronicle) frames(n int) []string {
	const parts = 24
	round := func(f *registry.Frame) {
		born := make([][]handles.Local, parts)
		fork(f, parts, func(f *registry.Frame, _, part int) { born[part] = c.act(f, part, parts) })
		for _, hs := range born {
			c.known = append(c.known, hs...)
		}
	}
	c.system("first", round)
	c.system("second", func(f *registry.Frame) {
		round(f)
		round(f)
	})
	for range n {
		c.step()
		c.write()
	}
	return c.lines
}

func TestTheNumberOfWorkersDoesNotShow(t *testing.T) {
	frames := 200
	if raceEnabled {
		frames = 12
	}
	want := newChronicle(t, 1).frames(frames)
	for _, n := range []int{2, 3, 16} {
		got := newChronicle(t, n).frames(frames)
		for i := range want {
			require.Equal(t, want[i], got[i], "frame %d with %d workers", i+1, n)
		}
	}
}

func TestAFailingPartEndsTheSystemOnly(t *testing.T) {
	const parts = 9
	for _, exit := range []bool{false, true} {
		for _, n := range []int{1, 2, 16} {
			for _, bad := range [][]int{{0}, {4}, {8}, {8, 4, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 8}} {
				for _, nested := range []bool{false, true} {
					t.Run(fmt.Sprintf("exit=%v/workers=%d/parts=%v/nested=%v", exit, n, bad, nested), func(t *testing.T) {
						w := newWorld(t, workers(n))
						fails := make(map[int]bool)
						for _, part := range bad {
							fails[part] = true
						}
						var done atomic.Int64
						armed, after := true, 0
						body := func(f *registry.Frame, part int) {
							defer done.Add(1)
							_, err := w.class.SpawnLater(f, thing{value{part}})
							assert.NoError(t, err)
							if armed && fails[part] {
								if exit {
									runtime.Goexit()
								}
								panic(fmt.Sprint("part ", part))
							}
						}
						w.system("forks", func(f *registry.Frame) {
							fork(f, parts, func(f *registry.Frame, _, outer int) {
								if nested {
									fork(f, parts, func(f *registry.Frame, _, inner int) { body(f, inner) })
									return
								}
								body(f, outer)
							})
						})
						w.system("after", func(*registry.Frame) { after++ })
						err := soon(t, "Step", w.e.Step)
						var failure *registry.PanicError
						require.ErrorAs(t, err, &failure)
						require.Equal(t, "forks", failure.Where)
						if exit {
							require.Equal(t, registry.ErrGoexit, failure.Value)
						} else {
							require.Equal(t, fmt.Sprint("part ", min(bad[0], bad[len(bad)-1])), failure.Value)
							require.Contains(t, string(failure.Stack), "TestAFailingPartEndsTheSystemOnly", "the stack of the part")
						}
						require.Len(t, w.told(), 1, "told once")
						require.Equal(t, 1, after)
						all := parts
						if nested {
							all *= parts
						}
						require.EqualValues(t, all, done.Load(), "every part once")
						armed = false
						w.step()
						require.Equal(t, all, w.r.Stats().Live, "what the parts put off")
					})
				}
			}
		}
	}
}

func TestAnExitBehindAPanicIsThePanic(t *testing.T) {
	for _, n := range []int{1, 2, 16} {
		w := newWorld(t, workers(n))
		var done atomic.Int64
		w.system("forks", func(f *registry.Frame) {
			fork(f, 20, func(_ *registry.Frame, _, part int) {
				done.Add(1)
				switch {
				case part == 3:
					panic("first")
				case part > 3:
					runtime.Goexit()
				}
			})
		})
		var failure *registry.PanicError
		require.ErrorAs(t, soon(t, "Step", w.e.Step), &failure)
		require.Equal(t, "first", failure.Value)
		require.Len(t, w.told(), 1)
		require.EqualValues(t, 20, done.Load())
	}
}

// TestOneWordManyHands is archetype-7 where the hands are workers and strangers.
func TestOneWordManyHands(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("archetype-7/deterministic=%v", late), func(t *testing.T) {
			const hands = 16
			for range 20 {
				w := newWorldIn(t, registry.Config{MaxEntities: 1000, Deterministic: late}, workers(hands))
				hs := make([]handles.Local, 0, 192)
				w.update(func(win *registry.Window) (err error) {
					hs, err = w.class.SpawnBatch(win, 192, nil)
					first, _ := registry.CacheIndex(win, hs[0])
					assert.Zero(t, first%64, "three whole words")
					return err
				})
				var won, lost atomic.Int64
				massacre := func(destroy func(handles.Local) error, from int) {
					for i := range 128 {
						switch err := destroy(hs[64+(from+i)%64]); err {
						case nil:
							won.Add(1)
						case registry.ErrStale:
							lost.Add(1)
						default:
							assert.NoError(t, err)
						}
					}
				}
				ready := make(chan struct{}, hands)
				begin := make(chan struct{})
				var strangers sync.WaitGroup
				for i := range 2 {
					strangers.Go(func() {
						<-begin
						massacre(w.r.Destroy, 32*i)
					})
				}
				go func() {
					for range hands {
						<-ready
					}
					close(begin)
				}()
				var once sync.Once
				w.system("massacre", func(f *registry.Frame) {
					once.Do(func() {
						fork(f, hands, func(f *registry.Frame, _, part int) { // each waits, so each is another worker's
							ready <- struct{}{}
							<-begin
							massacre(f.Destroy, 4*part)
						})
					})
				})
				w.step()
				strangers.Wait()
				require.EqualValues(t, 64, won.Load())
				require.EqualValues(t, 18*128-64, lost.Load())
				w.step()
				require.Equal(t, 128, w.r.Stats().Live)
				w.update(func(win *registry.Window) error {
					for i, h := range hs {
						assert.Equal(t, i/64 != 1, registry.Active(win, h), "entity %d", i)
					}
					return w.r.Verify()
				})
			}
		})
	}
}

// TestSixteenWorkersAndStrangers does everything at once and looks at the books after each frame.
func TestSixteenWorkersAndStrangers(t *testing.T) {
	frames := 60
	if raceEnabled {
		frames = 15
	}
	for _, late := range []bool{false, true} {
		w := newWorldIn(t, registry.Config{MaxEntities: 3000, Deterministic: late}, workers(16))
		known := []handles.Local{w.spawn(0)} // changes between frames only
		var mu sync.Mutex                    // guards born
		var born []handles.Local
		w.system("all", func(f *registry.Frame) {
			fork(f, 64, func(f *registry.Frame, _, _ int) {
				for range 20 {
					h := known[rand.IntN(len(known))]
					switch rand.IntN(8) {
					case 0, 1, 2:
						if h, err := w.class.SpawnLater(f, thing{}); err == nil {
							mu.Lock()
							born = append(born, h)
							mu.Unlock()
						}
					case 3:
						_ = f.Destroy(h)
					case 4:
						_ = registry.SetActive(f, h, false)
					case 5:
						_ = registry.SetActive(f, h, true)
					case 6:
						_ = registry.AddLater(f, h, tag{})
					case 7:
						_ = registry.RemoveLater[tag](f, h)
					}
				}
			})
		})
		for range frames {
			var strangers sync.WaitGroup
			for range 2 {
				strangers.Go(func() {
					for range 100 {
						_ = w.r.Destroy(known[rand.IntN(len(known))])
						if h, err := w.r.Reserve(); err == nil {
							_ = w.r.Destroy(h)
						}
						w.r.Stats()
					}
				})
			}
			w.step()
			strangers.Wait()
			require.NoError(t, w.r.Verify())
			kept := known[:0]
			for _, h := range known {
				if w.r.Alive(h) {
					kept = append(kept, h)
				}
			}
			known, born = append(kept, born...), nil
		}
		for _, err := range w.told() {
			require.True(t, errors.Is(err, registry.ErrStale) || errors.Is(err, registry.ErrNoComponent), "%v", err)
		}
	}
}

func TestASteadyParallelFrameAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	w := newWorld(t, workers(3))
	var sum [10]int
	var body registry.Task = task(func(f *registry.Frame, _, part int) { sum[part] += int(f.Rand().Uint64() & 1) })
	w.system("forks", func(f *registry.Frame) { registry.Fork(f, body, len(sum), true) })
	for range 20 {
		w.step()
	}
	require.Zero(t, testing.AllocsPerRun(200, w.step))
}
