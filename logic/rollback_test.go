package logic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

// A world of its own for rollback: what lives has a place, a pacing and the handle of itself.
type (
	spot   struct{ X, Y float64 }
	pacing struct{ X, Y float64 }
	own    struct {
		Self handles.Local
		Age  uint64
	}
	mark struct{ N uint64 } // added and removed
	memo struct{ Text string }

	walker struct {
		Spot  spot
		Speed pacing
		Own   own
		Memo  memo
	}
	drone struct { // nothing of it is in the ring
		Memo memo
	}
)

// theatre is an engine with systems that do all that systems may do, driven by inputs alone.
type theatre struct {
	t       testing.TB
	r       *registry.Registry
	e       *logic.Engine
	walkers *registry.Class[walker]
	drones  *registry.Class[drone]
	lists   map[uint64][]handles.Local // after each frame, who lives
	hashes  map[uint64]uint64
}

func newTheatre(t testing.TB, c logic.Config) *theatre {
	r, err := registry.New(registry.Config{TemporalFrames: 16, Deterministic: true, MaxEntities: 5000})
	require.NoError(t, err)
	temporal[spot](t, r)
	temporal[pacing](t, r)
	temporal[own](t, r)
	temporal[mark](t, r)
	w := &theatre{t: t, r: r, lists: map[uint64][]handles.Local{}, hashes: map[uint64]uint64{}}
	w.walkers, err = registry.RegisterClass[walker](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	w.drones, err = registry.RegisterClass[drone](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	c.OnError = func(err error) { t.Errorf("frame %d: %v", w.e.FrameNumber(), err) }
	w.e, err = logic.New(r, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.e.Stop()) })
	w.direct()
	return w
}

func temporal[C any](t testing.TB, r *registry.Registry) {
	_, err := registry.RegisterComponent[C](r, registry.InTier(archetype.Temporal))
	require.NoError(t, err)
}

// direct registers the systems.
func (w *theatre) direct() {
	type moving struct {
		Spot  []spot
		Speed []pacing `ecs:"read"`
		Own   []own
		ID    []handles.Local
	}
	all, err := views.NewQuery[moving](w.r)
	require.NoError(w.t, err)
	add := func(p logic.Phase, name string, fn func(*logic.Frame)) {
		_, err := w.e.AddSystem(p, name, fn)
		require.NoError(w.t, err)
	}
	add(logic.PrePhysics, "wishes", func(f *logic.Frame) {
		in, _ := f.Input(0)
		more := 1
		if len(in) > 0 {
			more = int(in[0]) % 5
		}
		for range more {
			h, err := w.walkers.SpawnLater(f.Frame, walker{Speed: pacing{f.Rand().Float64(), 1}, Memo: memo{"system"}})
			require.NoError(w.t, err)
			f.Defer(func(win *registry.Window) error { return registry.Set(win, h, own{Self: h}) })
		}
		if f.Rand().IntN(4) == 0 {
			_, err := w.drones.SpawnLater(f.Frame, drone{memo{"drone"}})
			require.NoError(w.t, err)
		}
	})
	add(logic.Physics, "move", func(f *logic.Frame) {
		for m := range all.Runs(f) {
			for i := range m.Spot {
				m.Spot[i].X += m.Speed[i].X * f.Delta
				m.Own[i].Age++
			}
		}
	})
	add(logic.Late, "fate", func(f *logic.Frame) {
		for m := range all.Runs(f) {
			for i, h := range m.ID {
				switch n := f.Rand().IntN(100); {
				case m.Own[i].Age > 40 || n == 0:
					require.NoError(w.t, f.Destroy(h))
				case n < 4 && registry.Has[mark](f, h):
					require.NoError(w.t, registry.RemoveLater[mark](f.Frame, h))
				case n < 4:
					require.NoError(w.t, registry.AddLater(f.Frame, h, mark{m.Own[i].Age}))
				case n == 5:
					require.NoError(w.t, registry.SetActive(f, h, false))
				}
			}
		}
	})
}

