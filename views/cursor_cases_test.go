package views_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// compact moves every entity as far to the front as it can go, in slots, cache indices and memory:
// a plain form of what package defrag does.
func compact(t require.TestingT, win *registry.Window) {
	require.NoError(t, registry.Relocate(win, func(m *registry.Relocation) error {
		for _, a := range m.Store().Archetypes() {
			if moves := towardsTheFront(m, a); len(moves) > 0 {
				m.MoveSlots(a, moves)
			}
			m.Settle(a)
			for _, c := range a.Surplus(nil) {
				m.Repack(c)
			}
			for _, c := range a.Chunks() {
				m.MoveChunk(c)
			}
		}
		return nil
	}))
}

func towardsTheFront(m *registry.Relocation, a *archetype.Archetype) []archetype.SlotMove {
	type place struct {
		ch   *archetype.Chunk
		slot uint32
	}
	var free, taken []place
	for _, ch := range a.Chunks() {
		for slot := range uint32(ch.Allocated()) {
			switch {
			case ch.Holes()[slot>>6]>>(slot&63)&1 != 0:
				free = append(free, place{ch, slot})
			case m.Movable(ch, slot):
				taken = append(taken, place{ch, slot})
			}
		}
	}
	var moves []archetype.SlotMove
	for i, to := range free {
		if i >= len(taken) {
			break
		}
		from := taken[len(taken)-1-i]
		if from.ch.Index() < to.ch.Index() || from.ch == to.ch && from.slot < to.slot {
			break
		}
		moves = append(moves, archetype.SlotMove{From: from.ch, FromSlot: from.slot, To: to.ch, ToSlot: to.slot})
	}
	return moves
}

