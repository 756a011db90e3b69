package logic_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// troupe is an engine of walkers whose one system is the test's.
type troupe struct {
	*theatre
	errs []error
}

func newTroupe(t testing.TB, rc registry.Config, lc logic.Config, system func(w *troupe, f *logic.Frame)) *troupe {
	rc.TemporalFrames = 8
	r, err := registry.New(rc)
	require.NoError(t, err)
	temporal[spot](t, r)
	temporal[own](t, r)
	w := &troupe{theatre: &theatre{t: t, r: r}}
	w.walkers, err = registry.RegisterClass[walker](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	lc.OnError = func(err error) { w.errs = append(w.errs, err) }
	w.e, err = logic.New(r, lc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.e.Stop()) })
	_, err = w.e.AddSystem(logic.Late, "system", func(f *logic.Frame) { system(w, f) })
	require.NoError(t, err)
	return w
}

func (w *troupe) steps(n int) {
	w.t.Helper()
	for range n {
		require.NoError(w.t, w.e.Step())
		require.NoError(w.t, w.r.Verify(), "frame %d", w.e.FrameNumber())
	}
}

// TestWishesThatFailCostTheSameNamesAgain: names that were burned, or ended, by wishes that failed come out of the
// space as often as the frames are simulated, and those after them are the same.
func TestWishesThatFailCostTheSameNamesAgain(t *testing.T) {
	type shown struct{ Own []own }
	for name, wish := range map[string]func(w *troupe, all *views.Query[shown], win *registry.Window) error{
		"a batch alone": func(w *troupe, _ *views.Query[shown], win *registry.Window) error {
			require.Panics(w.t, func() { _, _ = w.walkers.SpawnBatch(win, 3, func(int, *walker) { panic("planned") }) })
			return nil
		},
		"a batch, then all": func(w *troupe, _ *views.Query[shown], win *registry.Window) error {
			require.Panics(w.t, func() { _, _ = w.walkers.SpawnBatch(win, 3, func(int, *walker) { panic("planned") }) })
			_, err := w.walkers.SpawnBatch(win, 2, nil)
			require.NoError(w.t, err)
			return errTest
		},
		"a loop that puts off": func(w *troupe, all *views.Query[shown], win *registry.Window) error {
			all.Parallel(win, func(f *registry.Frame, _ *shown) {
				_, err := w.walkers.SpawnLater(f, walker{})
				require.NoError(w.t, err)
			})
			return errTest
		},
		"a birth that others end": func(w *troupe, _ *views.Query[shown], win *registry.Window) error {
			h, err := w.walkers.Spawn(win, walker{})
			require.NoError(w.t, err)
			require.NoError(w.t, w.r.Destroy(h))
			return errTest
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(back bool) (born map[uint64]handles.Local) {
				born = map[uint64]handles.Local{}
				var all *views.Query[shown]
				w := newTroupe(t, registry.Config{Deterministic: true}, logic.Config{Workers: 2}, func(w *troupe, f *logic.Frame) {
					now := f.FrameNumber()
					f.Defer(func(win *registry.Window) (err error) {
						if now == 4 {
							return wish(w, all, win)
						}
						born[now], err = w.walkers.Spawn(win, walker{})
						return err
					})
				})
				var err error
				all, err = views.NewQuery[shown](w.r)
				require.NoError(t, err)
				w.steps(7)
				for range 2 {
					if back {
						require.NoError(t, w.e.Rollback(3))
					}
					w.steps(1)
				}
				w.steps(12)
				return born
			}
			require.Equal(t, run(false), run(true))
		})
	}
}

