package logic_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestSystemsRunByPhaseThenRegistration(t *testing.T) {
	w := newWorld(t, func(c *logic.Config) { c.Rate = 50 })
	var ran []string
	for _, p := range []logic.Phase{logic.Late, logic.Physics, logic.PrePhysics, logic.PostPhysics} {
		for i := range 2 {
			name := fmt.Sprintf("%v%d", p, i)
			s, err := w.e.AddSystem(p, name, func(f *logic.Frame) {
				ran = append(ran, name)
				assert.Equal(t, 0.02, f.Delta)
				assert.EqualValues(t, 1, f.FrameNumber())
			})
			require.NoError(t, err)
			require.Equal(t, name, s.Name())
		}
	}
	w.step()
	assert.Equal(t, []string{"PrePhysics0", "PrePhysics1", "Physics0", "Physics1", "PostPhysics0", "PostPhysics1", "Late0", "Late1"}, ran)
	assert.Equal(t, "Phase(7)", logic.Phase(7).String())
}

func TestRegistrationTakesEffectAtTheNextWindow(t *testing.T) {
	w := newWorld(t)
	var ran []string
	note := func(name string) func(*logic.Frame) {
		return func(f *logic.Frame) { ran = append(ran, fmt.Sprint(name, f.FrameNumber())) }
	}
	var inner, self *logic.System
	var err error
	self, err = w.e.AddSystem(logic.PrePhysics, "outer", func(f *logic.Frame) {
		note("outer")(f)
		if f.FrameNumber() == 1 {
			inner, err = w.e.AddSystem(logic.Late, "inner", note("inner"))
			assert.NoError(t, err)
			assert.NoError(t, self.Remove())
			assert.NoError(t, self.Remove(), "a second call is harmless")
		}
	})
	require.NoError(t, err)
	for range 3 {
		w.step()
	}
	assert.Equal(t, []string{"outer1", "inner2", "inner3"}, ran)
	require.NoError(t, inner.Remove())
	w.step()
	assert.Len(t, ran, 3)
}

func TestASystemReadsWritesAndDestroys(t *testing.T) {
	w := newWorld(t)
	h, doomed := w.spawn(1), w.spawn(2)
	var kept *logic.Frame
	_, err := w.e.AddSystem(logic.Physics, "the reaper", func(f *logic.Frame) {
		kept = f
		assert.NoError(t, registry.Set(f, h, value{5})) // a *logic.Frame is an Access
		assert.NoError(t, f.Destroy(doomed))
		assert.False(t, w.r.Alive(doomed))
	})
	require.NoError(t, err)
	require.NoError(t, w.e.Step())
	assert.Equal(t, 5, w.n(h))
	o, ok := w.r.Obituary(doomed)
	require.True(t, ok)
	assert.Equal(t, registry.Obituary{Frame: 1, Cause: "the reaper"}, o)
	assert.ErrorIs(t, registry.Set(kept, h, value{6}), registry.ErrExpired, "a frame expires")
	assert.PanicsWithError(t, registry.ErrExpired.Error(), func() { kept.FrameNumber() })
}

func TestSpawnLaterAndAddLaterComeWithTheNextWindow(t *testing.T) {
	w := newWorld(t)
	var h handles.Local
	_, err := w.e.AddSystem(logic.Physics, "wishes", func(f *logic.Frame) {
		if f.FrameNumber() > 1 {
			return
		}
		var err error
		h, err = w.class.SpawnLater(f.Frame, thing{value{9}})
		assert.NoError(t, err)
		assert.NoError(t, registry.AddLater(f.Frame, h, tag{3}))
		f.Defer(func(win *registry.Window) error {
			_, err := registry.Peek[tag](win, h)
			return err
		})
	})
	require.NoError(t, err)
	w.step()
	assert.False(t, w.r.Alive(h))
	w.step()
	assert.Empty(t, w.told())
	assert.Equal(t, 9, w.n(h))
}

