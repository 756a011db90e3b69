//go:build !race

package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// Under the race detector the runtime itself allocates, so this is not counted there.
func TestALoopAllocatesNothing(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w), 3000)
		w.destroy(hs[50:60]...)
		q, id := query[movers](w), query[ids](w)
		inside(func(a registry.Access) {
			total := 0
			none := func(what string, fn func()) {
				t.Helper()
				require.Zero(t, testing.AllocsPerRun(100, fn), what)
			}
			none("loop", func() {
				for m := range q.Runs(a) {
					pos, vel := m.Pos, m.Vel
					for i := range pos {
						pos[i].X += vel[i].X
						total++
					}
				}
			})
			none("broken off", func() {
				for m := range q.Runs(a) {
					if total += len(m.Pos); total > 0 {
						break
					}
				}
			})
			none("nested", func() {
				for m := range q.Runs(a) {
					for n := range q.Runs(a) {
						total += len(m.Pos) * len(n.Pos)
					}
					for n := range id.Runs(a) {
						total += len(n.ID)
					}
				}
			})
			none("count", func() { total += q.Count(a) })
			require.NotZero(t, total)
		})
	})
}
