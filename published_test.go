package airlock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type (
	where struct{ X, Y float64 } // Volatile, and Temporal in a registry with a ring
	sand  struct {
		Tag   tag
		Where where
		Note  note
	}
	grains struct {
		Tag   []tag   `ecs:"read"`
		Where []where `ecs:"read"`
		Note  []note  `ecs:"read"`
		ID    []handles.Local
		At    []uint32 `ecs:"index"`
	}
)

// TestAReaderDuringTheMove is the case defrag-4: entities are compacted while a reader holds a frame.
func TestAReaderDuringTheMove(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		t.Run(fmt.Sprintf("defrag-4/temporal=%d", temporal), func(t *testing.T) {
			r := must(registry.New(registry.Config{TemporalFrames: temporal}))
			for _, err := range []error{
				register[tag](r, archetype.Temporal), register[where](r, archetype.Temporal), register[note](r, archetype.Volatile),
			} {
				require.NoError(t, err)
			}
			class := must(registry.RegisterClass[sand](r, registry.SlotsPerChunk(64)))
			q := must(views.NewQuery[grains](r, views.Published()))
			e := must(logic.New(r, logic.Config{}))
			t.Cleanup(func() {
				require.NoError(t, e.Stop())
				require.NoError(t, r.Verify())
			})
			d := must(defrag.New(r, defrag.Config{}))
			window := func(fn func(w *registry.Window)) {
				require.NoError(t, r.Update(func(w *registry.Window) error { fn(w); return nil }))
			}

			var hs []handles.Local
			places := map[handles.Local]uint32{}
			window(func(w *registry.Window) {
				hs = must(class.SpawnBatch(w, 1000, nil))
				for i, h := range hs {
					require.NoError(t, registry.Set(w, h, tag{h}))
					require.NoError(t, registry.Set(w, h, where{X: float64(i)}))
					require.NoError(t, registry.Set(w, h, note{fmt.Sprint(i)}))
				}
				for i, h := range hs {
					if i%10 != 0 {
						require.NoError(t, w.Destroy(h))
					}
				}
			})
			for range max(temporal, 2) { // with a ring, slots of the dead are free when nobody can go back to them
				require.NoError(t, e.Step())
			}
			window(func(w *registry.Window) {
				for i := 0; i < len(hs); i += 10 {
					places[hs[i]], _ = registry.CacheIndex(w, hs[i])
				}
			})
			require.NoError(t, e.Step())
			snap := must(r.Acquire())
			defer snap.Release()
			look := func() {
				t.Helper()
				seen := map[handles.Local]bool{}
				for m := range q.Runs(snap) {
					for k, h := range m.ID {
						require.False(t, seen[h], "%v twice", h)
						seen[h] = true
						require.Equal(t, h, m.Tag[k].Self)
						require.Equal(t, places[h], m.At[k])
						require.Equal(t, fmt.Sprint(m.Where[k].X), m.Note[k].Text)
					}
				}
				require.Len(t, seen, 100)
				for i := 0; i < len(hs); i += 10 {
					require.Equal(t, where{X: float64(i)}, must(registry.Peek[where](snap, hs[i])))
					at, ok := registry.CacheIndex(snap, hs[i])
					require.True(t, ok)
					require.Equal(t, places[hs[i]], at)
				}
			}
			look()
			window(func(w *registry.Window) {
				rep := must(d.Run(w))
				require.NotZero(t, rep.Moved)
			})
			look()
			for frame := range 5 {
				window(func(w *registry.Window) {
					for i := 0; i < len(hs); i += 10 {
						require.NoError(t, registry.Set(w, hs[i], where{X: -1}))
						require.NoError(t, registry.Set(w, hs[i], note{"later"}))
					}
					_ = must(class.SpawnBatch(w, 100*frame, nil)) // into what they have left
				})
				require.NoError(t, e.Step())
				require.NoError(t, r.Verify())
				look()
			}
		})
	}
}

func register[C any](r *registry.Registry, tier archetype.Tier) error {
	_, err := registry.RegisterComponent[C](r, registry.InTier(tier))
	return err
}
