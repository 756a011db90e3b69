package logic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// logbook is what somebody outside knows of the entities who hears of every event and move.
type logbook struct {
	alive map[handles.Local]bool
	marks map[handles.Local]bool
	at    map[handles.Local]uint32
}

func keepLogbook(t testing.TB, r *registry.Registry) *logbook {
	l := &logbook{map[handles.Local]bool{}, map[handles.Local]bool{}, map[handles.Local]uint32{}}
	observe := func(k registry.EventKind, fn func(e registry.Event)) {
		_, err := r.Observe(k, func(_ *registry.Frame, es []registry.Event) {
			for _, e := range es {
				fn(e)
			}
		})
		require.NoError(t, err)
	}
	balance := map[handles.Local]int{} // within one delivery births come before deaths, whatever came first
	observe(registry.Spawned, func(e registry.Event) {
		balance[e.Entity]++
		l.alive[e.Entity] = balance[e.Entity] > 0
	})
	observe(registry.Destroyed, func(e registry.Event) {
		balance[e.Entity]--
		l.alive[e.Entity] = balance[e.Entity] > 0
	})
	_, err := r.OnMove(func(moves []registry.Move) {
		for _, m := range moves {
			if at, ok := l.at[m.Entity]; ok {
				require.Equal(t, at, m.Old, "%v", m.Entity)
			}
			l.at[m.Entity] = m.New
		}
	})
	require.NoError(t, err)
	return l
}

// TestALedgerSurvivesRollbacks is the part of the case registry-13 that is about rollback, and that of defrag-5 about
// subscribers: who hears of everything knows who lives, and where.
func TestALedgerSurvivesRollbacks(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	l := keepLogbook(t, w.r)
	rnd := rand.New(rand.NewPCG(8, 8))
	var known []handles.Local
	for range 300 {
		w.outside(rnd, &known)
		if now := w.e.FrameNumber(); now > 2 && rnd.IntN(3) == 0 {
			require.NoError(t, w.e.Rollback(now-min(now-1, rnd.Uint64N(14))))
		}
		require.NoError(t, w.e.Step())
		require.NoError(t, w.r.Read(func(s *registry.Snapshot) error {
			for h, alive := range l.alive {
				at, ok := registry.CacheIndex(s, h)
				require.Equal(t, alive, ok, "%v in frame %d", h, s.FrameNumber())
				if moved, known := l.at[h]; ok && known {
					require.Equal(t, moved, at, "%v", h)
				}
			}
			return nil
		}))
	}
	require.NotZero(t, w.e.Stats().Rollbacks)
}

