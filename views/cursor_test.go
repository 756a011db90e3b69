package views_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

var errFails = errors.New("fails")

// fails runs fn in a window that is undone.
func (w *world) fails(fn func(*registry.Window)) {
	w.tb.Helper()
	require.ErrorIs(w.tb, w.Update(func(win *registry.Window) error {
		fn(win)
		return errFails
	}), errFails)
}

func entity[T any](w *world, h handles.Local) *views.Entity[T] {
	w.tb.Helper()
	e, err := views.NewEntity[T](w.Registry, h)
	require.NoError(w.tb, err)
	return e
}

func field[C, V any](w *world, h handles.Local, path string) *views.Field[V] {
	w.tb.Helper()
	f, err := views.NewField[C, V](w.Registry, h, path)
	require.NoError(w.tb, err)
	return f
}

// moverView has one column of each kind that a view can have.
type moverView struct {
	Pos  *Position
	Vel  *Velocity `ecs:"read"`
	Name *Name     `ecs:"optional"`
	High *float32  `ecs:"Altitude.Y,optional"`
}

func TestAViewShowsItsOwnEntity(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w), 100)
		w.window(func(win *registry.Window) {
			require.NoError(t, registry.Add(win, hs[3], Name{Text: "three"}))
			require.NoError(t, registry.Add(win, hs[3], Altitude{1, 2, 3}))
		})
		for i, h := range hs {
			e := entity[moverView](w, h)
			require.Equal(t, h, e.Entity())
			inside(func(a registry.Access) {
				v, err := e.Get(a)
				require.NoError(t, err)
				require.Equal(t, float64(i), v.Pos.X)
				require.Equal(t, float64(i), v.Vel.Y)
				v.Pos.Y = 7
				p, err := registry.Peek[Position](a, h)
				require.NoError(t, err)
				require.Equal(t, Position{float64(i), 7}, p)
				again, err := e.Get(a)
				require.NoError(t, err)
				require.Same(t, v, again)
				if i == 3 {
					require.Equal(t, "three", v.Name.Text)
					require.Equal(t, float32(2), *v.High)
					*v.High = 9
					alt, err := registry.Peek[Altitude](a, h)
					require.NoError(t, err)
					require.Equal(t, Altitude{1, 9, 3}, alt)
				} else {
					require.Nil(t, v.Name)
					require.Nil(t, v.High)
				}
			})
		}
	})
}

// wrapped is an Access as package logic makes them, and as a user may.
type wrapped struct {
	registry.Access
	extra int
}

func TestAViewTakesTokensOfAllKinds(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		e := entity[placeView](w, w.spawn(class[Mover](w), 2)[1])
		inside(func(a registry.Access) {
			for _, token := range []registry.Access{a, &wrapped{a, 1}, wrapped{a, 2}, a, &wrapped{&wrapped{a, 3}, 4}} {
				for range 2 {
					v, err := e.Get(token)
					require.NoError(t, err)
					require.Equal(t, 1.0, v.Pos.X)
				}
			}
		})
	})
	t.Run("one wrapper for many tokens", func(t *testing.T) {
		w := newWorld(t)
		e := entity[placeView](w, w.spawn(class[Mover](w), 2)[1])
		token := &wrapped{}
		for range 3 {
			w.frame(func(f *registry.Frame) {
				token.Access = f
				v, err := e.Get(token)
				require.NoError(t, err)
				v.Pos.X++
			})
			_, err := e.Get(token)
			require.ErrorIs(t, err, registry.ErrExpired)
		}
		w.window(func(win *registry.Window) {
			v, err := e.Get(win)
			require.NoError(t, err)
			require.Equal(t, 4.0, v.Pos.X)
		})
	})
}

// answers puts cursors of each kind on an entity and gives a function that asks them all.
func answers(w *world, h handles.Local, extra ...func(registry.Access) error) func(registry.Access) []error {
	e, f := entity[placeView](w, h), field[Position, float64](w, h, "X")
	return func(a registry.Access) (errs []error) {
		v, err := e.Get(a)
		if err != nil {
			assert.Nil(w.tb, v)
		}
		errs = append(errs, err)
		_, err = f.Get(a)
		errs = append(errs, err, f.Set(a, 1), f.Add(a, 1))
		for _, fn := range extra {
			errs = append(errs, fn(a))
		}
		return errs
	}
}

func allAre(t *testing.T, want error, errs []error) {
	t.Helper()
	for i, err := range errs {
		require.ErrorIs(t, err, want, "cursor %d", i)
	}
}

