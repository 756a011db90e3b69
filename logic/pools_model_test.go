package logic_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// A world of pools for rollback: who is in a slot has a badge, which is the handle that it was spawned with, and a
// serial number.
type (
	badge struct {
		Self handles.Local
		N    uint64
	}
	guest struct {
		Spot  spot
		Badge badge
		Memo  memo
	}
)

// inPassing is the number of somebody who is to leave in the same callback.
const inPassing = 1 << 40

// hotel is an engine whose systems spawn and despawn in pools, driven by inputs alone.
type hotel struct {
	t      testing.TB
	r      *registry.Registry
	e      *logic.Engine
	guests *registry.Class[guest]
	pools  map[*registry.Block]*pool.Entities[guest]
	most   int  // pools
	births bool // only births come from outside, which all fit
	crowd  bool // other goroutines destroy whom they like, at any time
	serial uint64
	given  map[handles.Local]uint64 // what came from outside, with the serial number that it has
}

// lotOf is a hotel without an engine and without pools.
func lotOf(t testing.TB, rc registry.Config) *hotel {
	rc.MaxEntities = 5000
	r, err := registry.New(rc)
	require.NoError(t, err)
	temporal[spot](t, r)
	temporal[badge](t, r)
	temporal[mark](t, r)
	w := &hotel{t: t, r: r, pools: map[*registry.Block]*pool.Entities[guest]{}, most: 4, given: map[handles.Local]uint64{}}
	w.guests, err = registry.RegisterClass[guest](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	return w
}

// newHotel makes one with pools of some sizes.
func newHotel(t testing.TB, rc registry.Config, lc logic.Config, sizes ...int) *hotel {
	w := lotOf(t, rc)
	if lc.OnError == nil {
		lc.OnError = func(err error) {
			if !errors.Is(err, registry.ErrStale) && !errors.Is(err, logic.ErrStopped) && !errors.Is(err, errTest) {
				t.Errorf("frame %d: %v", w.e.FrameNumber(), err)
			}
		}
	}
	var err error
	w.e, err = logic.New(w.r, lc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.e.Stop()) })
	require.NoError(t, w.r.Update(func(win *registry.Window) error {
		for _, n := range sizes {
			w.build(win, n)
		}
		return nil
	}))
	return w
}

// build makes another pool.
func (w *hotel) build(win *registry.Window, n int) *pool.Entities[guest] {
	p, err := pool.NewEntitiesOf(win, w.guests, n, guest{Spot: spot{X: float64(n)}, Memo: memo{"empty"}})
	require.NoError(w.t, err)
	w.pools[p.Block()] = p
	return p
}

// all are the pools that there are now.
func (w *hotel) all() (list []*pool.Entities[guest]) {
	for _, b := range registry.BlocksOf(w.r, w.guests) {
		list = append(list, w.pools[b])
	}
	return list
}

// pool is one of them, whatever n is.
func (w *hotel) pool(n int) *pool.Entities[guest] {
	list := w.all()
	return list[n%len(list)]
}

// add registers a system.
func (w *hotel) add(p logic.Phase, name string, fn func(*logic.Frame)) {
	_, err := w.e.AddSystem(p, name, fn)
	require.NoError(w.t, err)
}

// arrive spawns in a system.
func (w *hotel) arrive(f *logic.Frame, n int) (handles.Local, bool) {
	h, ok := w.pool(n).SpawnNow(f.Frame, guest{Spot: spot{X: f.Rand().Float64()}, Memo: memo{"system"}})
	if ok {
		require.NoError(w.t, registry.Set(f, h, badge{h, uint64(n)}))
	}
	return h, ok
}

// check spawns in a window.
func (w *hotel) check(win *registry.Window, n int, serial uint64) (handles.Local, bool) {
	h, ok := w.pool(n).Spawn(win, guest{Spot: spot{Y: 1}, Memo: memo{"window"}})
	if ok {
		require.NoError(w.t, registry.Set(win, h, badge{h, serial}))
	}
	return h, ok
}

// leave ends h, who has just come, unless somebody of the crowd has.
func (w *hotel) leave(win *registry.Window, p *pool.Entities[guest], h handles.Local) {
	if err := p.Despawn(win, h); !w.crowd || !errors.Is(err, registry.ErrStale) {
		require.NoError(w.t, err)
	}
}