// TestACursorOnTheMove is the case views-8.
func TestACursorOnTheMove(t *testing.T) {
	type viewed struct {
		Pos  *Position
		Name *Name    `ecs:"optional"`
		Y    *float32 `ecs:"Altitude.Y,optional"`
	}
	w := newWorld(t)
	registered[Position](t, w.Registry, registry.InTier(archetype.Volatile))
	c := class[Mover](w, registry.SlotsPerChunk(64))
	all := w.spawn(c, 300)
	viewsOf, fields := map[handles.Local]*views.Entity[viewed]{}, map[handles.Local]*views.Field[float64]{}
	begin := map[handles.Local]float64{}
	follow := func(hs []handles.Local) {
		for i, h := range hs {
			viewsOf[h], fields[h], begin[h] = entity[viewed](w, h), field[Position, float64](w, h, "X"), float64(i)
		}
	}
	follow(all)
	some := func(nth int) (hs []handles.Local) {
		for i := 0; i < len(all); i += nth {
			hs = append(hs, all[i])
		}
		return hs
	}
	// Each step moves entities, in a window between two frames. The list is there to be added to.
	steps := []struct {
		name string
		move func(win *registry.Window)
	}{
		{"nothing", func(*registry.Window) {}},
		{"a tag", func(win *registry.Window) { registry.AddBatch(win, some(2), Frozen{}) }},
		{"a column", func(win *registry.Window) { registry.AddBatch(win, some(3), Name{Text: "third"}) }},
		{"split columns", func(win *registry.Window) { registry.AddBatch(win, some(5), Altitude{Y: 5}) }},
		{"compaction of what they left", func(win *registry.Window) { compact(t, win) }},
		{"tenfold growth", func(win *registry.Window) {
			hs, err := c.SpawnBatch(win, 9*len(all), func(i int, e *Mover) { e.Pos.X = float64(i) })
			require.NoError(t, err)
			follow(hs)
			all = append(all, hs...)
		}},
		{"back from the tag", func(win *registry.Window) { registry.RemoveBatch[Frozen](win, some(4)) }},
		{"a death of two in three", func(win *registry.Window) {
			var kept, dead []handles.Local
			for i, h := range all {
				if i%3 == 0 {
					kept = append(kept, h)
				} else {
					dead = append(dead, h)
				}
			}
			require.Equal(t, len(dead), win.DestroyBatch(dead))
			all = kept
		}},
		{"compaction", func(win *registry.Window) { compact(t, win) }},
		{"other columns away", func(win *registry.Window) { registry.RemoveBatch[Name](win, some(1)) }},
		{"all of it twice, in one window", func(win *registry.Window) {
			for range 2 {
				registry.AddBatch(win, all, Mark(1))
				compact(t, win)
				registry.RemoveBatch[Mark](win, all)
				compact(t, win)
			}
		}},
	}
	t.Run("views-8", func(t *testing.T) {
		turns := map[handles.Local]float64{}
		var pinned *registry.Snapshot
		was := map[handles.Local]float64{} // in the frame that is pinned
		pin := func() {
			var err error
			pinned, err = w.Acquire()
			require.NoError(t, err)
			clear(was)
			for _, h := range all {
				was[h] = begin[h] + turns[h]
			}
		}
		type watched struct {
			Pos []Position
			ID  []handles.Local
		}
		q := query[watched](w)
		look := func(t *testing.T) {
			shown := map[handles.Local]float64{}
			for m := range q.Runs(pinned) {
				for i, h := range m.ID {
					shown[h] = m.Pos[i].X
				}
			}
			require.Equal(t, was, shown)
			for h, x := range was {
				own, err := registry.Peek[Position](pinned, h)
				require.NoError(t, err)
				require.Equal(t, x, own.X)
			}
			_, err := viewsOf[all[0]].Get(pinned)
			require.ErrorIs(t, err, registry.ErrReadOnly)
		}
		write := func(t *testing.T, a registry.Access) {
			for _, h := range all {
				v, err := viewsOf[h].Get(a)
				require.NoError(t, err)
				v.Pos.X++
				require.NoError(t, fields[h].Add(a, 1))
				turns[h] += 2
				if v.Name != nil {
					require.Equal(t, "third", v.Name.Text)
				}
				if v.Y != nil {
					require.Equal(t, float32(5), *v.Y)
				}
				own, err := registry.Peek[Position](a, h)
				require.NoError(t, err)
				require.Equal(t, begin[h]+turns[h], own.X, "%v", h)
				require.Equal(t, registry.Has[Name](a, h), v.Name != nil)
				require.Equal(t, registry.Has[Altitude](a, h), v.Y != nil)
			}
		}
		for i, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				w.frame(func(f *registry.Frame) { write(t, f) })
				if i%4 == 0 {
					pinned.Release()
					pin()
				}
				w.window(func(win *registry.Window) { write(t, win); step.move(win); write(t, win) })
				require.NoError(t, w.Verify())
				look(t)
			})
		}
		w.frame(func(f *registry.Frame) {
			write(t, f)
			for h, e := range viewsOf {
				if !w.Alive(h) {
					_, err := e.Get(f)
					require.ErrorIs(t, err, registry.ErrStale)
				}
			}
		})
		w.window(func(win *registry.Window) { require.Equal(t, len(all), registry.RemoveBatch[Position](win, all)) })
		w.frame(func(f *registry.Frame) {
			for _, h := range all {
				_, err := viewsOf[h].Get(f)
				require.ErrorIs(t, err, registry.ErrNoComponent)
				_, err = fields[h].Get(f)
				require.ErrorIs(t, err, registry.ErrNoComponent)
			}
		})
		look(t)
		pinned.Release()
	})
}

// TestHeldInItsTime is the part of the case views-5 that is about its time; what comes later is that of
// TestHeldPastItsTime.
func TestHeldInItsTime(t *testing.T) {
	for _, name := range []string{"views-5", "views-5/named"} { // without and with columns of pointers
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := class[Mover](w)
			h := w.spawn(c, 10)[9]
			if name != "views-5" {
				w.window(func(win *registry.Window) { require.NoError(t, registry.Add(win, h, Name{Text: "old"})) })
			}
			e, q := entity[moverView](w, h), query[movers](w)
			w.window(func(win *registry.Window) {
				v, err := e.Get(win)
				require.NoError(t, err)
				pointer, err := registry.Get[Position](win, h)
				require.NoError(t, err)
				require.Same(t, pointer, v.Pos)
				var slice []Position
				at := 0
				for m := range q.Runs(win) {
					for i, id := range m.ID {
						if id == h {
							slice, at = m.Pos, i
						}
					}
				}
				held := *v // the pointers as a program would keep them
				_, err = c.SpawnBatch(win, 10_000, nil)
				require.NoError(t, err)
				held.Pos.X = 41
				pointer.Y = 42
				slice[at].X++
				if held.Name != nil {
					held.Name.Text = "new"
				}
				own, err := registry.Peek[Position](win, h)
				require.NoError(t, err)
				require.Equal(t, Position{42, 42}, own)
				again, err := e.Get(win)
				require.NoError(t, err)
				require.Equal(t, held, *again)
			})
			w.frame(func(f *registry.Frame) {
				v, err := e.Get(f)
				require.NoError(t, err)
				require.Equal(t, Position{42, 42}, *v.Pos)
				if v.Name != nil {
					require.Equal(t, "new", v.Name.Text)
				}
			})
		})
	}
}

