package views_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// modelled is what the model knows of an entity.
type modelled struct {
	value  float64
	active bool
	frozen bool
}

// shown is one yielded run, in cache indices.
type shown struct {
	lo, hi uint32
	ids    []handles.Local
	values []float64
}

// TestLoopsAgreeWithAMap takes random steps beside a plain map. The map says who lives; where
// they live is asked of the registry, entity by entity, and runs are derived from that.
func TestLoopsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		_, err = registry.RegisterComponent[Frozen](r)
		require.NoError(t, err)
		slots := uint32(rapid.SampledFrom([]int{64, 128, 192}).Draw(t, "slots"))
		c, err := registry.RegisterClass[Mover](r, registry.SlotsPerChunk(int(slots)))
		require.NoError(t, err)
		all, err := views.NewQuery[movers](r)
		require.NoError(t, err)
		thawed, err := views.NewQuery[movers](r, views.Without[Frozen]())
		require.NoError(t, err)
		frozen, err := views.NewQuery[movers](r, views.With[Frozen]())
		require.NoError(t, err)

		plain := &world{Registry: r, tb: t}
		for _, q := range []*views.Query[movers]{all, thawed, frozen} {
			q.SpreadFrom(0)
		}
		model := map[handles.Local]*modelled{}
		var order []handles.Local // of spawning, so that draws are repeatable
		next := 0.0
		window := func(fn func(*registry.Window)) {
			require.NoError(t, r.Update(func(w *registry.Window) error { fn(w); return nil }))
		}
		pick := func() []handles.Local {
			if len(order) == 0 {
				t.Skip("nobody lives")
			}
			// Ranges and places near a word's border are more telling than scattered ones.
			lo := rapid.OneOf(rapid.SampledFrom(borders), rapid.IntRange(0, len(order)-1)).Draw(t, "lo") % len(order)
			n := rapid.SampledFrom([]int{1, 1, 2, 3, 63, 64, 65}).Draw(t, "n")
			return slices.Clone(order[lo:min(lo+n, len(order))])
		}
		steps := map[string]func(*rapid.T){
			"spawn": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 2, 62, 63, 64, 65, 66, 127, 128, 129}).Draw(t, "n")
				window(func(w *registry.Window) {
					hs, err := c.SpawnBatch(w, n, func(i int, e *Mover) { e.Pos.X = next + float64(i) })
					require.NoError(t, err)
					for i, h := range hs {
						model[h] = &modelled{value: next + float64(i), active: true}
						order = append(order, h)
					}
				})
				next += float64(n)
			},
			"destroy": func(t *rapid.T) {
				hs := pick()
				window(func(w *registry.Window) { require.Equal(t, len(hs), w.DestroyBatch(hs)) })
				for _, h := range hs {
					delete(model, h)
				}
				order = slices.DeleteFunc(order, func(h handles.Local) bool { return model[h] == nil })
			},
			"reclaim": func(*rapid.T) {
				window(func(w *registry.Window) { w.ProcessDeferredDestructions(); w.ConfirmLocalRecycles() })
			},
			"flip active": func(t *rapid.T) {
				hs := pick()
				window(func(w *registry.Window) {
					for _, h := range hs {
						model[h].active = !model[h].active
						require.NoError(t, registry.SetActive(w, h, model[h].active))
					}
				})
			},
			"flip frozen": func(t *rapid.T) {
				hs := pick()
				window(func(w *registry.Window) {
					for _, h := range hs {
						if model[h].frozen = !model[h].frozen; model[h].frozen {
							require.NoError(t, registry.Add(w, h, Frozen{}))
						} else {
							require.NoError(t, registry.Remove[Frozen](w, h))
						}
					}
				})
			},
			"": func(t *rapid.T) {
				look := func(a registry.Access) {
					agree(t, a, all, slots, model, func(*modelled) bool { return true })
					agree(t, a, thawed, slots, model, func(m *modelled) bool { return !m.frozen })
					agree(t, a, frozen, slots, model, func(m *modelled) bool { return m.frozen })
				}
				window(func(w *registry.Window) { look(w) })
				if rapid.Bool().Draw(t, "frame") { // which reclaims, too
					plain.frameWith(3, func(f *registry.Frame) { look(f) })
				}
				require.NoError(t, r.Verify())
			},
		}
		t.Repeat(steps)
		require.NoError(t, r.Verify())
	})
}

func agree(t *rapid.T, w registry.Access, q *views.Query[movers], slots uint32, model map[handles.Local]*modelled, match func(*modelled) bool) {
	type place struct {
		at uint32
		id handles.Local
	}
	var places []place
	archetypeOf := map[uint32]bool{} // by chunk: whether its entities are frozen
	for h, m := range model {
		if !m.active || !match(m) {
			continue
		}
		at, ok := registry.CacheIndex(w, h)
		require.True(t, ok)
		places = append(places, place{at, h})
		archetypeOf[at/slots] = m.frozen
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	var want []shown
	for _, p := range places {
		if n := len(want); n == 0 || want[n-1].hi != p.at || p.at%slots == 0 {
			want = append(want, shown{lo: p.at, hi: p.at})
		}
		run := &want[len(want)-1]
		run.hi++
		run.ids = append(run.ids, p.id)
		run.values = append(run.values, model[p.id].value)
	}

	var got []shown
	var runs [][]handles.Local
	for m := range q.Runs(w) {
		require.NotEmpty(t, m.ID)
		require.Len(t, m.Pos, len(m.ID))
		require.Len(t, m.Vel, len(m.ID))
		lo, ok := registry.CacheIndex(w, m.ID[0])
		require.True(t, ok, "%v is shown, but has no place", m.ID[0])
		run := shown{lo: lo, hi: lo + uint32(len(m.ID)), ids: slices.Clone(m.ID)}
		for _, p := range m.Pos {
			run.values = append(run.values, p.X)
		}
		got = append(got, run)
		runs = append(runs, run.ids)
	}
	// Archetype by archetype, and in each by chunk and slot. A chunk that came later may have the
	// cache indices of one that is gone, so the order of chunks is not that of their indices.
	byPlace := func(a, b shown) int {
		fa, fb := archetypeOf[a.lo/slots], archetypeOf[b.lo/slots]
		if fa != fb {
			if fb {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.lo, b.lo)
	}
	slices.SortFunc(want, byPlace)
	slices.SortFunc(got, byPlace)
	require.Equal(t, want, got)
	require.Equal(t, len(places), q.Count(w))
	sameEverywhere(t, q, w, runs)
}