func TestWhatAViewAnswers(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		c := class[Mover](w)
		h := w.spawn(c, 1)[0]
		ask := answers(w, h)
		t.Run("an expired token", func(t *testing.T) {
			var kept registry.Access
			inside(func(a registry.Access) {
				allAre(t, nil, ask(a))
				kept = a
			})
			allAre(t, registry.ErrExpired, ask(kept))
			inside(func(a registry.Access) {
				allAre(t, nil, ask(a))
				allAre(t, registry.ErrExpired, ask(kept))
				allAre(t, nil, ask(a))
			})
		})
		t.Run("no token", func(t *testing.T) {
			allAre(t, registry.ErrExpired, ask(nil))
			allAre(t, registry.ErrExpired, ask((*registry.Window)(nil)))
			allAre(t, registry.ErrExpired, ask((*registry.Frame)(nil)))
			allAre(t, registry.ErrExpired, ask(&registry.Window{}))
			fresh := answers(w, h)
			allAre(t, registry.ErrExpired, fresh(nil))
			allAre(t, registry.ErrExpired, fresh((*registry.Window)(nil)))
		})
		t.Run("a token of another registry", func(t *testing.T) {
			other := newWorld(t)
			hs := other.spawn(class[Mover](other), 1)
			require.Equal(t, h, hs[0], "the handle names somebody there")
			inside(func(a registry.Access) {
				allAre(t, nil, ask(a))
				other.window(func(win *registry.Window) {
					allAre(t, views.ErrForeign, ask(win))
					require.PanicsWithError(t, "views: token of another registry: cursor on L0.0", func() {
						field[Position, float64](w, 0, "X").Advance(win)
					})
				})
				allAre(t, nil, ask(a))
			})
		})
		t.Run("a reservation", func(t *testing.T) {
			r, err := w.Reserve()
			require.NoError(t, err)
			ask := answers(w, r)
			inside(func(a registry.Access) { allAre(t, registry.ErrNotSpawned, ask(a)) })
			w.window(func(win *registry.Window) { require.NoError(t, c.SpawnReserved(win, r, Mover{})) })
			inside(func(a registry.Access) { allAre(t, nil, ask(a)) })
			require.NoError(t, w.Destroy(r))
			inside(func(a registry.Access) { allAre(t, registry.ErrStale, ask(a)) })
		})
		t.Run("a component it lacks", func(t *testing.T) {
			e, f := entity[struct{ Name *Name }](w, h), field[Altitude, float32](w, h, "Y")
			inside(func(a registry.Access) {
				_, err := e.Get(a)
				require.ErrorIs(t, err, registry.ErrNoComponent)
				require.ErrorContains(t, err, "views_test.Name")
				_, err = f.Get(a)
				require.ErrorIs(t, err, registry.ErrNoComponent)
				require.ErrorContains(t, err, "views_test.Altitude")
				require.ErrorIs(t, f.Set(a, 1), registry.ErrNoComponent)
			})
			w.window(func(win *registry.Window) {
				require.NoError(t, registry.Add(win, h, Name{Text: "now"}))
				require.NoError(t, registry.Add(win, h, Altitude{Y: 5}))
			})
			inside(func(a registry.Access) {
				v, err := e.Get(a)
				require.NoError(t, err)
				require.Equal(t, "now", v.Name.Text)
				y, err := f.Get(a)
				require.NoError(t, err)
				require.Equal(t, float32(5), y)
			})
		})
		t.Run("an inactive entity", func(t *testing.T) {
			inside(func(a registry.Access) {
				require.NoError(t, registry.SetActive(a, h, false))
				allAre(t, nil, ask(a))
			})
		})
		t.Run("a snapshot", func(t *testing.T) {
			allAre(t, registry.ErrExpired, ask(&registry.Snapshot{}))
			w.frame(func(*registry.Frame) {})
			require.NoError(t, w.Read(func(snap *registry.Snapshot) error {
				inside(func(a registry.Access) {
					allAre(t, nil, ask(a))
					allAre(t, registry.ErrReadOnly, ask(snap))
					require.PanicsWithError(t, "views: cursor on L0.0: "+registry.ErrReadOnly.Error(), func() {
						field[Position, float64](w, 0, "X").Advance(snap)
					})
				})
				return nil
			}))
		})
	})
}