// TestAPlaceThatIsOtherMemory has entities come back to cache indices that they have had, in one
// window, after the chunks there were given back or moved: to look at the place is not enough.
func TestAPlaceThatIsOtherMemory(t *testing.T) {
	for _, before := range []int{0, 1, 64, 200} {
		t.Run(fmt.Sprintf("behind %d others", before), func(t *testing.T) {
			w := newWorld(t)
			registered[Position](t, w.Registry)
			first := class[struct{ Pos Position }](w, registry.SlotsPerChunk(64))
			c := class[struct{ Name Name }](w, registry.SlotsPerChunk(64))
			w.window(func(win *registry.Window) {
				others, err := first.SpawnBatch(win, before, nil)
				require.NoError(t, err)
				hs, err := c.SpawnBatch(win, 70, func(i int, e *struct{ Name Name }) { e.Name.Text = fmt.Sprint(i) })
				require.NoError(t, err)
				type named struct{ Name *Name }
				var all []*views.Entity[named]
				for _, h := range hs {
					all = append(all, entity[named](w, h))
				}
				write := func(round string) {
					for i, e := range all {
						v, err := e.Get(win)
						require.NoError(t, err)
						require.Equal(t, fmt.Sprint(i), v.Name.Text, "%s", round)
						own, err := registry.Get[Name](win, hs[i])
						require.NoError(t, err)
						require.Same(t, own, v.Name, "%s", round)
					}
				}
				had, again := map[uint32]bool{}, 0 // the places of the first
				visit := func() {
					at, ok := registry.CacheIndex(win, hs[0])
					require.True(t, ok)
					if had[at] {
						again++
					}
					had[at] = true
				}
				write("at first")
				visit()
				win.DestroyBatch(others)
				for round := range 4 {
					registry.AddBatch(win, hs, Mark(1))
					win.ProcessDeferredDestructions()
					compact(t, win) // the chunks that they left go back
					registry.RemoveBatch[Mark](win, hs)
					compact(t, win)
					write(fmt.Sprint(round))
					visit()
				}
				require.NotZero(t, again, "it came back to where it had been")
			})
		})
	}
}

func TestLateDeathsAreSeenAtTheNextWindow(t *testing.T) {
	r, err := registry.New(registry.Config{Deterministic: true})
	require.NoError(t, err)
	w := &world{r, t}
	var v *views.Construct[placeView]
	c := class[Mover](w)
	w.window(func(win *registry.Window) {
		v, err = views.NewConstruct[placeView](win, c, Mover{Pos: Position{X: 3}})
		require.NoError(t, err)
	})
	f := field[Position, float64](w, v.Entity(), "X")
	w.frame(func(a *registry.Frame) {
		v.Close()
		require.False(t, w.Alive(v.Entity()))
		for range 2 { // systems go on with it until the next window
			got, err := v.Get(a)
			require.NoError(t, err)
			require.Equal(t, 3.0, got.Pos.X)
			require.NoError(t, f.Set(a, 3))
		}
	})
	w.window(func(win *registry.Window) {
		_, err := v.Get(win)
		require.ErrorIs(t, err, registry.ErrStale)
		require.ErrorIs(t, f.Set(win, 1), registry.ErrStale)
	})
	require.NoError(t, w.Verify())
}