// direct registers the systems.
func (w *hotel) direct() {
	type moving struct {
		Spot  []spot
		Badge []badge `ecs:"read"`
		ID    []handles.Local
	}
	all, err := views.NewQuery[moving](w.r)
	require.NoError(w.t, err)
	w.add(logic.PrePhysics, "find", func(f *logic.Frame) {
		for _, p := range pool.EntitiesOf(f, w.guests) { // where it is a replay, they were made from a record
			w.pools[p.Block()] = p
		}
	})
	w.add(logic.PrePhysics, "arrivals", func(f *logic.Frame) {
		in, _ := f.Input(0)
		more := 2
		if len(in) > 0 {
			more = int(in[0]) % 7
		}
		if len(in) > 1 {
			for range in[1] { // other chances
				f.Rand().Uint64()
			}
		}
		for range more {
			h, ok := w.arrive(f, f.Rand().IntN(8))
			if ok && f.Rand().IntN(4) == 0 && !calm(f) { // gone in the same frame
				_ = w.pools[w.blockOf(h)].DespawnNow(f.Frame, h)
				w.arrive(f, f.Rand().IntN(8))
			}
		}
		w.wishes(f)
	})
	w.add(logic.Physics, "move", func(f *logic.Frame) {
		for m := range all.Runs(f) {
			for i := range m.Spot {
				if !w.crowd || m.Badge[i].N != inPassing { // else somebody of the crowd was first: it is dead from the next window on
					require.Equal(w.t, m.ID[i], m.Badge[i].Self)
				}
				m.Spot[i].X += f.Delta
			}
		}
	})
	var doomed []handles.Local
	w.add(logic.Late, "fate", func(f *logic.Frame) {
		if calm(f) {
			return
		}
		doomed = doomed[:0]
		for m := range all.Runs(f) {
			for _, h := range m.ID {
				switch n := f.Rand().IntN(100); {
				case n < 4:
					_ = f.Destroy(h) // somebody outside may have been first
				case n < 8:
					doomed = append(doomed, h)
				case n < 12 && registry.Has[mark](f, h):
					require.NoError(w.t, registry.RemoveLater[mark](f.Frame, h))
				case n < 12:
					require.NoError(w.t, registry.AddLater(f.Frame, h, mark{uint64(n)}))
				case n == 12:
					_ = registry.SetActive(f, h, false) // whoever stood above it may have gone just now
				}
			}
		}
		for _, h := range doomed {
			w.depart(f, h)
		}
		if f.Rand().IntN(6) == 0 {
			all.Parallel(f, func(part *registry.Frame, m *moving) {
				for _, h := range m.ID {
					if part.Rand().IntN(8) == 0 {
						_ = part.Destroy(h)
					}
				}
			})
		}
		if f.Rand().IntN(5) == 0 {
			w.pool(f.Rand().IntN(8)).DespawnWhereNow(f.Frame, func(_ handles.Local, e *guest) bool { return e.Spot.X > 1 && f.Rand().IntN(3) == 0 })
		}
	})
}

// calm says that no system is to destroy anybody in a frame: a callback of its window has, through the registry, and whoever
// is dead for others is not for a frame that is simulated again.
func calm(f *logic.Frame) bool {
	in, _ := f.Input(0)
	return len(in) > 2
}

// wishes are what the systems put off.
func (w *hotel) wishes(f *logic.Frame) {
	rnd := f.Rand()
	n, k, fails := rnd.IntN(8), rnd.IntN(4), rnd.IntN(3) == 0
	end := func() error {
		if fails {
			return errTest
		}
		return nil
	}
	switch rnd.IntN(8) {
	case 0, 1:
		f.Defer(func(win *registry.Window) error {
			for i := range k {
				w.check(win, n+i, uint64(i))
			}
			return end()
		})
	case 2:
		at := rnd.IntN(1000)
		f.Defer(func(win *registry.Window) error {
			p := w.pool(n)
			for i := range k + 1 {
				_ = p.Despawn(win, p.Slot((at+i)%p.Len()))
			}
			w.check(win, n, 5)
			return end()
		})
	case 3:
		f.Defer(func(win *registry.Window) error {
			parent, ok := w.check(win, n, 6)
			if !ok {
				return end()
			}
			if child, ok := w.check(win, n+1, 7); ok {
				require.NoError(w.t, registry.SetParent(win, child, parent))
				require.NoError(w.t, registry.Add(win, child, mark{8}))
			}
			return end()
		})
	case 4:
		if k == 0 {
			f.Defer(func(win *registry.Window) error {
				if len(w.all()) < w.most {
					w.build(win, 3+n)
					w.check(win, len(w.all())-1, 9)
				}
				return end()
			})
		}
	case 5:
		h, err := w.guests.SpawnLater(f.Frame, guest{}) // beside the pools
		require.NoError(w.t, err)
		f.Defer(func(win *registry.Window) error { return registry.Set(win, h, badge{Self: h}) })
	case 6:
		f.Defer(func(win *registry.Window) error { // one after another in the same slot
			p := w.pool(n)
			for i := range k + 1 {
				if h, ok := w.check(win, n, uint64(i)); ok {
					w.leave(win, p, h)
				}
			}
			w.check(win, n, 9)
			return end()
		})
	case 7:
		f.Defer(func(win *registry.Window) error {
			w.inVain(win, n, k)
			return end()
		})
	}
}