// TestALoopInACallbackPutsOffOnce, though the callback commits in the middle, and not at all if it fails then.
func TestALoopInACallbackPutsOffOnce(t *testing.T) {
	type shown struct{ Own []own }
	for name, end := range map[string]error{"": nil, "failed": errTest} {
		t.Run(name, func(t *testing.T) {
			w := newTroupe(t, registry.Config{}, logic.Config{Workers: 2}, func(*troupe, *logic.Frame) {})
			all, err := views.NewQuery[shown](w.r)
			require.NoError(t, err)
			require.NoError(t, w.r.Update(func(win *registry.Window) error {
				_, err := w.walkers.SpawnBatch(win, 3, nil)
				return err
			}))
			w.steps(2)
			ran := 0
			require.NoError(t, w.e.Defer(func(win *registry.Window) error {
				all.Parallel(win, func(f *registry.Frame, _ *shown) {
					f.Defer(func(*registry.Window) error { ran++; return nil })
					_, err := w.walkers.SpawnLater(f, walker{})
					require.NoError(t, err)
				})
				win.ConfirmLocalRecycles()
				return end
			}))
			w.steps(3)
			first := ran
			ran = 0
			require.NoError(t, w.e.Rollback(2))
			w.steps(1)
			require.Equal(t, first, ran)
			w.steps(12)
			names := w.r.Stats().Local.Issued
			if end == nil {
				require.Equal(t, 1, ran)
				require.Equal(t, 4, names)
				require.Empty(t, w.errs)
			} else {
				require.Zero(t, ran)
				require.Equal(t, 3, names)
			}
		})
	}
}

// TestAnEngineAfterAnotherKeepsItsWishes: the history of the one before forgets none of them.
func TestAnEngineAfterAnotherKeepsItsWishes(t *testing.T) {
	wish := func(n int) func(w *troupe, f *logic.Frame) {
		return func(w *troupe, f *logic.Frame) {
			for range n {
				_, err := w.walkers.SpawnLater(f.Frame, walker{Memo: memo{"wished"}})
				require.NoError(w.t, err)
			}
		}
	}
	w := newTroupe(t, registry.Config{}, logic.Config{Workers: 1}, wish(9))
	w.steps(12)
	require.NoError(t, w.e.Stop())
	require.NoError(t, w.r.Update(func(*registry.Window) error { return nil }))
	e, err := logic.New(w.r, logic.Config{Workers: 1, OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	_, err = e.AddSystem(logic.Late, "system", func(f *logic.Frame) { wish(2)(w, f) })
	require.NoError(t, err)
	for range 30 {
		require.NoError(t, e.Step())
	}
	require.NoError(t, e.Stop())
}

// TestWhatAnUpdateLeftOverIsGrantedOnce: an operation that was put off exits the Update, and before the next frame
// there is a rollback.
func TestWhatAnUpdateLeftOverIsGrantedOnce(t *testing.T) {
	var ran []string
	w := newTroupe(t, registry.Config{Deterministic: true}, logic.Config{Workers: 1}, func(_ *troupe, f *logic.Frame) {
		now := f.FrameNumber()
		f.Defer(func(*registry.Window) error {
			ran = append(ran, fmt.Sprint("A", now))
			if now == 5 {
				runtime.Goexit()
			}
			return nil
		})
		f.Defer(func(*registry.Window) error { ran = append(ran, fmt.Sprint("B", now)); return nil })
	})
	w.steps(5)
	var update sync.WaitGroup
	update.Go(func() { _ = w.r.Update(func(*registry.Window) error { return nil }) })
	update.Wait()
	ran = nil
	require.NoError(t, w.e.Rollback(3))
	w.steps(2)
	require.Equal(t, []string{"A3", "B3", "A4", "B4", "A5", "B5", "A6", "B6"}, ran)
}

// TestDestroyersBesideARollback: while births are undone others destroy the newborn, whose handles are those of
// systems or of callers from outside.
func TestDestroyersBesideARollback(t *testing.T) {
	many := 20_000
	if raceEnabled {
		many = 4000
	}
	for name, outside := range map[string]bool{"of systems": false, "from outside": true} {
		t.Run(name, func(t *testing.T) {
			var hs []handles.Local
			w := newTroupe(t, registry.Config{MaxEntities: 100_000}, logic.Config{Workers: 1}, func(w *troupe, f *logic.Frame) {
				if again := len(hs) > 0; outside || again || f.FrameNumber() != 3 {
					for i := 0; again && !outside && f.FrameNumber() == 3 && i < many; i++ {
						_, err := w.walkers.SpawnLater(f.Frame, walker{})
						require.NoError(t, err)
					}
					return
				}
				for range many {
					h, err := w.walkers.SpawnLater(f.Frame, walker{})
					require.NoError(t, err)
					hs = append(hs, h)
				}
			})
			w.steps(3)
			if outside {
				require.NoError(t, w.e.Defer(func(win *registry.Window) (err error) {
					hs, err = w.walkers.SpawnBatch(win, many, nil)
					return err
				}))
			}
			w.steps(2)
			stop := make(chan struct{})
			var destroyer sync.WaitGroup
			destroyer.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						_ = w.r.Destroy(hs[i*7919%many])
					}
				}
			})
			require.NoError(t, w.e.Rollback(2))
			require.NoError(t, w.e.Step())
			close(stop)
			destroyer.Wait()
			w.steps(12)
		})
	}
}

