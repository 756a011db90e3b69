package pool_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	place  struct{ X, Y float64 }
	flight struct{ DX, DY float32 }
	note   struct{ Text string }
	lit    struct{}

	arrow struct {
		Place  place
		Flight flight
		Note   note
	}
	stone struct {
		Place place
		Note  note
	}
)

var errPlanned = errors.New("planned")

// quiver is a registry with a class for pools and one for others. It is verified when the test ends.
type quiver struct {
	t      testing.TB
	r      *registry.Registry
	arrows *registry.Class[arrow]
	stones *registry.Class[stone]
}

func newQuiver(t testing.TB, c registry.Config) *quiver {
	t.Helper()
	r, err := registry.New(c)
	require.NoError(t, err)
	q := &quiver{t: t, r: r}
	q.arrows, err = registry.RegisterClass[arrow](r)
	require.NoError(t, err)
	q.stones, err = registry.RegisterClass[stone](r)
	require.NoError(t, err)
	_, err = registry.RegisterComponent[lit](r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Verify()) })
	return q
}

// update runs fn in a window that must not fail.
func (q *quiver) update(fn func(w *registry.Window)) {
	q.t.Helper()
	require.NoError(q.t, q.r.Update(func(w *registry.Window) error {
		fn(w)
		return nil
	}))
}

// fails runs fn in a window that fails, as planned.
func (q *quiver) fails(fn func(w *registry.Window)) {
	q.t.Helper()
	require.ErrorIs(q.t, q.r.Update(func(w *registry.Window) error {
		fn(w)
		return errPlanned
	}), errPlanned)
}

// frame runs a system in a frame of its own.
func (q *quiver) frame(fn func(f *registry.Frame)) {
	q.t.Helper()
	core, err := q.r.Attach(registry.Hooks{})
	require.NoError(q.t, err)
	defer core.Detach()
	require.NoError(q.t, core.Enter(false))
	defer core.Leave()
	core.Advance()
	core.DrainDestroys()
	core.ProcessDestructions()
	core.OpenWindow()
	core.CloseWindow()
	f := core.NewFrame()
	core.System("system", func() { fn(f) })
	core.Boundary()
	core.EndFrame()
}

func (q *quiver) pool(n int, initial arrow) (p *pool.Entities[arrow]) {
	q.t.Helper()
	q.update(func(w *registry.Window) {
		var err error
		p, err = pool.NewEntitiesOf(w, q.arrows, n, initial)
		require.NoError(q.t, err)
	})
	return p
}

// read gives the components of an entity of the class.
func read(t testing.TB, a registry.Access, h handles.Local) (e arrow) {
	t.Helper()
	var err error
	e.Place, err = registry.Peek[place](a, h)
	require.NoError(t, err)
	e.Flight, err = registry.Peek[flight](a, h)
	require.NoError(t, err)
	e.Note, err = registry.Peek[note](a, h)
	require.NoError(t, err)
	return e
}

// used are the counters of a pool of n of which some are in use.
func used(n, inUse, peak, refused int) pool.Stats {
	return pool.Stats{Cap: n, InUse: inUse, Free: n - inUse, Peak: peak, Built: n, Refused: refused, Max: n, Grow: pool.Fixed(), Warm: true}
}

var (
	bare  = arrow{Place: place{1, 1}, Note: note{"idle"}}
	fired = arrow{Place: place{2, 3}, Flight: flight{1, -1}, Note: note{"fired"}}
)

func TestAPoolNeedsRoomAndAClass(t *testing.T) {
	q := newQuiver(t, registry.Config{MaxEntities: 10})
	other := newQuiver(t, registry.Config{})
	var late *registry.Window
	q.update(func(w *registry.Window) {
		late = w
		for _, n := range []int{0, -1, 11} {
			_, err := pool.NewEntities(w, q.arrows, n)
			require.Error(t, err, n)
		}
		_, err := pool.NewEntities[arrow](w, nil, 3)
		require.ErrorIs(t, err, registry.ErrNotRegistered)
		_, err = pool.NewEntities(w, other.arrows, 3)
		require.Error(t, err)
		_, err = q.stones.Spawn(w, stone{})
		require.NoError(t, err)
		_, err = pool.NewEntities(w, q.arrows, 10)
		require.ErrorIs(t, err, pool.ErrExhausted)
		p, err := pool.NewEntities(w, q.arrows, 9)
		require.NoError(t, err)
		require.Equal(t, 9, p.Len())
		_, err = q.stones.Spawn(w, stone{})
		require.ErrorIs(t, err, registry.ErrExhausted, "a pool takes its room whether it is used or not")
		require.Len(t, pool.EntitiesOf(w, q.arrows), 1)
	})
	_, err := pool.NewEntities(late, q.arrows, 1)
	require.ErrorIs(t, err, registry.ErrExpired)
}

