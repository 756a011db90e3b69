//go:build !race

package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
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
			none("since", func() {
				for m := range q.RunsSince(a, 1) {
					total += len(m.Pos)
				}
			})
			follower := q.Follow()
			none("follower", func() {
				for m := range follower.Runs(a) {
					total += len(m.Pos)
				}
			})
			none("spans", func() {
				for m, mask := range q.Spans(a) {
					pos, vel := m.Pos, m.Vel
					for _, i := range mask.Live() {
						pos[i].X += vel[i].X
					}
					total += mask.Count() + len(mask.Words())
				}
			})
			count := func(_ *registry.Frame, m *movers) { total += len(m.Pos) }
			none("parallel", func() { q.Parallel(a, count) })
			require.NotZero(t, total)
		})
	})
}

// TestSpansAllocateNothingWhenMasksChange has other slots live each time.
func TestSpansAllocateNothingWhenMasksChange(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w), 3000)
	q := query[movers](w)
	w.window(func(win *registry.Window) {
		total, round := 0, 0
		require.Zero(t, testing.AllocsPerRun(100, func() {
			round++
			for i, h := range hs {
				if i%7 == round%7 {
					_ = registry.SetActive(win, h, i%3 == round%3)
				}
			}
			for _, mask := range q.Spans(win) {
				total += len(mask.Live())
			}
		}))
		require.NotZero(t, total)
	})
}

func TestParallelOnWorkersAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	w.spawn(class[Mover](w), 3000)
	q := query[movers](w)
	q.SpreadFrom(0)
	work := func(_ *registry.Frame, m *movers) {
		pos, vel := m.Pos, m.Vel
		for i := range pos {
			pos[i].X += vel[i].X
		}
	}
	core, err := w.Attach(registry.Hooks{Workers: 3, Spread: func(n int, run func(int)) {
		for i := range n { // one after another, for a goroutine is an allocation of the test's
			run(i)
		}
	}})
	require.NoError(t, err)
	defer core.Detach()
	require.NoError(t, core.Enter(false))
	defer core.Leave()
	core.Advance()
	f := core.NewFrame()
	defer core.EndFrame()
	core.System("test", func() {
		require.Zero(t, testing.AllocsPerRun(100, func() { q.Parallel(f, work) }))
	})
}

func TestDestroyAllAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	all, none := query[ids](w), query[ids](w, views.With[Frozen]())
	w.spawn(c, 3000)
	w.window(func(win *registry.Window) {
		require.Zero(t, testing.AllocsPerRun(100, func() { none.DestroyAll(win) }))
		require.Equal(t, 3000, all.DestroyAll(win))
		win.ProcessDeferredDestructions()
	})
}