// inVain spawns and despawns in a part of a callback that is taken back alone. Now and then the pool is one that the
// callback has made.
func (w *hotel) inVain(win *registry.Window, n, k int) {
	p := w.pool(n)
	if k == 0 && len(w.all()) < w.most {
		p = w.build(win, 4)
	}
	w.check(win, n, 1)
	require.Panics(w.t, func() {
		_, _ = w.guests.SpawnBatch(win, 1, func(int, *guest) {
			for i := range 3 {
				h, ok := p.Spawn(win, guest{})
				if ok && i < k {
					w.leave(win, p, h)
				}
				_ = p.Despawn(win, p.Slot(n%p.Len()))
			}
			panic(errTest)
		})
	})
	_ = p.Despawn(win, p.Slot(n%p.Len()))
	_, _ = p.Spawn(win, guest{Badge: badge{N: inPassing}})
	p.DespawnWhere(win, func(h handles.Local, e *guest) bool { return e.Badge.Self != h })
}

// depart ends somebody in a system, in a pool or not.
func (w *hotel) depart(f *logic.Frame, h handles.Local) {
	if b := w.blockOf(h); b != nil {
		_ = w.pools[b].DespawnNow(f.Frame, h)
	} else {
		_ = f.Destroy(h)
	}
}

// blockOf is the block that h is of.
func (w *hotel) blockOf(h handles.Local) *registry.Block {
	for _, b := range registry.BlocksOf(w.r, w.guests) {
		if _, ok := b.SlotOf(h); ok {
			return b
		}
	}
	return nil
}

// outside is what comes from outside before a frame: the same for every hotel with the same seed. It says whether the
// frame is to be a calm one.
func (w *hotel) outside(rnd *rand.Rand, known *[]handles.Local) bool {
	enqueue := func(fn func(*registry.Window) error) {
		_, err := w.e.Enqueue(fn)
		require.NoError(w.t, err)
	}
	pick := func() handles.Local {
		if n := rnd.IntN(len(*known) + 10); n < len(*known) {
			return (*known)[n]
		}
		return 0
	}
	n, at, k, fails := rnd.IntN(8), rnd.IntN(1000), rnd.IntN(4), rnd.IntN(3) == 0
	what, a, b := rnd.IntN(19), pick(), pick()
	who := func(h handles.Local, add int) handles.Local {
		if h != 0 {
			return h
		}
		p := w.pool(n)
		return p.Slot((at + add) % p.Len())
	}
	end := func() error {
		if fails {
			return errTest
		}
		return nil
	}
	if w.births {
		what = []int{0, 1, 2, 4, 17}[what%5] // whether somebody can be destroyed is a guess, too
	}
	check := func(win *registry.Window, n int) (handles.Local, bool) {
		w.serial++
		h, ok := w.check(win, n, w.serial)
		if ok {
			*known = append(*known, h)
			w.given[h] = w.serial
		}
		return h, ok
	}
	switch what {
	case 0, 1:
		enqueue(func(win *registry.Window) error {
			check(win, n)
			return end()
		})
	case 2:
		require.NoError(w.t, w.r.Update(func(win *registry.Window) error {
			for i := range k {
				check(win, n+i)
			}
			return nil
		}))
	case 3:
		_ = w.r.Destroy(who(a, 0))
	case 4:
		enqueue(func(win *registry.Window) error {
			for i := range k {
				check(win, n+i)
			}
			hs, err := w.guests.SpawnBatch(win, k, func(_ int, e *guest) { e.Spot.Y = 9 })
			require.NoError(w.t, err)
			for _, h := range hs { // beside the pools
				require.NoError(w.t, registry.Set(win, h, badge{Self: h}))
			}
			if fails {
				panic(errTest)
			}
			return nil
		})
	case 5:
		enqueue(func(win *registry.Window) error {
			p := w.pool(n)
			_ = p.Despawn(win, who(a, 0))
			check(win, n)
			_ = p.Despawn(win, who(b, 1))
			return end()
		})
	case 6:
		enqueue(func(win *registry.Window) error {
			win.Named("outside")
			_ = win.Destroy(who(a, 0))
			_ = win.Destroy(who(b, 3))
			check(win, n)
			return end()
		})
	case 7:
		enqueue(func(win *registry.Window) error {
			_ = registry.SetParent(win, who(a, 0), who(b, 1))
			if p, err := registry.Get[spot](win, who(a, 0)); err == nil {
				p.Y++
			}
			return end()
		})
	case 8:
		enqueue(func(win *registry.Window) error {
			_ = registry.Add(win, who(a, 0), mark{7})
			_ = registry.Remove[mark](win, who(b, 1))
			_ = registry.SetActive(win, who(b, 2), k > 1)
			return end()
		})
	case 9:
		enqueue(func(win *registry.Window) error {
			_, _ = win.AssignNet(who(a, 0))
			if h, ok := check(win, n); ok {
				_, err := win.AssignNet(h)
				require.NoError(w.t, err)
			}
			return end()
		})
	case 10:
		enqueue(func(win *registry.Window) error {
			w.pool(n).DespawnWhere(win, func(_ handles.Local, e *guest) bool { return e.Badge.N%3 == uint64(k) })
			check(win, n)
			return end()
		})
	case 11:
		enqueue(func(win *registry.Window) error {
			_ = w.r.Destroy(who(a, 0)) // not taken back
			check(win, n)
			_ = w.pool(n).Despawn(win, who(b, 0))
			return end()
		})
	case 12:
		enqueue(func(win *registry.Window) error {
			p := w.pool(n)
			_ = p.Despawn(win, who(a, 0))
			check(win, n)
			win.ProcessDeferredDestructions()
			check(win, n)
			_ = p.Despawn(win, who(b, 1))
			return end()
		})
	case 13:
		require.NoError(w.t, w.r.Update(func(win *registry.Window) error {
			h, ok := check(win, n)
			child, ok2 := check(win, n+1)
			if ok && ok2 {
				require.NoError(w.t, registry.SetParent(win, child, h))
			}
			_ = registry.Set(win, who(b, 1), spot{Y: 7})
			return nil
		}))
		_ = w.r.Destroy(who(a, 0))
	case 14:
		enqueue(func(win *registry.Window) error {
			h, ok := w.pool(n).SpawnFrom(win, who(a, 0))
			if ok {
				require.NoError(w.t, registry.Set(win, h, badge{h, 1}))
				*known = append(*known, h)
			}
			return end()
		})
	case 15:
		if k == 0 {
			enqueue(func(win *registry.Window) error {
				if len(w.all()) < w.most {
					w.build(win, 3+n)
					check(win, len(w.all())-1)
				}
				return end()
			})
		}
	case 16: // all of it in one callback, and back
		enqueue(func(win *registry.Window) error {
			p := w.pool(n)
			for i := range 3 {
				h, ok := check(win, n)
				if ok && i < k {
					w.leave(win, p, h)
				}
				_ = p.Despawn(win, p.Slot((at+i)%p.Len()))
			}
			return end()
		})
	case 17:
		h, err := w.r.Reserve()
		require.NoError(w.t, err)
		*known = append(*known, h)
		enqueue(func(win *registry.Window) error {
			return w.guests.SpawnReserved(win, h, guest{Badge: badge{Self: h}})
		})
	case 18:
		enqueue(func(win *registry.Window) error {
			w.inVain(win, n, k)
			return end()
		})
	}
	return what == 11
}