func TestIdleSlotsCanBeReadAndWritten(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(3, bare)
	q.update(func(w *registry.Window) {
		for i := range 3 {
			h := p.Slot(i)
			require.True(t, q.r.Alive(h))
			require.False(t, registry.Active(w, h))
			require.Equal(t, bare, read(t, w, h))
			at, ok := p.SlotOf(h)
			require.True(t, ok)
			require.Equal(t, i, at)
		}
		require.Zero(t, p.Slot(-1))
		require.Zero(t, p.Slot(3))
		require.NoError(t, registry.Set(w, p.Slot(0), place{7, 7}))
		require.ErrorIs(t, registry.SetActive(w, p.Slot(0), true), pool.ErrIdle)
		require.ErrorIs(t, registry.Add(w, p.Slot(0), lit{}), pool.ErrIdle)
		require.ErrorIs(t, registry.Remove[note](w, p.Slot(0)), pool.ErrIdle)
		require.ErrorIs(t, registry.SetParent(w, p.Slot(0), p.Slot(1)), pool.ErrIdle)
		_, err := w.AssignNet(p.Slot(0))
		require.ErrorIs(t, err, pool.ErrIdle)
		require.ErrorIs(t, p.Despawn(w, p.Slot(0)), pool.ErrIdle)

		h, ok := p.SpawnInitial(w)
		require.True(t, ok)
		require.Equal(t, place{7, 7}, read(t, w, h).Place, "as the slot had it")
		require.NoError(t, p.Despawn(w, h))
		require.Equal(t, bare, read(t, w, p.Slot(0)))
	})
	require.Equal(t, used(3, 0, 1, 0), p.Stats())
}

func TestSpawningTakesTheLowestIdleSlot(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		q := newQuiver(t, c)
		p := q.pool(130, bare)
		var hs []handles.Local
		q.update(func(w *registry.Window) {
			for i := range 130 {
				idle := p.Slot(i)
				h, ok := p.Spawn(w, fired)
				require.True(t, ok)
				require.Equal(t, c.TemporalFrames == 0, h == idle, "with a ring it has a name of its own")
				require.Equal(t, h, p.Slot(i))
				require.Equal(t, fired, read(t, w, h))
				hs = append(hs, h)
			}
			h, ok := p.Spawn(w, fired)
			require.False(t, ok)
			require.Zero(t, h)
			require.Equal(t, used(130, 130, 130, 1), p.Stats(), "in the window that changes it, too")
			for _, i := range []int{129, 64, 5, 63} {
				require.NoError(t, p.Despawn(w, hs[i]))
				require.ErrorIs(t, p.Despawn(w, hs[i]), registry.ErrStale)
			}
		})
		require.Equal(t, used(130, 126, 130, 1), p.Stats())
		q.frame(func(f *registry.Frame) {
			for _, i := range []int{5, 63, 64, 129} {
				h, ok := p.SpawnNow(f, fired)
				require.True(t, ok)
				at, ok := p.SlotOf(h)
				require.True(t, ok)
				require.Equal(t, i, at)
				require.NotEqual(t, hs[i], h)
				require.False(t, q.r.Alive(hs[i]))
			}
		})
	}
}

