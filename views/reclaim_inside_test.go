package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// TestWhatALoopWritesAfterAReclaimIsGone writes to slots whose entities its own body has had reclaimed.
func TestWhatALoopWritesAfterAReclaimIsGone(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	hs := w.spawn(c, 10)
	q := query[movers](w)
	w.window(func(win *registry.Window) {
		for m := range q.Spans(win) {
			require.NoError(t, win.Destroy(hs[3]))
			win.ProcessDeferredDestructions()
			for i := range m.Pos {
				m.Pos[i].X = 5
			}
		}
		again, err := c.SpawnBatch(win, 1, nil)
		require.NoError(t, err)
		p, err := registry.Peek[Position](win, again[0])
		require.NoError(t, err)
		require.Zero(t, p)
	})
}

// TestWhatALoopWritesWhereSomebodyWasIsGone writes to slots whose entities its own body has moved to another archetype, after the
// moves have become final.
func TestWhatALoopWritesWhereSomebodyWasIsGone(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	hs := w.spawn(c, 10)
	q := query[movers](w)
	w.window(func(win *registry.Window) {
		for m := range q.Spans(win) {
			require.NoError(t, registry.Remove[Velocity](win, hs[3]))
			require.Equal(t, 2, registry.RemoveBatch[Velocity](win, hs[5:7]))
			win.ProcessDeferredDestructions()
			for i := range m.Pos {
				m.Pos[i].X = 5
			}
		}
		again, err := c.SpawnBatch(win, 3, nil)
		require.NoError(t, err)
		for _, h := range again {
			p, err := registry.Peek[Position](win, h)
			require.NoError(t, err)
			require.Zero(t, p)
		}
	})
}
