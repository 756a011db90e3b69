package views_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// Bird has a column of every kind.
type Bird struct {
	Pos  Position
	Name Name
	Alt  Altitude
	Odd  Odd
}

type birds struct {
	Pos  []Position
	Name []Name
	Y    []float32 `ecs:"Altitude.Y"`
	ID   []handles.Local
	At   []uint32 `ecs:"index"`
}

func TestSpawnColumnsFillsWholeColumns(t *testing.T) {
	w := newWorld(t)
	c := class[Bird](w, registry.SlotsPerChunk(128))
	all := query[ids](w)
	var hs []handles.Local
	w.window(func(win *registry.Window) {
		first, err := c.SpawnBatch(win, 200, nil)
		require.NoError(t, err)
		hs = first
	})
	w.destroy(hs[3:7]...)
	w.destroy(hs[20], hs[100])
	w.window(func(win *registry.Window) {
		var filled []handles.Local
		runs := 0
		var kept *birds
		spawned, err := views.SpawnColumns(win, c, 300, func(m *birds) {
			kept = m
			runs++
			for _, n := range []int{len(m.Name), len(m.Y), len(m.ID), len(m.At), cap(m.Pos)} {
				require.Equal(t, len(m.Pos), n)
			}
			require.Equal(t, 194, len(visited(all, win))-len(filled), "those of this run are not in sight")
			for i := range m.Pos {
				require.Zero(t, m.Pos[i])
				m.Pos[i].X = float64(len(filled))
				m.Name[i].Text = "bird"
				m.Y[i] = float32(len(filled))
				filled = append(filled, m.ID[i])
			}
		})
		require.NoError(t, err)
		require.Equal(t, filled, spawned)
		require.Greater(t, runs, 3)
		require.Equal(t, birds{}, *kept, "kept beyond its run, it shows nothing")
		require.Equal(t, 494, all.Count(win))
		i := 0
		for _, h := range spawned {
			p, err := registry.Peek[Position](win, h)
			require.NoError(t, err)
			n, err := registry.Peek[Name](win, h)
			require.NoError(t, err)
			require.Equal(t, Position{X: float64(i)}, p)
			require.Equal(t, Name{Text: "bird"}, n)
			require.True(t, registry.Has[Odd](win, h))
			i++
		}
		for m := range query[birds](w).Runs(win) {
			for i, h := range m.ID {
				if j := slices.Index(spawned, h); j >= 0 {
					require.InDelta(t, j, m.Y[i], 0)
				}
			}
		}
		none, err := views.SpawnColumns(win, c, 0, func(*birds) { t.Error("filled") })
		require.NoError(t, err)
		require.Empty(t, none)
		five, err := views.SpawnColumns[birds](win, c, 5, nil)
		require.NoError(t, err)
		require.Len(t, five, 5)
		tags, err := views.SpawnColumns(win, c, 2, func(*struct{}) {})
		require.NoError(t, err)
		require.Len(t, tags, 2)
		require.Equal(t, 501, all.Count(win))
	})
}

func TestSpawnColumnsRefuses(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	c, foreign := class[Bird](w), class[Bird](other)
	class[Mover](w)
	all := query[ids](w)
	var kept *registry.Window
	w.window(func(win *registry.Window) {
		kept = win
		_, err := views.SpawnColumns(win, c, 5, func(*struct {
			Pos []Position
			Vel []Velocity
		}) {
		})
		require.ErrorContains(t, err, "field Vel")
		assert.ErrorContains(t, err, "Bird")
		_, err = views.SpawnColumns(win, c, 5, func(m *struct {
			Pos []Position
			Vel []Velocity `ecs:"optional"`
		}) {
			require.Nil(t, m.Vel)
		})
		require.NoError(t, err)
		_, err = views.SpawnColumns(win, c, 5, func(*struct{ Pos Position }) {})
		require.ErrorContains(t, err, "field Pos")
		_, err = views.SpawnColumns(win, c, 5, func(*struct{ Foe []unknown }) {})
		require.ErrorIs(t, err, registry.ErrNotRegistered)
		_, err = views.SpawnColumns(win, c, -1, func(*birds) {})
		require.Error(t, err)
		_, err = views.SpawnColumns(win, foreign, 1, func(*birds) {})
		require.Error(t, err)
		_, err = views.SpawnColumns(win, c, 1<<30, func(*birds) {})
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.Equal(t, 5, all.Count(win))
	})
	_, err := views.SpawnColumns(kept, c, 5, func(*birds) {})
	require.ErrorIs(t, err, registry.ErrExpired)
}

// What looking at the view struct takes, it takes once for a class.
func TestSpawnColumnsLooksAtItsStructOnce(t *testing.T) {
	w := newWorld(t)
	c := class[Bird](w)
	w.window(func(win *registry.Window) {
		spawn := func() {
			hs, err := views.SpawnColumns(win, c, 1, func(m *birds) { m.Pos[0].X = 1 })
			require.NoError(t, err)
			require.NoError(t, win.Destroy(hs[0]))
		}
		spawn()
		require.LessOrEqual(t, testing.AllocsPerRun(100, spawn), 6.0, "the handles, the struct and what closures take")
	})
}

func TestSpawnColumnsThatFailsHasNoEffect(t *testing.T) {
	w := newWorld(t)
	c := class[Bird](w, registry.SlotsPerChunk(64))
	all := query[ids](w)
	failed := errors.New("fill")
	w.window(func(win *registry.Window) {
		before, err := c.SpawnBatch(win, 100, nil)
		require.NoError(t, err)
		require.PanicsWithValue(t, failed, func() {
			runs := 0
			_, _ = views.SpawnColumns(win, c, 200, func(m *birds) {
				for i := range m.Pos {
					m.Pos[i], m.Name[i] = Position{1, 1}, Name{Text: "half"}
				}
				if runs++; runs == 3 {
					panic(failed)
				}
			})
		})
		require.Equal(t, before, visited(all, win))
		_, err = views.SpawnColumns(win, c, 200, func(m *birds) {
			for i := range m.Pos {
				require.Zero(t, m.Pos[i])
				require.Zero(t, m.Name[i])
			}
		})
		require.NoError(t, err)
	})
	require.ErrorIs(t, w.Update(func(win *registry.Window) error {
		_, err := views.SpawnColumns(win, c, 200, func(m *birds) { m.Pos[0].X = 7 })
		require.NoError(t, err)
		return failed
	}), failed)
	w.window(func(win *registry.Window) { require.Equal(t, 300, all.Count(win)) })
}