func TestASystemsPanicEndsTheSystemNotTheFrame(t *testing.T) {
	for ending, end := range map[string]func(){"panic": func() { panic(errTest) }, "Goexit": runtime.Goexit} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(ending, "/", silent), func(t *testing.T) {
				w := newWorld(t, func(c *logic.Config) {
					if silent {
						c.OnError = nil
					}
				})
				var ran []string
				for _, name := range []string{"first", "second", "third"} {
					_, err := w.e.AddSystem(logic.Physics, name, func(*logic.Frame) {
						ran = append(ran, name)
						if name != "second" {
							end()
						}
					})
					require.NoError(t, err)
				}
				check := func(err error, frame int) {
					var pe *registry.PanicError
					require.ErrorAs(t, err, &pe)
					assert.Contains(t, []string{"first", "third"}, pe.Where)
					assert.EqualValues(t, frame, pe.Frame)
					if ending == "panic" {
						assert.ErrorIs(t, err, errTest)
						assert.Contains(t, string(pe.Stack), "TestASystemsPanic")
					} else {
						assert.ErrorIs(t, err, registry.ErrGoexit)
					}
				}
				err := w.e.Step()
				assert.Equal(t, []string{"first", "second", "third"}, ran)
				check(err, 1)
				assert.ErrorContains(t, err, "first")
				assert.ErrorContains(t, err, "third")
				told := w.told()
				if silent {
					assert.Empty(t, told)
				} else {
					require.Len(t, told, 2)
					check(told[0], 1)
				}

				ctx, done := background(), make(chan error, 1)
				go func() { done <- w.e.Run(ctx) }()
				if silent {
					check(soon(t, "Run", func() error { return <-done }), 2)
				} else {
					require.NoError(t, w.e.Spawn(background(), noChange))
					require.NoError(t, w.e.Spawn(background(), noChange), "the engine goes on")
					require.NoError(t, w.e.Stop())
					require.NoError(t, <-done)
					assert.GreaterOrEqual(t, len(w.told()), 2)
				}
			})
		}
	}
}

func TestWhatEndsInObserversAndWishesIsReportedOnce(t *testing.T) {
	for ending, end := range map[string]func(){"panic": func() { panic(errTest) }, "Goexit": runtime.Goexit} {
		t.Run(ending, func(t *testing.T) {
			w := newWorld(t)
			var heard []string
			for _, name := range []string{"first", "second", "third"} {
				_, err := w.r.Observe(registry.Spawned, func(f *registry.Frame, _ []registry.Event) {
					heard = append(heard, name)
					if name == "second" {
						f.Defer(func(*registry.Window) error {
							heard = append(heard, "wish")
							end()
							return nil
						})
						f.Defer(func(*registry.Window) error {
							heard = append(heard, "another wish")
							return nil
						})
						end()
					}
				})
				require.NoError(t, err)
			}
			w.step()
			require.NoError(t, w.e.Defer(func(win *registry.Window) error {
				_, err := w.class.Spawn(win, thing{})
				return err
			}))
			w.step()
			assert.Equal(t, []string{"first", "second", "third"}, heard)
			assert.Len(t, w.told(), 1)
			w.step()
			assert.Equal(t, []string{"wish", "another wish"}, heard[3:])
			assert.Len(t, w.told(), 1)
			w.step()
			assert.Len(t, heard, 5)
		})
	}
}

func TestAnOnErrorThatFailsHarmsNobody(t *testing.T) {
	for ending, end := range map[string]func(){"panic": func() { panic(errTest) }, "Goexit": runtime.Goexit} {
		t.Run(ending, func(t *testing.T) {
			told := 0
			w := newWorld(t, func(c *logic.Config) { c.OnError = func(error) { told++; end() } })
			_, err := w.e.AddSystem(logic.Physics, "panics", func(*logic.Frame) { panic(errTest) })
			require.NoError(t, err)
			ran := 0
			for range 3 {
				require.NoError(t, w.e.Defer(func(*registry.Window) error { ran++; return errTest }))
			}
			require.ErrorIs(t, w.e.Step(), errTest)
			assert.Equal(t, 3, ran)
			assert.Equal(t, 4, told)
			for range 3 {
				require.NoError(t, w.e.Defer(noChange))
			}
			require.NoError(t, w.e.Stop())
			assert.Equal(t, 7, told)
		})
	}
}

func TestAGoexitInABatchEndsItsGoroutineBehindTheRest(t *testing.T) {
	w := newWorld(t)
	var ran []int
	over := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { over <- returned }()
		w.e.SpawnBatch(background(),
			func(*registry.Window) error { ran = append(ran, 0); return nil },
			func(*registry.Window) error { ran = append(ran, 1); runtime.Goexit(); return nil },
			func(*registry.Window) error { ran = append(ran, 2); panic(errTest) },
			func(*registry.Window) error { ran = append(ran, 3); runtime.Goexit(); return nil },
			func(*registry.Window) error { ran = append(ran, 4); return nil })
		returned = true
	}()
	w.queued(1)
	w.step()
	assert.False(t, <-over)
	assert.Equal(t, []int{0, 1, 2, 3, 4}, ran)
	w.step()
}

