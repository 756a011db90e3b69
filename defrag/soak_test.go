package defrag_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// TestMemoryEndsWhereItFirstPeaked lets a registry grow, fall to a thousandth and grow again, ten
// times: with compaction, without, and where it is refused.
func TestMemoryEndsWhereItFirstPeaked(t *testing.T) {
	most, least := 1_000_000, 1000
	if testing.Short() || raceEnabled {
		most, least = 50_000, 50
	}
	for _, c := range []struct {
		name          string
		deterministic bool
		compact       bool
		clustered     bool // whole chunks die
	}{
		{"compaction", false, true, false},
		{"without", false, false, false},
		{"without, in clusters", false, false, true},
		{"refused", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := registry.New(registry.Config{Deterministic: c.deterministic})
			require.NoError(t, err)
			class, err := registry.RegisterClass[cloud](r)
			require.NoError(t, err)
			var d *defrag.Compactor
			if c.compact {
				d, err = defrag.New(r, defrag.Config{})
				require.NoError(t, err)
			}
			rng := rand.New(rand.NewPCG(7, 7))
			var living []handles.Local
			var first registry.Stats
			for round := range 10 {
				require.NoError(t, r.Update(func(w *registry.Window) error {
					hs, err := class.SpawnBatch(w, most-len(living), nil)
					living = append(living, hs...)
					return err
				}))
				peak := r.Stats()
				if round == 0 {
					first = peak
				}
				require.Equal(t, most, peak.Live)
				require.LessOrEqual(t, peak.Archetypes[0].Bytes, first.Archetypes[0].Bytes, "round %d", round)
				require.LessOrEqual(t, peak.Chunks, first.Chunks+1)
				if !c.clustered {
					rng.Shuffle(len(living), func(i, k int) { living[i], living[k] = living[k], living[i] })
				}
				for range 3 {
					require.NoError(t, r.Update(func(w *registry.Window) error {
						w.DestroyBatch(living[least:])
						w.ProcessDeferredDestructions()
						w.ConfirmLocalRecycles()
						return nil
					}))
					living = living[:least]
				}
				if c.clustered {
					require.LessOrEqual(t, r.Stats().Chunks, least/1024+2)
				}
				if c.compact {
					require.NoError(t, r.Update(func(w *registry.Window) error { _, err = d.Run(w); return err }))
					require.Equal(t, 1, r.Stats().Chunks)
				}
			}
			require.NoError(t, r.Verify())
		})
	}
}
