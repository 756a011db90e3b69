package registry_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

func TestDescribedClassesAreAsOthers(t *testing.T) {
	r, err := registry.New(registry.Config{TemporalFrames: 8})
	require.NoError(t, err)
	typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[float64]()}, {Name: "B", Type: reflect.TypeFor[int32]()}})
	id, err := registry.RegisterComponentType(r, typ, registry.InTier(archetype.Temporal))
	require.NoError(t, err)
	_, err = registry.RegisterComponentType(r, typ)
	require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
	_, err = registry.RegisterComponentType(r, reflect.TypeFor[string](), registry.InTier(archetype.Temporal))
	require.ErrorIs(t, err, registry.ErrPointerInTemporal)
	other, err := registry.RegisterComponent[extraOne](r)
	require.NoError(t, err)
	ids := []archetype.ComponentID{other, id}

	for want, describe := range map[string]func() error{
		"a described class needs a name": func() error { _, err := registry.RegisterDescribed(r, "", ids); return err },
		"class ant: archetype: a chunk cannot have 100": func() error {
			_, err := registry.RegisterDescribed(r, "ant", ids, registry.SlotsPerChunk(100))
			return err
		},
		"class ant: component 77": func() error {
			_, err := registry.RegisterDescribed(r, "ant", []archetype.ComponentID{id, 77})
			require.ErrorIs(t, err, registry.ErrNotRegistered)
			return err
		},
		"class ant: component registry_test.extraOne twice": func() error {
			_, err := registry.RegisterDescribed(r, "ant", []archetype.ComponentID{other, id, other})
			return err
		},
	} {
		require.ErrorContains(t, describe(), want)
		require.Empty(t, r.ClassInfos(), "nothing has changed")
	}
	ants, err := registry.RegisterDescribed(r, "ant", ids, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	_, err = registry.RegisterDescribed(r, "ant", nil)
	require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
	bees, err := registry.RegisterDescribed(r, "bee", ids)
	require.NoError(t, err, "others may have the same components")

	require.NoError(t, r.Update(func(w *registry.Window) error {
		for _, c := range []*registry.Class[registry.Described]{ants, bees} {
			h, err := c.Spawn(w, registry.Described{})
			require.NoError(t, err)
			v, err := registry.Peek[extraOne](w, h)
			require.NoError(t, err)
			require.Zero(t, v)
			require.NoError(t, registry.Set(w, h, extraOne{3}))
			ch, slot, err := registry.Locate(w, h)
			require.NoError(t, err)
			require.True(t, ch.Archetype().Has(id))
			cell := reflect.NewAt(typ, ch.Cell(ch.Archetype().Column(id), slot, typ.Size())).Elem()
			require.True(t, cell.IsZero())
		}
		return nil
	}))
	require.Equal(t, 2, r.Stats().Live)
	require.NoError(t, r.Verify())
}
