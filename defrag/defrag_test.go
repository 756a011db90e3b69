package defrag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type Self struct{ H handles.Local }
type Pos struct{ X, Y float64 }
type Name struct{ S string }
type body struct {
	Self Self
	Pos  Pos
	Name Name
}

func window(t require.TestingT, r *registry.Registry, fn func(*registry.Window)) {
	require.NoError(t, r.Update(func(w *registry.Window) error { fn(w); return nil }))
}

func TestCasesDefrag(t *testing.T) {
	t.Run("defrag-1", func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		c, err := registry.RegisterClass[body](r)
		require.NoError(t, err)
		var hs []handles.Local
		window(t, r, func(w *registry.Window) {
			for i := range 10_000 {
				h, err := c.Spawn(w, body{Pos: Pos{X: float64(i)}})
				require.NoError(t, err)
				require.NoError(t, registry.Set(w, h, Self{h}))
				hs = append(hs, h)
			}
			for i := 0; i < len(hs); i += 2 {
				require.NoError(t, w.Destroy(hs[i]))
			}
			w.ProcessDeferredDestructions()
		})
		moved := 0
		for _, limit := range []int{1, 100} {
			d, err := defrag.New(r, defrag.Config{Moves: limit})
			require.NoError(t, err)
			for runs := 0; ; runs++ {
				var rep defrag.Report
				window(t, r, func(w *registry.Window) {
					rep, err = d.Run(w)
					require.NoError(t, err)
				})
				require.LessOrEqual(t, rep.Moved, limit)
				moved += rep.Moved
				if limit == 1 && runs == 20 {
					break
				}
				if rep.Left == 0 {
					break
				}
			}
			require.NoError(t, r.Verify())
		}
		require.Equal(t, 5, r.Stats().Chunks)
		t.Log(moved, r.CacheCap())
		window(t, r, func(w *registry.Window) {
			for i := 1; i < len(hs); i += 2 {
				s, err := registry.Get[Self](w, hs[i])
				require.NoError(t, err)
				require.Equal(t, hs[i], s.H)
			}
		})
	})
}