// TestRollbackOverAMove is the case defrag-5.
func TestRollbackOverAMove(t *testing.T) {
	r, err := registry.New(registry.Config{TemporalFrames: 8})
	require.NoError(t, err)
	temporal[own](t, r)
	type piece struct {
		Own  own
		Memo memo
	}
	pieces, err := registry.RegisterClass[piece](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	compactor, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	l := keepLogbook(t, r)
	step := func(fn func(w *registry.Window) error) {
		t.Helper()
		if fn != nil {
			require.NoError(t, e.Defer(fn))
		}
		require.NoError(t, e.Step())
		require.NoError(t, r.Verify())
	}
	var hs []handles.Local
	step(func(w *registry.Window) (err error) {
		hs, err = pieces.SpawnBatch(w, 1000, func(_ int, p *piece) { p.Memo.Text = "whole" })
		for _, h := range hs {
			require.NoError(t, registry.Set(w, h, own{Self: h}))
		}
		return err
	})
	agree := func() {
		t.Helper()
		for i, h := range hs {
			require.NoError(t, r.Read(func(s *registry.Snapshot) error {
				o, err := registry.Peek[own](s, h)
				if i%2 == 0 {
					require.ErrorIs(t, err, registry.ErrStale)
					return nil
				}
				require.NoError(t, err)
				require.Equal(t, h, o.Self)
				at, _ := registry.CacheIndex(s, h)
				if moved, ok := l.at[h]; ok {
					require.Equal(t, moved, at)
				}
				return nil
			}))
		}
	}
	step(func(w *registry.Window) error {
		for i, h := range hs {
			if i%2 == 0 {
				require.NoError(t, w.Destroy(h))
			}
		}
		return nil
	})
	for range 10 {
		step(nil) // until the dead have left the ring
	}
	agree()
	moved := 0
	step(func(w *registry.Window) error {
		rep, err := compactor.Run(w)
		moved = rep.Moved
		return err
	})
	require.NotZero(t, moved)
	agree()
	step(nil)
	require.NoError(t, e.Rollback(e.FrameNumber()-2))
	step(nil)
	agree()
	step(func(w *registry.Window) error { _, err := compactor.Run(w); return err })
	require.NoError(t, e.Rollback(e.FrameNumber()-5))
	step(nil)
	agree()
	require.NoError(t, e.Stop())
}

// TestNetNamesStayWithTheirEntities when the frame in which they were given is simulated again.
func TestNetNamesStayWithTheirEntities(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	step := func() { require.NoError(t, w.e.Step()); require.NoError(t, w.r.Verify()) }
	step()
	names := map[handles.Local]handles.Net{}
	var old handles.Local
	require.NoError(t, w.e.Defer(func(win *registry.Window) error {
		for range 5 {
			h, err := w.walkers.Spawn(win, walker{})
			require.NoError(t, err)
			names[h], err = win.AssignNet(h)
			require.NoError(t, err)
			old = h
		}
		return nil
	}))
	step()
	step()
	require.NoError(t, w.e.Defer(func(win *registry.Window) error { return win.Destroy(old) }))
	step()
	step()
	for _, back := range []uint64{1, 3, 4, 1} {
		require.NoError(t, w.e.Rollback(back))
		step()
		for h, n := range names {
			got, err := w.r.ResolveNet(n)
			if h == old {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, h, got)
			again, err := w.r.NetOf(h)
			require.NoError(t, err)
			require.Equal(t, n, again)
		}
	}
	// A system's entity that is not born this time leaves a name that is nobody's.
	var inner handles.Local
	var name handles.Net
	_, err := w.e.AddSystem(logic.Late, "name", func(f *logic.Frame) {
		if in, ok := f.Input(1); ok && len(in) > 0 {
			h, err := w.walkers.SpawnLater(f.Frame, walker{})
			require.NoError(t, err)
			f.Defer(func(win *registry.Window) (err error) {
				inner = h
				name, err = win.AssignNet(h)
				return err
			})
		}
	})
	require.NoError(t, err)
	step()
	guess := w.e.FrameNumber() + 1
	require.NoError(t, w.e.Input(1, guess, []byte{1}))
	step()
	step()
	got, err := w.r.ResolveNet(name)
	require.NoError(t, err)
	require.Equal(t, inner, got)
	require.NoError(t, w.e.Input(1, guess, nil))
	step()
	_, err = w.r.ResolveNet(name)
	require.ErrorIs(t, err, registry.ErrStale)
}

// TestRollbacksAmidOutsiders has goroutines spawn, destroy, reserve, look and roll back while an engine runs. Whoever
// holds a handle finds its own entity or nobody, and in the end nothing is lost.
func TestRollbacksAmidOutsiders(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 2, Rate: 2000})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.e.Run(ctx) }()
	rounds := 300
	if raceEnabled {
		rounds = 60
	}
	var callers sync.WaitGroup
	for k := range uint64(6) {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(k, k))
			var mine []handles.Local
			for range rounds {
				switch rnd.IntN(6) {
				case 0, 1:
					var h handles.Local
					if err := w.e.Spawn(t.Context(), func(win *registry.Window) (err error) {
						if h, err = w.walkers.Spawn(win, walker{}); err == nil {
							err = registry.Set(win, h, own{Self: h})
						}
						return err
					}); err != nil {
						t.Error(err)
					}
					mine = append(mine, h)
				case 2:
					if h, err := w.r.Reserve(); err == nil {
						mine = append(mine, h)
						_ = w.e.Defer(func(win *registry.Window) error {
							_ = w.walkers.SpawnReserved(win, h, walker{Own: own{Self: h}})
							return nil
						})
					}
				case 3:
					if len(mine) > 0 {
						_ = w.r.Destroy(mine[rnd.IntN(len(mine))])
					}
				case 4:
					_ = w.e.Rollback(max(w.e.FrameNumber(), 10) - rnd.Uint64N(9))
				case 5:
					_ = w.e.Input(uint8(k), max(w.e.FrameNumber(), 10)-rnd.Uint64N(6), []byte{byte(rnd.Uint32())})
				}
				_ = w.r.Read(func(s *registry.Snapshot) error {
					for _, h := range mine[max(0, len(mine)-10):] {
						if o, err := registry.Peek[own](s, h); err == nil && o.Self != h {
							t.Errorf("%v is %v", h, o.Self)
						}
					}
					return nil
				})
			}
		})
	}
	callers.Wait()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, w.r.Verify())
	require.NotZero(t, w.e.Stats().Rollbacks)
}