func TestSpawnFromTakesWhatBothHave(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(4, bare)
	var dead handles.Local
	q.update(func(w *registry.Window) {
		caller, err := q.stones.Spawn(w, stone{place{5, 6}, note{"stone"}})
		require.NoError(t, err)
		h, ok := p.SpawnFrom(w, caller)
		require.True(t, ok)
		require.Equal(t, arrow{Place: place{5, 6}, Note: note{"stone"}}, read(t, w, h))
		next, ok := p.SpawnFrom(w, h)
		require.True(t, ok)
		require.Equal(t, read(t, w, h), read(t, w, next))
		require.NoError(t, registry.Remove[note](w, h))
		next, ok = p.SpawnFrom(w, h)
		require.True(t, ok)
		require.Equal(t, arrow{Place: place{5, 6}, Note: note{"idle"}}, read(t, w, next))
		dead = caller
		require.NoError(t, w.Destroy(caller))
		_, ok = p.SpawnFrom(w, caller)
		require.False(t, ok)
		_, ok = p.SpawnFrom(w, 0)
		require.False(t, ok)
	})
	require.Equal(t, used(4, 3, 3, 0), p.Stats(), "a caller who is dead is no refusal")
	q.frame(func(f *registry.Frame) {
		_, ok := p.SpawnFromNow(f, dead)
		require.False(t, ok)
		_, ok = p.SpawnFromNow(f, p.Slot(0))
		require.True(t, ok)
	})
}

func TestDespawnWhereGoesUpTheSlots(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(200, bare)
	var hs []handles.Local
	q.update(func(w *registry.Window) {
		for i := range 150 {
			h, _ := p.Spawn(w, arrow{Place: place{float64(i), 0}})
			hs = append(hs, h)
		}
		require.NoError(t, registry.Remove[flight](w, hs[70]), "somewhere else, and asked about in its turn")
		require.NoError(t, registry.SetActive(w, hs[71], false), "not asked about")
		require.NoError(t, registry.SetParent(w, hs[10], hs[9]), "gone with its parent")
		var asked []float64
		n := p.DespawnWhere(w, func(h handles.Local, e *arrow) bool {
			asked = append(asked, e.Place.X)
			e.Place.X = -1 // a copy
			return h != hs[3]
		})
		require.Equal(t, 147, n)
		require.Len(t, asked, 148)
		require.IsIncreasing(t, asked)
		for _, i := range []int{3, 71} {
			require.Equal(t, float64(i), read(t, w, hs[i]).Place.X)
		}
	})
	require.Equal(t, used(200, 3, 150, 0), p.Stats(), "a child comes home in the next frame")
	q.frame(func(f *registry.Frame) {
		require.Equal(t, 2, p.Stats().InUse)
		spawned := 0
		n := p.DespawnWhereNow(f, func(h handles.Local, e *arrow) bool {
			if spawned == 0 { // in a slot that was passed
				_, ok := p.SpawnNow(f, fired)
				require.True(t, ok)
			}
			spawned++
			return true
		})
		require.Equal(t, 1, n)
		require.Equal(t, 1, spawned)
	})
}

func TestAFailedCallbackLeavesThePoolAsItWas(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		q := newQuiver(t, c)
		p := q.pool(5, bare)
		var kept handles.Local
		q.update(func(w *registry.Window) {
			kept, _ = p.Spawn(w, fired)
			require.NoError(t, registry.Set(w, p.Slot(3), note{"written"}))
		})
		seen := map[handles.Local]bool{}
		var made *pool.Entities[arrow]
		q.fails(func(w *registry.Window) {
			for range 3 {
				require.NoError(t, p.Despawn(w, p.Slot(0)))
				for i := range 5 {
					h, ok := p.Spawn(w, arrow{Place: place{float64(i), 9}})
					require.True(t, ok)
					seen[h] = true
				}
				require.Equal(t, 5, p.DespawnWhere(w, func(handles.Local, *arrow) bool { return true }))
				h, _ := p.Spawn(w, fired)
				seen[h] = true
			}
			var err error
			made, err = pool.NewEntities(w, q.arrows, 4)
			require.NoError(t, err)
			seen[made.Slot(0)] = true
		})
		require.True(t, q.r.Alive(kept))
		require.Equal(t, kept, p.Slot(0))
		require.Equal(t, used(5, 1, 5, 0), p.Stats())
		require.Zero(t, made.Stats().Cap)
		q.update(func(w *registry.Window) {
			require.Equal(t, fired, read(t, w, kept))
			want := bare
			want.Note.Text = "written"
			require.Equal(t, want, read(t, w, p.Slot(3)))
			_, ok := made.Spawn(w, fired)
			require.False(t, ok, "it was never made")
			for h := range seen {
				require.False(t, q.r.Alive(h), "%v", h)
				require.Error(t, p.Despawn(w, h))
			}
			for range 4 {
				h, ok := p.Spawn(w, fired)
				require.True(t, ok)
				require.False(t, seen[h])
			}
		})
	}
}