// slots are who is in the slots of all pools, and after each pool its counters.
func (w *hotel) slots() (list []uint64) {
	for _, p := range w.all() {
		for i := range p.Len() {
			list = append(list, uint64(p.Slot(i)))
		}
		c := p.Stats()
		list = append(list, uint64(c.InUse), uint64(c.Free), uint64(c.Peak), uint64(c.Refused))
	}
	return list
}

// register shows the slots of all pools, and the counters.
func (w *hotel) register() (text string) {
	require.NoError(w.t, w.r.Read(func(s *registry.Snapshot) error {
		for k, p := range w.all() {
			c := p.Stats()
			require.Equal(w.t, c.Cap, c.InUse+c.Free)
			text += fmt.Sprintln("pool", k, c)
			for i := range p.Len() {
				h := p.Slot(i)
				o, err := registry.Peek[badge](s, h)
				at, _ := registry.Peek[spot](s, h)
				m, _ := registry.Peek[mark](s, h)
				n, _ := w.r.NetOf(h)
				active := registry.Active(s, h)
				text += fmt.Sprintln(i, h, active, o, at, m, n, err)
				if active {
					require.Equal(w.t, h, o.Self)
				}
			}
		}
		return nil
	}))
	s := w.r.Stats()
	return text + fmt.Sprintln(s.Live, s.Idle, s.Inactive)
}

// honest checks that handles from outside name whom they named, or nobody.
func (w *hotel) honest() {
	w.t.Helper()
	require.NoError(w.t, w.r.Read(func(s *registry.Snapshot) error {
		for h, n := range w.given {
			if b, err := registry.Peek[badge](s, h); err == nil {
				require.Equal(w.t, badge{h, n}, b, "%v in frame %d", h, s.FrameNumber())
			}
		}
		return nil
	}))
}
