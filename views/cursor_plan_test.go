package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// refused makes a view of the type and says why it can't be made.
func refused[T any](w *world, h handles.Local) error {
	w.tb.Helper()
	e, err := views.NewEntity[T](w.Registry, h)
	require.Nil(w.tb, e)
	require.Error(w.tb, err)
	return err
}

func TestNewEntitySaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	h := w.spawn(class[Mover](w), 1)[0]
	type stranger struct{ A int }
	type nothing struct{}
	for _, c := range []struct {
		name string
		err  error
		is   error
		says string
	}{
		{"no struct", refused[int](w, h), nil, "int is not a struct of pointers"},
		{"no pointer", refused[struct{ Pos []Position }](w, h), nil, "field Pos []views_test.Position: is not a pointer"},
		{"unexported", refused[struct{ pos *Position }](w, h), nil, "field pos *views_test.Position: is not exported"},
		{"twice", refused[struct{ A, B *Position }](w, h), nil, "field B *views_test.Position: shows the same cell as field A"},
		{"twice, once to read", refused[struct {
			A *Position `ecs:"read"`
			B *Position
		}](w, h), nil, "shows the same cell as field A"},
		{"unknown", refused[struct{ S *stranger }](w, h), registry.ErrNotRegistered, "views_test.stranger"},
		{"unknown and empty", refused[struct{ S *nothing }](w, h), registry.ErrNotRegistered, "ask with registry.Has"},
		{"pointer to a pointer", refused[struct{ S **Position }](w, h), registry.ErrNotRegistered, "held by value"},
		{"tag", refused[struct{ F *Frozen }](w, h), nil, "ask with registry.Has[views_test.Frozen]"},
		{"whole split", refused[struct{ A *Altitude }](w, h), registry.ErrSplit, "of X, Y, Z"},
		{"split, wrong type", refused[struct {
			A *float64 `ecs:"Altitude.X"`
		}](w, h), nil, "is a *float32"},
		{"split, no such field", refused[struct {
			A *float32 `ecs:"Altitude.W"`
		}](w, h), nil, "has no such field; it has X, Y, Z"},
		{"split field twice", refused[struct {
			A *float32 `ecs:"Altitude.X"`
			B *float32 `ecs:"views_test.Altitude.X,read"`
		}](w, h), nil, "field B *float32: shows the same cell as field A"},
		{"field of an unsplit one", refused[struct {
			X *float64 `ecs:"Position.X"`
		}](w, h), nil, "is not split: ask for the whole component"},
		{"field of nothing", refused[struct {
			X *float64 `ecs:"Elsewhere.X"`
		}](w, h), registry.ErrNotRegistered, "names no field of a component"},
		{"bad option", refused[struct {
			P *Position `ecs:"raed"`
		}](w, h), nil, `don't know "raed"`},
		{"zero handle", refused[placeView](w, 0), registry.ErrInvalidHandle, "L0.0"},
		{"never issued", refused[placeView](w, handles.NewLocal(77, 3)), registry.ErrInvalidHandle, "L77.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, c.err, c.says)
			require.ErrorContains(t, c.err, "views: entity ")
			if c.is != nil {
				require.ErrorIs(t, c.err, c.is)
			}
		})
	}
	t.Run("no registry", func(t *testing.T) {
		_, err := views.NewEntity[placeView](nil, h)
		require.ErrorContains(t, err, "no registry")
	})
	t.Run("dead", func(t *testing.T) {
		require.NoError(t, w.Destroy(h))
		require.ErrorIs(t, refused[placeView](w, h), registry.ErrStale)
		w.window(func(win *registry.Window) { win.ProcessDeferredDestructions() })
		require.ErrorIs(t, refused[placeView](w, h), registry.ErrStale)
	})
}