// TestHalfABatchLeavesThePoolAsItWas has the init of a batch spawn in a pool, and panic, and the callback go on.
func TestHalfABatchLeavesThePoolAsItWas(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(8, bare)
	var before, inside, after handles.Local
	q.update(func(w *registry.Window) {
		before, _ = p.Spawn(w, fired)
		require.Panics(t, func() {
			_, _ = q.stones.SpawnBatch(w, 3, func(i int, e *stone) {
				inside, _ = p.Spawn(w, fired)
				require.NoError(t, p.Despawn(w, before))
				if i == 0 {
					panic("half")
				}
			})
		})
		require.True(t, q.r.Alive(before))
		require.False(t, q.r.Alive(inside))
		require.Equal(t, fired, read(t, w, before))
		after, _ = p.Spawn(w, fired)
		require.NotEqual(t, inside, after)
	})
	require.Equal(t, used(8, 2, 2, 0), p.Stats())
	require.True(t, q.r.Alive(after))
}

func TestAnExpiredTokenIsMisuse(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(2, bare)
	var w *registry.Window
	var h handles.Local
	q.update(func(now *registry.Window) {
		w = now
		h, _ = p.Spawn(w, fired)
	})
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { p.Spawn(w, fired) })
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { p.SpawnInitial(w) })
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { p.SpawnFrom(w, h) })
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { p.DespawnWhere(w, nil) })
	require.ErrorIs(t, p.Despawn(w, h), registry.ErrExpired)
	other := newQuiver(t, registry.Config{})
	other.update(func(w *registry.Window) {
		_, ok := p.Spawn(w, fired)
		require.False(t, ok)
		require.Error(t, p.Despawn(w, h))
	})
	require.True(t, q.r.Alive(h))
	require.Equal(t, used(2, 1, 1, 0), p.Stats())
}

// TestObituariesOfPooledOnes says of what those have died who leave nothing behind.
func TestObituariesOfPooledOnes(t *testing.T) {
	q := newQuiver(t, registry.Config{})
	p := q.pool(5000, bare)
	var hs []handles.Local
	q.update(func(w *registry.Window) {
		for range 5000 {
			h, _ := p.Spawn(w, fired)
			hs = append(hs, h)
		}
		w.Named("first")
		require.NoError(t, p.Despawn(w, hs[0]))
		w.Named("second")
		require.NoError(t, p.Despawn(w, hs[1]))
		require.NoError(t, p.Despawn(w, hs[2]))
	})
	for i, cause := range []string{"first", "second", "second"} {
		o, ok := q.r.Obituary(hs[i])
		require.True(t, ok)
		require.Equal(t, cause, o.Cause)
	}
	q.fails(func(w *registry.Window) {
		w.Named("never")
		require.NoError(t, p.Despawn(w, hs[3]))
	})
	_, ok := q.r.Obituary(hs[3])
	require.False(t, ok)
	q.frame(func(f *registry.Frame) {
		for _, h := range hs[3:] {
			require.NoError(t, p.DespawnNow(f, h))
		}
	})
	o, ok := q.r.Obituary(hs[4999])
	require.True(t, ok)
	require.Equal(t, registry.Obituary{Frame: 1, Cause: "system"}, o)
	_, ok = q.r.Obituary(hs[2])
	require.False(t, ok, "forgotten")
}

func TestPoolsAllocateNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build notes who is inside")
	}
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		q := newQuiver(t, c)
		p := q.pool(500, bare)
		hs := make([]handles.Local, 200)
		window := func(w *registry.Window) error {
			for i := range hs {
				hs[i], _ = p.Spawn(w, fired)
			}
			p.SpawnInitial(w)
			p.SpawnFrom(w, hs[0])
			for _, h := range hs {
				if err := p.Despawn(w, h); err != nil {
					return err
				}
			}
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
			return nil
		}
		update := func() {
			if err := q.r.Update(window); err != nil {
				t.Error(err)
			}
			if p.Stats().InUse == 0 {
				t.Error("nobody is there")
			}
		}
		for range 20 { // logs grow
			update()
		}
		require.Zero(t, testing.AllocsPerRun(100, update), "%+v", c)
	}
}