func TestDestroyFromOutsideIsSeenByTheNextPhase(t *testing.T) {
	w := newWorld(t)
	h := w.spawn(1)
	var before, after []int
	count := func(f *logic.Frame) int { return w.r.Stats().Live }
	_, err := w.e.AddSystem(logic.PrePhysics, "destroys", func(f *logic.Frame) {
		before = append(before, count(f))
		if f.FrameNumber() == 1 {
			done := make(chan error)
			go func() { done <- w.r.Destroy(h) }()
			assert.NoError(t, <-done)
		}
	})
	require.NoError(t, err)
	_, err = w.e.AddSystem(logic.Physics, "sees", func(f *logic.Frame) { after = append(after, count(f)) })
	require.NoError(t, err)
	w.step()
	assert.Equal(t, []int{1}, before)
	assert.Equal(t, []int{0}, after)
}

func TestADeathFromOutsideIsAnOperationOfTheWindowWhereOrderCounts(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		w := newWorldIn(t, registry.Config{Deterministic: deterministic})
		h := w.spawn(1)
		var seen []bool
		_, err := w.e.AddSystem(logic.PrePhysics, "kills", func(f *logic.Frame) {
			if f.FrameNumber() == 1 {
				assert.NoError(t, w.r.Destroy(h))
				assert.False(t, w.r.Alive(h))
			}
		})
		require.NoError(t, err)
		_, err = w.e.AddSystem(logic.Late, "looks", func(f *logic.Frame) {
			seen = append(seen, registry.Has[value](f, h))
		})
		require.NoError(t, err)
		w.step()
		w.step()
		pending := w.r.Stats().PendingDestructions
		w.step()
		if deterministic {
			assert.Equal(t, []bool{true, false, false}, seen)
			assert.Equal(t, 1, pending, "it died in the second window")
		} else {
			assert.Equal(t, []bool{false, false, false}, seen)
			assert.Zero(t, pending)
		}
		assert.Zero(t, w.r.Stats().PendingDestructions)
	}
}

func TestLocalWindowCountsFrames(t *testing.T) {
	for window, frames := range map[int]int{0: 3, 1: 2, 5: 6, -1: 0} {
		w := newWorld(t, func(c *logic.Config) { c.LocalWindow = window })
		h := w.spawn(1)
		require.NoError(t, w.r.Destroy(h))
		for i := 1; i <= 10; i++ {
			w.step()
			if free := w.r.Stats().Local.Free == 1; frames > 0 && i >= frames {
				require.True(t, free, "window %d, frame %d", window, i)
			} else {
				require.False(t, free, "window %d, frame %d", window, i)
			}
		}
	}
}

func TestNetWindowCountsFramesUntilAPeerComes(t *testing.T) {
	for window, frames := range map[int]int{0: 0, 1: 2, 5: 6, -1: 0} {
		w := newWorld(t, func(c *logic.Config) { c.NetWindow = window })
		h, _ := w.spawnNet(1)
		require.NoError(t, w.r.Destroy(h))
		for i := 1; i <= 10; i++ {
			w.step()
			require.Equal(t, frames > 0 && i >= frames, w.r.Stats().Net.Pending == 0, "window %d, frame %d", window, i)
		}
		h, _ = w.spawnNet(1)
		require.NoError(t, w.e.AddPeer(1))
		require.NoError(t, w.r.Destroy(h))
		for range 10 {
			w.step()
			require.Equal(t, 1, w.r.Stats().Net.Pending, "the peer knew it when it died")
		}
		require.NoError(t, w.e.Ack(1, w.e.FrameNumber()))
		w.step()
		require.Zero(t, w.r.Stats().Net.Pending)
	}
}

func TestPeersComeAndGoWhileTheEngineRuns(t *testing.T) {
	w := newWorld(t, fast)
	stop := w.run()
	var acks atomic.Int64
	done := make(chan struct{})
	for p := range uint32(4) {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 200 {
				assert.NoError(t, w.e.AddPeer(p))
				assert.NoError(t, w.e.Ack(p, w.e.FrameNumber()))
				w.e.Stats()
				acks.Add(1)
				assert.NoError(t, w.e.DropPeer(p))
			}
		}()
	}
	for range 200 {
		assert.NoError(t, w.e.Spawn(background(), func(win *registry.Window) error {
			h, err := w.class.Spawn(win, thing{})
			if err != nil {
				return err
			}
			if _, err = win.AssignNet(h); err != nil {
				return err
			}
			return win.Destroy(h)
		}))
	}
	for range 4 {
		<-done
	}
	for range 3 {
		require.NoError(t, w.e.Spawn(background(), noChange))
	}
	require.NoError(t, stop())
	assert.Zero(t, w.r.Stats().Net.Pending)
	assert.EqualValues(t, 800, acks.Load())
}