// TestNetNamesThatNobodyGotAgainAreFreedInOrder, so that the next ones do not depend on chance.
func TestNetNamesThatNobodyGotAgainAreFreedInOrder(t *testing.T) {
	run := func() (names []handles.Net) {
		w := newTroupe(t, registry.Config{Deterministic: true}, logic.Config{Workers: 1, NetWindow: 1}, func(w *troupe, f *logic.Frame) {
			if in, _ := f.Input(1); len(in) > 0 {
				for range 20 {
					h, err := w.walkers.SpawnLater(f.Frame, walker{})
					require.NoError(t, err)
					f.Defer(func(win *registry.Window) error { _, err := win.AssignNet(h); return err })
				}
			}
		})
		require.NoError(t, w.e.Input(1, 4, []byte{1}))
		w.steps(6)
		require.NoError(t, w.e.Input(1, 4, nil))
		w.steps(6)
		require.NoError(t, w.r.Update(func(win *registry.Window) error {
			hs, err := w.walkers.SpawnBatch(win, 20, nil)
			for _, h := range hs {
				n, err := win.AssignNet(h)
				require.NoError(t, err)
				names = append(names, n)
			}
			return err
		}))
		return names
	}
	require.Equal(t, run(), run())
}

// TestAnObserverThatExitsARollback stops none of the others, gives none of them a say, and keeps no frame pinned.
func TestAnObserverThatExitsARollback(t *testing.T) {
	w := newTroupe(t, registry.Config{}, logic.Config{Workers: 1}, func(w *troupe, f *logic.Frame) {
		_, err := w.walkers.SpawnLater(f.Frame, walker{})
		require.NoError(t, err)
	})
	told, refused := 0, 0
	for _, exits := range []bool{true, false} {
		_, err := w.r.Observe(registry.Destroyed, func(f *registry.Frame, _ []registry.Event) {
			told++
			if exits {
				runtime.Goexit()
			}
			if _, err := w.walkers.SpawnLater(f, walker{}); err != nil {
				require.ErrorIs(t, err, registry.ErrDeterministic)
				refused++
			}
		})
		require.NoError(t, err)
	}
	w.steps(8)
	const times = 10
	for range times {
		require.NoError(t, w.e.Rollback(w.e.FrameNumber()-6))
		w.steps(1)
	}
	require.Equal(t, 2*times, told, "nobody dies but by rollback")
	require.Equal(t, times, refused)
	require.EqualValues(t, times, w.e.Stats().Rollbacks)
	require.Zero(t, w.r.Stats().Pinned)
}

// TestStatsShowABirthOfAReservationWithARing though nothing else in them changes.
func TestStatsShowABirthOfAReservationWithARing(t *testing.T) {
	w := newTroupe(t, registry.Config{}, logic.Config{Workers: 1}, func(*troupe, *logic.Frame) {})
	require.NoError(t, w.r.Update(func(win *registry.Window) error { _, err := w.walkers.Spawn(win, walker{}); return err }))
	w.steps(2)
	h, err := w.r.Reserve()
	require.NoError(t, err)
	w.steps(1)
	require.NoError(t, w.e.Defer(func(win *registry.Window) error { return w.walkers.SpawnReserved(win, h, walker{}) }))
	w.steps(1)
	require.Equal(t, 2, w.r.Stats().Live)
}

