package registry_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type told struct {
	X, Y float32
	Name string
}

type shown struct{ X, Y float64 }

type narrator struct {
	Told  told
	Shown shown
}

func TestValuesAreReadWithoutKnowingTheirTypes(t *testing.T) {
	for name, split := range map[string][]registry.ComponentOption{"whole": nil, "split": {registry.Split()}} {
		t.Run(name, func(t *testing.T) {
			r, err := registry.New(registry.Config{})
			require.NoError(t, err)
			_, err = registry.RegisterComponent[told](r, split...)
			require.NoError(t, err)
			_, err = registry.RegisterComponent[shown](r, append(slices.Clone(split), registry.InTier(archetype.Volatile))...)
			require.NoError(t, err)
			class, err := registry.RegisterClass[narrator](r)
			require.NoError(t, err)
			k := &world{t: t, r: r}
			var a, b handles.Local
			e := k.engine()
			require.NoError(t, e.frame(func(w *registry.Window) error {
				a, err = class.Spawn(w, narrator{told{1, 2, "a"}, shown{3, 4}})
				require.NoError(t, err)
				b, err = class.Spawn(w, narrator{told{5, 6, "b"}, shown{7, 8}})
				require.NoError(t, err)
				require.NoError(t, registry.SetParent(w, b, a))

				arch, err := registry.ArchetypeOf(w, b)
				require.NoError(t, err)
				comps := arch.Components()
				v, err := registry.ValueOf(w, b, comps[0])
				require.NoError(t, err)
				assert.Equal(t, told{5, 6, "b"}, v.Interface())
				up, err := registry.Parent(w, b)
				assert.NoError(t, err)
				assert.Equal(t, a, up)
				up, err = registry.Parent(w, a)
				assert.NoError(t, err)
				assert.Zero(t, up)
				_, err = registry.Parent(w, 0)
				assert.ErrorIs(t, err, registry.ErrInvalidHandle)
				return nil
			}))
			require.NoError(t, r.Read(func(s *registry.Snapshot) error {
				arch, err := registry.ArchetypeOf(s, a)
				require.NoError(t, err)
				v, err := registry.ValueOf(s, a, arch.Components()[1])
				require.NoError(t, err)
				assert.Equal(t, shown{3, 4}, v.Interface())
				_, err = registry.ValueOf(s, a, arch.Components()[0])
				assert.ErrorIs(t, err, registry.ErrNotPublished)
				_, err = registry.ValueOf(s, 0, arch.Components()[0])
				assert.ErrorIs(t, err, registry.ErrInvalidHandle)
				ref := s.Directory().Chunks(0)[0]
				column, err := s.Column(ref, arch.Components()[1], len(arch.Components()[1].Fields)-1)
				require.NoError(t, err)
				assert.Equal(t, ref.Slots(), column.Len())
				if name == "split" {
					assert.Equal(t, 8.0, column.Index(1).Float())
				} else {
					assert.Equal(t, shown{7, 8}, column.Index(1).Interface())
				}
				_, err = s.Column(ref, arch.Components()[1], 2)
				assert.ErrorIs(t, err, registry.ErrNoComponent)
				_, err = s.Column(ref, arch.Components()[0], 0)
				assert.ErrorIs(t, err, registry.ErrNotPublished)
				return nil
			}))
			var late *registry.Window
			require.NoError(t, e.frame(func(w *registry.Window) error { late = w; return nil }))
			_, err = registry.ArchetypeOf(late, a)
			assert.ErrorIs(t, err, registry.ErrExpired)
			_, err = registry.Parent(late, a)
			assert.ErrorIs(t, err, registry.ErrExpired)
		})
	}
}

func TestLivesCountClaimsAndTheirEnds(t *testing.T) {
	k := newWorld(t, registry.Config{})
	assert.Empty(t, k.r.Archetypes())
	hs := k.spawnMany(100)
	k.update(func(w *registry.Window) { assert.Equal(t, 40, w.DestroyBatch(hs[:40])) })
	k.recycle()
	_, err := k.r.Reserve()
	require.NoError(t, err)
	s := k.r.Stats()
	claimed, ended := k.r.Lives()
	assert.EqualValues(t, 101, claimed)
	assert.EqualValues(t, 40, ended)
	assert.Equal(t, 0, s.Archetypes[0].Number)
	assert.Equal(t, s.Archetypes[0].Class, k.r.Archetypes()[0].ClassName())
}
