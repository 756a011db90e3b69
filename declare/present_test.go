package declare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

const shown = `world {
  title = "Shown"
  gravity = (0, -9.81)
  entity lamp { state = (lit = 1, x = 2) position = (x, x * 2, -x) color = red label = "a lamp" shape = circle }
  entity ghost { state = (x = 0) hidden }
  entity bare { }
  pool p[3000] { state = (x = 0, v = 2) size = v / 2 color = (1, 0.5, x, 1) hidden = x > 2500 or x == 3 }
}
systems {
  spawn { on = lamp; pool = p; count = 2000 }
  update { on = p; dt = 0.5 x = x + 1 }
  update { on = lamp x = x + 1 }
  despawn { on = p; when = x == 1 and active(p#1999) == 0 }
  update { on = lamp; active = x < 6 }
}`

func TestPresentShowsWhoIsActiveInAFrame(t *testing.T) {
	r := runner(t, shown, declare.RunnerOptions{TemporalFrames: 16})
	w := r.World()
	present := func(frame uint64) (out declare.PresentationFrame) {
		snap, err := w.Registry().AcquireAt(frame)
		require.NoError(t, err)
		defer snap.Release()
		return w.Present(snap)
	}
	steps(t, r, 1)
	first := present(1)
	require.Equal(t, "Shown", first.Title)
	require.Equal(t, []any{uint64(1), uint64(1), 0.5}, []any{first.Frame, first.Steps, first.Time})
	require.Equal(t, []float64{0, -9.81}, first.World.Gravity)
	require.Len(t, first.Entities, 2+2000)
	lamp := first.Entities[0]
	require.Equal(t, declare.Presented{
		ID: 1, Name: "lamp", State: []float64{1, 3},
		Appearance: declare.Appearance{Position: []float64{3, 6, -3}, ColorName: "red", Label: "a lamp", Shape: "circle"},
	}, lamp)
	require.Equal(t, "bare", first.Entities[1].Name)
	require.Empty(t, first.Entities[1].State)
	one := first.Entities[1201]
	require.Equal(t, declare.Presented{
		ID: 1203, Name: "p#1199", Group: 3, Slot: 1199, State: []float64{3, 3}[:0:0],
		Appearance: declare.Appearance{Size: one.Size, Color: one.Color},
	}, func() declare.Presented { p := one; p.State = p.State[:0:0]; return p }())
	for i, e := range first.Entities[2:] {
		require.Equal(t, uint32(4+i), e.ID)
		require.Equal(t, w.Program().Name(e.ID), e.Name)
		state, active, ok := stateOf(t, w, e.ID)
		require.True(t, ok && active)
		require.Equal(t, state, e.State)
		require.Equal(t, []float64{state[1] / 2}, e.Size)
		require.Equal(t, []float64{1, 0.5, state[0], 1}, e.Color)
	}

	steps(t, r, 3)
	require.Len(t, present(4).Entities, 1+3000, "the lamp is out")
	again := present(1)
	require.Equal(t, first.Entities, again.Entities, "a frame of the past is as it was")

	var reused declare.PresentationFrame
	require.NoError(t, w.Registry().Read(func(s *registry.Snapshot) error {
		for range 3 { // its memory grows
			w.PresentTo(s, &reused)
		}
		require.Zero(t, testing.AllocsPerRun(10, func() { w.PresentTo(s, &reused) }))
		return nil
	}))
	require.Equal(t, uint64(4), reused.Steps)
	other := runner(t, shown, declare.RunnerOptions{})
	steps(t, other, 1)
	require.NoError(t, other.World().Registry().Read(func(s *registry.Snapshot) error {
		require.Empty(t, w.Present(s).Entities, "of another registry")
		return nil
	}))
}

func TestHiddenOnesAreLeftOut(t *testing.T) {
	r := runner(t, `world { entity e { state = (x = 0) hidden = x % 2 == 1 } } systems { update { on = e x = x + 1 } }`, declare.RunnerOptions{})
	for step := range 6 {
		steps(t, r, 1)
		require.NoError(t, r.World().Registry().Read(func(s *registry.Snapshot) error {
			require.Len(t, r.World().Present(s).Entities, step%2)
			return nil
		}))
	}
}

func TestDisassembleListsAProgram(t *testing.T) {
	p := load(t, pooled, nil)
	out := declare.Disassemble(p)
	require.Equal(t, declare.Disassemble(load(t, pooled, nil)), out)
	for _, line := range []string{
		"system 0: spawn on emitter, line 8, 3 registers, into p, every 1 steps from 0 on",
		"227  findfree   r2, @p#0, 24",
		"228  spawninto  r2, 2",
		"system 1: update on p, line 9, ",
		" 19  select     r",
		" 32  store      x, r",
		"system 2: despawn on p",
		" 33  setactive  r",
		"  0  end\n",
	} {
		require.Contains(t, out, line)
	}
	require.NotContains(t, out, "opcode")
	require.Len(t, strings.Split(declare.Disassemble(load(t, rich, nil)), "\n\n"), 2)
	require.Equal(t, []any{declare.Opcode(227), declare.Opcode(228)}, []any{declare.FindFreeSlot, declare.SpawnInto})
	require.Empty(t, declare.Disassemble(load(t, "world { }", nil)))
	require.Equal(t, "opcode", declare.Opcode(99).String())
}