// outside is what comes from outside before a frame: the same for every theatre with the same seed.
func (w *theatre) outside(rnd *rand.Rand, known *[]handles.Local) {
	enqueue := func(fn func(*registry.Window) error) {
		_, err := w.e.Enqueue(fn)
		require.NoError(w.t, err)
	}
	pick := func() handles.Local {
		if len(*known) == 0 {
			return 0
		}
		return (*known)[rnd.IntN(len(*known))]
	}
	switch a, b := pick(), pick(); rnd.IntN(9) {
	case 0, 1:
		enqueue(func(win *registry.Window) error {
			h, err := w.walkers.Spawn(win, walker{Speed: pacing{2, 2}, Memo: memo{"outside"}})
			require.NoError(w.t, registry.Set(win, h, own{Self: h}))
			*known = append(*known, h)
			return err
		})
	case 2:
		h, err := w.r.Reserve()
		require.NoError(w.t, err)
		*known = append(*known, h)
		enqueue(func(win *registry.Window) error {
			return w.walkers.SpawnReserved(win, h, walker{Own: own{Self: h}})
		})
	case 3:
		_ = w.r.Destroy(a)
	case 4:
		enqueue(func(win *registry.Window) error {
			win.Named("outside")
			_ = win.Destroy(a)
			return nil
		})
	case 5:
		enqueue(func(win *registry.Window) error {
			_ = registry.SetParent(win, a, b)
			_ = registry.Set(win, b, pacing{3, 3})
			if p, err := registry.Get[spot](win, a); err == nil {
				p.Y++
			}
			return nil
		})
	case 6:
		enqueue(func(win *registry.Window) error {
			_ = registry.Add(win, a, mark{7})
			_ = registry.SetActive(win, b, true)
			return nil
		})
	case 7:
		require.NoError(w.t, w.r.Update(func(win *registry.Window) error {
			hs, err := w.walkers.SpawnBatch(win, 3, func(_ int, e *walker) { e.Spot.Y = 9 })
			*known = append(*known, hs...)
			for _, h := range hs {
				require.NoError(w.t, registry.Set(win, h, own{Self: h}))
			}
			return err
		}))
	case 8:
		enqueue(func(win *registry.Window) error {
			_, _ = w.walkers.Spawn(win, walker{})
			return fmt.Errorf("planned")
		})
	}
}

// living lists who lives, in order of slots, each with what it is.
func (w *theatre) living() (hs []handles.Local, state string) {
	type shown struct {
		ID []handles.Local
	}
	q, err := views.NewQuery[shown](w.r)
	require.NoError(w.t, err)
	require.NoError(w.t, w.r.Read(func(s *registry.Snapshot) error {
		for m := range q.Runs(s) {
			for _, h := range m.ID {
				hs = append(hs, h)
				if o, err := registry.Peek[own](s, h); err == nil {
					p, _ := registry.Peek[spot](s, h)
					v, _ := registry.Peek[pacing](s, h)
					k, _ := registry.Peek[mark](s, h)
					state += fmt.Sprintln(h, o, p, v, k)
					if o.Self != 0 {
						require.Equal(w.t, h, o.Self)
					}
				}
			}
		}
		return nil
	}))
	return hs, state
}

// TestRollbackOnOneSideOnly is the case logic-17.
func TestRollbackOnOneSideOnly(t *testing.T) {
	frames := 5000
	if testing.Short() || raceEnabled {
		frames = 400
	}
	plain, back := newTheatre(t, logic.Config{Workers: 1}), newTheatre(t, logic.Config{Workers: 1})
	var knownPlain, knownBack []handles.Local
	one, two := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	depth := rand.New(rand.NewPCG(2, 2))
	for n := range uint64(frames) {
		in := []byte{byte(n * 7)}
		for w, rnd := range map[*theatre]*rand.Rand{plain: one, back: two} {
			known := &knownPlain
			if w == back {
				known = &knownBack
			}
			require.NoError(t, w.e.Input(0, n+1, in))
			w.outside(rnd, known)
		}
		if n > 0 {
			require.NoError(t, back.e.Rollback(n-min(n-1, depth.Uint64N(15))))
		}
		require.NoError(t, plain.e.Step())
		require.NoError(t, back.e.Step())
		require.Equal(t, knownPlain, knownBack)
		hs, state := plain.living()
		hs2, state2 := back.living()
		require.Equal(t, state, state2, "frame %d", n+1)
		require.Equal(t, hs, hs2, "frame %d", n+1)
		if n%50 == 0 || n < 50 {
			require.NoError(t, plain.r.Verify())
			require.NoError(t, back.r.Verify())
		}
	}
	require.NotZero(t, back.e.Stats().Rollbacks)
	require.NotEmpty(t, slices.Collect(func(yield func(uint64) bool) { yield(snapshotHash(t, back)) }))
}

func snapshotHash(t testing.TB, w *theatre) (hash uint64) {
	require.NoError(t, w.r.Read(func(s *registry.Snapshot) (err error) {
		hash, err = snapshot.Hash(s)
		return err
	}))
	return hash
}