func TestClosing(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		h := w.spawn(class[Mover](w), 1)[0]
		e := entity[placeView](w, h)
		inside(func(a registry.Access) {
			v, err := e.Get(a)
			require.NoError(t, err)
			e.Close()
			require.Nil(t, v.Pos, "a view kept too long reaches nobody")
			_, err = e.Get(a)
			require.ErrorIs(t, err, registry.ErrExpired)
			e.Close()
			require.Equal(t, h, e.Entity())
		})
		require.True(t, w.Alive(h))
	})
	t.Run("a construct, from many goroutines", func(t *testing.T) {
		w := newWorld(t)
		c := class[Mover](w)
		var v *views.Construct[placeView]
		w.window(func(win *registry.Window) {
			var err error
			v, err = views.NewConstruct[placeView](win, c, Mover{})
			require.NoError(t, err)
		})
		w.frame(func(f *registry.Frame) {
			var closers sync.WaitGroup
			for range 4 {
				closers.Go(v.Close)
			}
			for w.Alive(v.Entity()) {
				if got, err := v.Get(f); err == nil {
					got.Pos.X++
				} else {
					require.ErrorIs(t, err, registry.ErrStale)
				}
			}
			closers.Wait()
			_, err := v.Get(f)
			require.ErrorIs(t, err, registry.ErrStale)
		})
		w.reclaim()
		hs := w.spawn(c, 1) // in the same slot
		v.Close()
		require.True(t, w.Alive(hs[0]))
	})
}

// reclaim frees the slots and the indices of what has died.
func (w *world) reclaim() {
	w.tb.Helper()
	w.window(func(win *registry.Window) {
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
	})
}

func TestStaleForEver(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	var v *views.Construct[placeView]
	w.window(func(win *registry.Window) {
		var err error
		v, err = views.NewConstruct[placeView](win, c, Mover{Pos: Position{X: -1}})
		require.NoError(t, err)
	})
	h := v.Entity()
	ask := answers(w, h, func(a registry.Access) error { _, err := v.Get(a); return err })
	w.window(func(win *registry.Window) {
		allAre(t, nil, ask(win))
		at, ok := registry.CacheIndex(win, h)
		require.True(t, ok)
		require.NoError(t, win.Destroy(h))
		allAre(t, registry.ErrStale, ask(win))
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
		allAre(t, registry.ErrStale, ask(win))
		for cycle := range 50 { // index and slot live again, in the same window too
			next, err := c.Spawn(win, Mover{Pos: Position{X: float64(cycle)}})
			require.NoError(t, err)
			require.Equal(t, h.Index(), next.Index())
			now, ok := registry.CacheIndex(win, next)
			require.True(t, ok)
			require.Equal(t, at, now)
			allAre(t, registry.ErrStale, ask(win))
			p, err := registry.Peek[Position](win, next)
			require.NoError(t, err)
			require.Equal(t, float64(cycle), p.X)
			require.NoError(t, win.Destroy(next))
			win.ProcessDeferredDestructions()
			win.ConfirmLocalRecycles()
		}
	})
	w.spawn(c, 1)
	w.frame(func(f *registry.Frame) { allAre(t, registry.ErrStale, ask(f)) })
	w.window(func(win *registry.Window) { require.NoError(t, win.Reset()); allAre(t, registry.ErrStale, ask(win)) })
}