func TestNewFieldSaysWhatIsWrong(t *testing.T) {
	type inner struct {
		A int32
		B struct{}
	}
	type Base struct{ Deep int8 }
	type outer struct {
		Base
		In     inner
		Next   *inner
		hidden int
	}
	w := newWorld(t)
	registered[outer](t, w.Registry)
	type split struct {
		In  inner
		End uint16
	}
	registered[split](t, w.Registry, registry.Split())
	h := w.spawn(class[Mover](w), 1)[0]
	make := func(_ any, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		is   error
		says string
	}{
		{"unknown", make(views.NewField[inner, int32](w.Registry, h, "A")), registry.ErrNotRegistered, "views_test.inner"},
		{"no such field", make(views.NewField[Position, float64](w.Registry, h, "Z")), nil, `views_test.Position has no field "Z"`},
		{"no struct", make(views.NewField[Position, float64](w.Registry, h, "X.Y")), nil, `float64 has no field "Y"`},
		{"other type", make(views.NewField[Position, float32](w.Registry, h, "X")), nil, "is a float64, not a float32"},
		{"behind a pointer", make(views.NewField[outer, int32](w.Registry, h, "Next.A")), nil, `has no field "A"`},
		{"promoted", make(views.NewField[outer, int8](w.Registry, h, "Deep")), nil, `has no field "Deep"`},
		{"unexported", make(views.NewField[outer, int](w.Registry, h, "hidden")), nil, "is not exported"},
		{"sizeless", make(views.NewField[outer, struct{}](w.Registry, h, "In.B")), nil, "has no size"},
		{"tag", make(views.NewField[Frozen, Frozen](w.Registry, h, "")), nil, "has no size"},
		{"whole split", make(views.NewField[Altitude, Altitude](w.Registry, h, "")), registry.ErrSplit, "name one of X, Y, Z"},
		{"half split", make(views.NewField[split, inner](w.Registry, h, "In")), registry.ErrSplit, "name one of In.A"},
		{"never issued", make(views.NewField[Position, float64](w.Registry, handles.NewLocal(77, 3), "X")), registry.ErrInvalidHandle, "L77.3"},
		{"no registry", make(views.NewField[Position, float64](nil, h, "X")), nil, "no registry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, c.err, c.says)
			require.ErrorContains(t, c.err, "views: ")
			if c.is != nil {
				require.ErrorIs(t, c.err, c.is)
			}
		})
	}
	_ = outer{}.hidden
	for name, err := range map[string]error{
		"embedded":      make(views.NewField[outer, int8](w.Registry, h, "Base.Deep")),
		"nested":        make(views.NewField[outer, int32](w.Registry, h, "In.A")),
		"nested, split": make(views.NewField[split, int32](w.Registry, h, "In.A")),
		"middle":        make(views.NewField[outer, inner](w.Registry, h, "In")),
		"whole":         make(views.NewField[Mark, Mark](w.Registry, h, "")),
	} {
		require.NoError(t, err, name)
	}
}

func TestAConstructThatCannotBeSpawnsNothing(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	other := newWorld(t)
	foreign := class[Mover](other)
	w.window(func(win *registry.Window) {
		_, err := views.NewConstruct[struct{ Name *Name }](win, c, Mover{})
		require.ErrorIs(t, err, registry.ErrNoComponent)
		require.ErrorContains(t, err, "field Name: class views_test.Mover")
		_, err = views.NewConstruct[struct{ Pos Position }](win, c, Mover{})
		require.ErrorContains(t, err, "is not a pointer")
		_, err = views.NewConstruct[placeView, Mover](win, nil, Mover{})
		require.ErrorContains(t, err, "no class")
		_, err = views.NewConstruct[placeView](win, foreign, Mover{})
		require.ErrorContains(t, err, "another registry")
		_, err = views.NewConstruct[placeView](nil, c, Mover{})
		require.ErrorIs(t, err, registry.ErrExpired)
		require.Zero(t, query[ids](w).Count(win))

		v, err := views.NewConstruct[struct {
			Pos  *Position
			Name *Name `ecs:"optional"`
		}](win, c, Mover{Pos: Position{X: 4}})
		require.NoError(t, err)
		got, err := v.Get(win)
		require.NoError(t, err)
		require.Nil(t, got.Name)
		require.Equal(t, 4.0, got.Pos.X)
	})
	require.Equal(t, 1, w.Stats().Live)
}
