//go:build !race

package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func TestCursorsAllocateNothing(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		c := class[Mover](w)
		hs := w.spawn(c, 3000)
		e, f, gone := entity[moverView](w, hs[5]), field[Position, float64](w, hs[6], "X"), entity[placeView](w, hs[7])
		lacks := entity[struct{ Name *Name }](w, hs[5])
		w.destroy(hs[7])
		var v *views.Construct[placeView]
		w.window(func(win *registry.Window) {
			var err error
			v, err = views.NewConstruct[placeView](win, c, Mover{})
			require.NoError(t, err)
		})
		inside(func(a registry.Access) {
			other := &wrapped{a, 1}
			sum := 0.0
			none := func(what string, fn func()) {
				t.Helper()
				require.Zero(t, testing.AllocsPerRun(100, fn), what)
			}
			none("get", func() {
				if view, err := e.Get(a); err == nil {
					sum += view.Pos.X
				}
			})
			none("get anew", func() {
				for _, token := range []registry.Access{a, other} {
					if view, err := e.Get(token); err == nil {
						sum += view.Pos.X
					}
				}
			})
			none("construct", func() {
				if view, err := v.Get(a); err == nil {
					view.Pos.X++
				}
			})
			none("errors", func() {
				for _, err := range []error{drop(gone.Get(a)), drop(lacks.Get(a)), drop(e.Get(nil))} {
					if err != nil {
						sum++
					}
				}
			})
			none("field", func() {
				x, err := f.Get(a)
				if err == nil && f.Set(a, x+1) == nil && f.Add(a, -1) == nil {
					sum += x
				}
			})
			none("bind", func() {
				if f.Bind(hs[8]) == nil {
					sum++
				}
			})
			none("advance", func() {
				for _ = f.Bind(0); f.Advance(a); {
					sum++
				}
			})
			require.NotZero(t, sum)
		})
	})
}

func drop(_ any, err error) error { return err }
