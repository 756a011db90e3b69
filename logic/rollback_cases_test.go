package logic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// logbook is what somebody outside knows of the entities who hears of every event and move.
type logbook struct {
	alive map[handles.Local]bool
	at    map[handles.Local]uint32
}

func keepLogbook(t testing.TB, r *registry.Registry) *logbook {
	l := &logbook{map[handles.Local]bool{}, map[handles.Local]uint32{}}
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

// TestRegistry13ALedgerSurvivesRollbacks is the part of the case registry-13 that is about rollback, and that of defrag-5 about
// subscribers: who hears of everything knows who lives, and where.
func TestRegistry13ALedgerSurvivesRollbacks(t *testing.T) {
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

// TestDefrag5RollbackOverAMove is the case defrag-5.
func TestDefrag5RollbackOverAMove(t *testing.T) {
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

// TestRollbackOverAChunksMove has chunks of one class lowered into the room that another class has left before there was a
// history, and goes back over that.
func TestRollbackOverAChunksMove(t *testing.T) {
	r, err := registry.New(registry.Config{TemporalFrames: 8})
	require.NoError(t, err)
	temporal[own](t, r)
	temporal[mark](t, r)
	type gone struct{ Mark mark }
	type piece struct {
		Own  own
		Memo memo
	}
	leavers, err := registry.RegisterClass[gone](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	pieces, err := registry.RegisterClass[piece](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	var hs []handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) error {
		early, err := leavers.SpawnBatch(w, 300, nil)
		require.NoError(t, err)
		hs, err = pieces.SpawnBatch(w, 200, func(i int, p *piece) { p.Memo.Text = fmt.Sprint(i) })
		require.NoError(t, err)
		for _, h := range hs {
			require.NoError(t, registry.Set(w, h, own{Self: h}))
		}
		require.Equal(t, len(early), w.DestroyBatch(early))
		return nil
	}))
	for range 4 { // empty chunks go
		require.NoError(t, r.Update(func(w *registry.Window) error { w.ProcessDeferredDestructions(); return nil }))
	}
	l := keepLogbook(t, r)
	compactor, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	before := r.CacheCap()
	require.NoError(t, r.Update(func(w *registry.Window) error { // what is left of them
		_, err := compactor.Run(w)
		return err
	}))
	require.NoError(t, r.Verify())
	require.Less(t, r.CacheCap(), before, "there was room")

	// The same again, with a history.
	require.NoError(t, r.Update(func(w *registry.Window) error {
		late, err := leavers.SpawnBatch(w, 640, nil)
		require.NoError(t, err)
		more, err := pieces.SpawnBatch(w, 200, nil)
		require.NoError(t, err)
		for _, h := range more {
			require.NoError(t, registry.Set(w, h, own{Self: h}))
		}
		hs = append(hs, more...)
		require.Equal(t, len(late), w.DestroyBatch(late))
		return nil
	}))
	for range 4 {
		require.NoError(t, r.Update(func(w *registry.Window) error { w.ProcessDeferredDestructions(); return nil }))
	}
	e, err := logic.New(r, logic.Config{OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	agree := func() {
		t.Helper()
		require.NoError(t, r.Verify())
		require.NoError(t, r.Read(func(s *registry.Snapshot) error {
			for _, h := range hs {
				o, err := registry.Peek[own](s, h)
				require.NoError(t, err)
				require.Equal(t, h, o.Self)
				at, _ := registry.CacheIndex(s, h)
				if moved, ok := l.at[h]; ok {
					require.Equal(t, moved, at, "%v", h)
				}
			}
			return nil
		}))
	}
	require.NoError(t, e.Step())
	require.NoError(t, e.Step())
	agree()
	before = r.CacheCap()
	require.NoError(t, e.Defer(func(w *registry.Window) error { _, err := compactor.Run(w); return err }))
	require.NoError(t, e.Step())
	agree()
	require.Less(t, r.CacheCap(), before, "chunks have moved")
	require.NoError(t, e.Step())
	require.NoError(t, e.Rollback(2))
	require.NoError(t, e.Step())
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

// TestASystemThatWasTooLateIsSoAgain: who was destroyed from outside before a system wanted to dies the same death when
// the frame is simulated again.
func TestASystemThatWasTooLateIsSoAgain(t *testing.T) {
	for _, sync := range []int{0, 3} {
		r, err := registry.New(registry.Config{TemporalFrames: 16, Deterministic: true})
		require.NoError(t, err)
		temporal[spot](t, r)
		walkers, err := registry.RegisterClass[walker](r)
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{SyncTest: sync, Workers: 1})
		require.NoError(t, err)
		var h handles.Local
		require.NoError(t, e.Defer(func(w *registry.Window) (err error) {
			h, err = walkers.Spawn(w, walker{})
			return err
		}))
		_, err = e.AddSystem(logic.Physics, "late", func(f *logic.Frame) {
			if f.FrameNumber() == 10 {
				require.ErrorIs(t, f.Destroy(h), registry.ErrStale)
			}
		})
		require.NoError(t, err)
		for frame := range uint64(14) {
			if frame == 9 {
				require.NoError(t, e.Defer(func(*registry.Window) error { return r.Destroy(h) }))
			}
			require.NoError(t, e.Step())
		}
		require.NoError(t, e.Rollback(8))
		require.NoError(t, e.Step())
		o, ok := r.Obituary(h)
		require.True(t, ok)
		require.Equal(t, registry.Obituary{Frame: 11}, o)
		require.NoError(t, r.Verify())
		require.NoError(t, e.Stop())
	}
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
	countsAllocations(t)
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