// TestAnUpdateThatWasLeftIsDoneAgainAsItWas by an exit: who was not told then is not told earlier.
func TestAnUpdateThatWasLeftIsDoneAgainAsItWas(t *testing.T) {
	for name, leave := range map[string]string{"by its callback": "callback", "by an observer": "observer", "by a wish": "wish"} {
		t.Run(name, func(t *testing.T) {
			run := func(back bool) string {
				var born []string
				how := ""
				w := newTroupe(t, registry.Config{Deterministic: true}, logic.Config{Workers: 1}, func(w *troupe, f *logic.Frame) {
					now := f.FrameNumber()
					_, err := w.walkers.SpawnLater(f.Frame, walker{})
					require.NoError(t, err)
					f.Defer(func(win *registry.Window) error {
						if how == "wish" && now == 5 {
							runtime.Goexit()
						}
						return nil
					})
					f.Defer(func(win *registry.Window) error {
						h, err := w.walkers.Spawn(win, walker{})
						born = append(born, fmt.Sprint(win.FrameNumber(), h))
						return err
					})
				})
				for i := range 2 {
					_, err := w.r.Observe(registry.Spawned, func(f *registry.Frame, es []registry.Event) {
						if i == 0 && how == "observer" && f.FrameNumber() == 5 {
							runtime.Goexit()
						}
						for range es {
							f.Defer(func(win *registry.Window) error {
								if win.FrameNumber() < 9 {
									h, err := w.drone(win)
									born = append(born, fmt.Sprint(win.FrameNumber(), h))
									return err
								}
								return nil
							})
						}
					})
					require.NoError(t, err)
				}
				if leave == "observer" {
					how = leave // in the frame as well
				}
				w.steps(5)
				how = leave
				var update sync.WaitGroup
				update.Go(func() {
					_ = w.r.Update(func(win *registry.Window) error {
						if how == "callback" {
							runtime.Goexit()
						}
						return nil
					})
				})
				update.Wait()
				update.Go(func() {
					_ = w.r.Update(func(win *registry.Window) error {
						_, err := w.walkers.Spawn(win, walker{})
						return err
					})
				})
				update.Wait()
				if back {
					require.NoError(t, w.e.Rollback(3))
				}
				w.steps(3)
				_, state := w.living()
				return state
			}
			require.Equal(t, run(false), run(true))
		})
	}
}

func (w *troupe) drone(win *registry.Window) (handles.Local, error) {
	return w.walkers.Spawn(win, walker{})
}

// TestTheOrderOfArchetypesIsTheSame though a callback from outside has made one for births that did not come about.
func TestTheOrderOfArchetypesIsTheSame(t *testing.T) {
	run := func(back bool) []handles.Local {
		w := newTheatre(t, logic.Config{Workers: 1})
		require.NoError(t, w.e.Step())
		require.NoError(t, w.e.Step())
		require.NoError(t, w.e.Defer(func(win *registry.Window) error {
			func() {
				defer func() { _ = recover() }()
				_, _ = w.drones.SpawnBatch(win, 1, func(int, *drone) { panic("planned") })
			}()
			hs, err := w.walkers.SpawnBatch(win, 1, nil)
			_ = registry.Add(win, hs[0], mark{})
			return err
		}))
		require.NoError(t, w.e.Step())
		require.NoError(t, w.e.Defer(func(win *registry.Window) error { _, err := w.drones.Spawn(win, drone{}); return err }))
		if back {
			require.NoError(t, w.e.Rollback(1))
		}
		require.NoError(t, w.e.Step())
		hs, _ := w.living()
		return hs
	}
	require.Equal(t, run(false), run(true))
}

// TestRoomIsTheSameAgain near MaxEntities, though outside handles are not given back.
func TestRoomIsTheSameAgain(t *testing.T) {
	ok := map[uint64]bool{}
	w := newTroupe(t, registry.Config{Deterministic: true, MaxEntities: 4}, logic.Config{Workers: 1}, func(w *troupe, f *logic.Frame) {
		if f.FrameNumber() == 3 || f.FrameNumber() == 4 {
			h, err := w.walkers.SpawnLater(f.Frame, walker{})
			ok[f.FrameNumber()] = err == nil
			f.Defer(func(win *registry.Window) error { return win.Destroy(h) })
		}
	})
	w.steps(7)
	require.NoError(t, w.r.Update(func(win *registry.Window) error { _, err := w.walkers.SpawnBatch(win, 4, nil); return err }))
	w.steps(1)
	require.NoError(t, w.e.Rollback(2))
	w.steps(1)
	require.Equal(t, map[uint64]bool{3: true, 4: true}, ok)
}