// TestAnObserverOfARollbackHasNoSay: what it is told of is to be simulated again as it was.
func TestAnObserverOfARollbackHasNoSay(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	for range 10 {
		require.NoError(t, w.e.Step())
	}
	refused := 0
	_, err := w.r.Observe(registry.Destroyed, func(f *registry.Frame, es []registry.Event) {
		if w.r.Alive(es[0].Entity) || f.FrameNumber() != 5 {
			return
		}
		for _, err := range []error{
			f.Destroy(es[0].Entity),
			registry.AddLater(f, es[0].Entity, mark{}),
			registry.RemoveLater[mark](f, es[0].Entity),
			func() error { _, err := w.walkers.SpawnLater(f, walker{}); return err }(),
		} {
			if err != nil {
				require.ErrorIs(t, err, registry.ErrDeterministic)
				refused++
			}
		}
		f.Defer(func(*registry.Window) error { panic("dropped") })
	})
	require.NoError(t, err)
	require.NoError(t, w.e.Step())
	require.NoError(t, w.e.Rollback(5))
	require.NoError(t, w.e.Step())
	require.Equal(t, 4, refused)
	require.NoError(t, w.r.Verify())
}

// TestANewEngineHasNoPast of another engine.
func TestANewEngineHasNoPast(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	for range 12 {
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Stop())
	require.NoError(t, w.r.Update(func(win *registry.Window) error {
		_, err := w.walkers.Spawn(win, walker{})
		return err
	}))
	require.NoError(t, w.r.Verify())
	e, err := logic.New(w.r, logic.Config{Workers: 1})
	require.NoError(t, err)
	require.NoError(t, e.Step())
	require.NoError(t, e.Step())
	require.ErrorIs(t, e.Rollback(11), logic.ErrTooOld)
	require.NoError(t, e.Rollback(13))
	require.NoError(t, e.Step())
	require.NoError(t, w.r.Verify())
	require.NoError(t, e.Stop())
}

// TestASteadyFrameWithARingAllocatesNothing: the history uses its memory again.
func TestASteadyFrameWithARingAllocatesNothing(t *testing.T) {
	if raceEnabled || check.Enabled {
		t.Skip("both allocate")
	}
	r, err := registry.New(registry.Config{TemporalFrames: 8, MaxEntities: 10_000})
	require.NoError(t, err)
	temporal[spot](t, r)
	walkers, err := registry.RegisterClass[walker](r)
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{Workers: 1})
	require.NoError(t, err)
	var hs []handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) (err error) {
		hs, err = walkers.SpawnBatch(w, 1000, nil)
		return err
	}))
	_, err = e.AddSystem(logic.Physics, "churn", func(f *logic.Frame) {
		for i := range 10 {
			_ = registry.Set(f, hs[i], spot{X: 1})
			_ = f.Destroy(hs[i])
			hs[i], _ = walkers.SpawnLater(f.Frame, walker{})
		}
	})
	require.NoError(t, err)
	move := func(w *registry.Window) error { return registry.Set(w, hs[500], spot{Y: 1}) }
	step := func() {
		_ = e.Defer(move)
		_ = e.Step()
	}
	for range 100 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(200, step))
	require.NoError(t, e.Stop())
}

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
	const many = 20_000
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