func TestFailedCallbacks(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	h := w.spawn(c, 3)[2]
	ask := answers(w, h)
	e, f := entity[moverView](w, h), field[Position, float64](w, h, "X")
	x := func(want float64) {
		t.Helper()
		w.frame(func(a *registry.Frame) {
			v, err := e.Get(a)
			require.NoError(t, err)
			require.Equal(t, want, v.Pos.X)
			require.Nil(t, v.Name)
			got, err := f.Get(a)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	t.Run("undo what a field has set", func(t *testing.T) {
		w.fails(func(win *registry.Window) {
			require.NoError(t, f.Set(win, 50))
			require.NoError(t, f.Add(win, 1))
			got, err := f.Get(win)
			require.NoError(t, err)
			require.Equal(t, 51.0, got)
		})
		x(2)
		require.Panics(t, func() {
			w.window(func(win *registry.Window) { require.NoError(t, f.Add(win, 1)); panic("gone") })
		})
		x(2)
	})
	t.Run("and keep what a window did that held", func(t *testing.T) {
		w.window(func(win *registry.Window) { require.NoError(t, f.Add(win, 1)) })
		x(3)
	})
	t.Run("undo a move", func(t *testing.T) {
		w.fails(func(win *registry.Window) {
			allAre(t, nil, ask(win))
			require.NoError(t, registry.Add(win, h, Name{Text: "brief"}))
			v, err := e.Get(win)
			require.NoError(t, err)
			require.Equal(t, "brief", v.Name.Text)
			require.NoError(t, f.Set(win, 9))
			require.NoError(t, registry.Remove[Velocity](win, h))
			_, err = e.Get(win)
			require.ErrorIs(t, err, registry.ErrNoComponent)
		})
		x(3)
	})
	t.Run("undo a death", func(t *testing.T) {
		w.fails(func(win *registry.Window) {
			require.NoError(t, win.Destroy(h))
			allAre(t, registry.ErrStale, ask(win))
		})
		x(3)
	})
	t.Run("undo a construct", func(t *testing.T) {
		var v *views.Construct[placeView]
		w.fails(func(win *registry.Window) {
			var err error
			v, err = views.NewConstruct[placeView](win, c, Mover{Pos: Position{X: 1}})
			require.NoError(t, err)
			got, err := v.Get(win)
			require.NoError(t, err)
			require.Equal(t, 1.0, got.Pos.X)
		})
		require.Equal(t, 3, w.Stats().Live)
		require.NotZero(t, v.Entity())
		w.spawn(c, 1) // its slot and its index live again
		w.frame(func(a *registry.Frame) {
			_, err := v.Get(a)
			require.ErrorIs(t, err, registry.ErrStale)
		})
		v.Close()
		require.Equal(t, 4, w.Stats().Live)
	})
}

func TestWhatAViewMarks(t *testing.T) {
	w := newWorld(t)
	h := w.spawn(class[Mover](w), 1)[0]
	changed := func(fn func(a registry.Access)) (pos, vel bool) {
		var last uint64
		w.frame(func(f *registry.Frame) { last = f.FrameNumber() })
		w.frame(func(f *registry.Frame) { fn(f) })
		p, err := views.NewQuery[ids](w.Registry, views.Changed[Position](last+1))
		require.NoError(t, err)
		v, err := views.NewQuery[ids](w.Registry, views.Changed[Velocity](last+1))
		require.NoError(t, err)
		w.window(func(win *registry.Window) { pos, vel = p.Count(win) > 0, v.Count(win) > 0 })
		return pos, vel
	}
	e, f := entity[moverView](w, h), field[Position, float64](w, h, "X")
	for _, c := range []struct {
		name     string
		fn       func(registry.Access)
		pos, vel bool
	}{
		{"nothing", func(registry.Access) {}, false, false},
		{"a view", func(a registry.Access) { _, err := e.Get(a); require.NoError(t, err) }, true, false},
		{"a field that is read", func(a registry.Access) { _, err := f.Get(a); require.NoError(t, err) }, false, false},
		{"a field that is set", func(a registry.Access) { require.NoError(t, f.Set(a, 1)) }, true, false},
		{"a field that was read, then added to", func(a registry.Access) {
			_, err := f.Get(a)
			require.NoError(t, err)
			require.NoError(t, f.Add(a, 1))
		}, true, false},
		{"a field that goes on", func(a registry.Access) { require.NoError(t, f.Bind(0)); require.True(t, f.Advance(a)) }, false, false},
	} {
		pos, vel := changed(c.fn)
		require.Equal(t, [2]bool{c.pos, c.vel}, [2]bool{pos, vel}, c.name)
	}
}

// TestCursorsOnWorkers has workers use cursors at the same time, each on entities of its own part,
// while another goroutine destroys some.
func TestCursorsOnWorkers(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 1000)
	type cursors struct {
		view  *views.Entity[moverView]
		field *views.Field[float64]
	}
	of := map[handles.Local]cursors{}
	for _, h := range hs {
		of[h] = cursors{entity[moverView](w, h), field[Position, float64](w, h, "Y")}
	}
	q := query[ids](w)
	q.SpreadFrom(0)
	for range 3 {
		w.frameWith(4, func(f *registry.Frame) {
			var killer sync.WaitGroup
			defer killer.Wait()
			killer.Go(func() {
				for i := 0; i < len(hs); i += 50 {
					_ = w.Destroy(hs[i])
				}
			})
			q.Parallel(f, func(own *registry.Frame, m *ids) {
				for _, h := range m.ID {
					c := of[h]
					v, err := c.view.Get(own)
					if err == nil {
						v.Pos.X++
						err = c.field.Add(own, 1)
					}
					if err != nil {
						assert.ErrorIs(t, err, registry.ErrStale)
					}
				}
			})
		})
	}
	w.frame(func(f *registry.Frame) {
		for i, h := range hs {
			if v, err := of[h].view.Get(f); i%50 == 0 {
				require.ErrorIs(t, err, registry.ErrStale)
			} else {
				require.NoError(t, err)
				require.Equal(t, Position{float64(i) + 3, 3}, *v.Pos)
			}
		}
	})
}
