package defrag_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/registry"
)

func TestNewRefusesNonsense(t *testing.T) {
	_, err := defrag.New(nil, defrag.Config{})
	require.Error(t, err)
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = defrag.New(r, defrag.Config{Moves: -1})
	require.Error(t, err)
}

func TestRunRefusesTheWrongWindow(t *testing.T) {
	x, y := newWorld(t, 0), newWorld(t, 0)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	y.window(t, func(w *registry.Window) {
		_, err := d.Run(w)
		require.Error(t, err)
	})
	var kept *registry.Window
	x.window(t, func(w *registry.Window) { kept = w })
	_, err = d.Run(kept)
	require.ErrorIs(t, err, registry.ErrExpired)
}

func TestRunIsRefusedInsideALoop(t *testing.T) {
	x := newWorld(t, 0)
	x.spawn(t, 0, 300)
	x.destroy(t, everyOther(x.order), false)
	x.reclaim(t)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	x.window(t, func(w *registry.Window) {
		registry.Iterate(w)
		_, err := d.Run(w)
		require.ErrorIs(t, err, registry.ErrIterating)
		registry.Finish(w)
		rep, err := d.Run(w)
		require.NoError(t, err, "the loop is over")
		require.Positive(t, rep.Moved)
	})
	x.agree(t)
}

func TestACallbackThatFailsAfterRunKeepsItsMoves(t *testing.T) {
	x := newWorld(t, 0)
	x.spawn(t, 0, 300)
	x.destroy(t, everyOther(x.order), false)
	x.reclaim(t)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	failure := errors.New("after all")
	require.ErrorIs(t, x.r.Update(func(w *registry.Window) error {
		rep, err := d.Run(w)
		require.NoError(t, err)
		require.Positive(t, rep.Moved)
		_, err = x.clouds.Spawn(w, cloud{})
		require.NoError(t, err)
		return failure
	}), failure)
	x.agree(t)
}

func TestOnlyCosmeticClassesMoveInADeterministicRegistry(t *testing.T) {
	r, err := registry.New(registry.Config{Deterministic: true})
	require.NoError(t, err)
	stones, err := registry.RegisterClass[stone](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	clouds, err := registry.RegisterClass[cloud](r, registry.SlotsPerChunk(64), registry.Cosmetic())
	require.NoError(t, err)
	d, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	isCloud := map[uint64]bool{}
	_, err = r.OnMove(func(ms []registry.Move) {
		for _, m := range ms {
			require.True(t, isCloud[uint64(m.Entity)])
		}
	})
	require.NoError(t, err)
	require.NoError(t, r.Update(func(w *registry.Window) error {
		for i := range 600 {
			s, err := stones.Spawn(w, stone{})
			require.NoError(t, err)
			c, err := clouds.Spawn(w, cloud{})
			require.NoError(t, err)
			isCloud[uint64(c)] = true
			if i%3 != 0 {
				require.NoError(t, w.Destroy(s))
				require.NoError(t, w.Destroy(c))
			}
		}
		w.ProcessDeferredDestructions()
		return nil
	}))
	var rep defrag.Report
	require.NoError(t, r.Update(func(w *registry.Window) error { rep, err = d.Run(w); return err }))
	require.Positive(t, rep.Moved)
	for _, a := range r.Stats().Archetypes {
		if a.Class == "defrag_test.cloud" {
			require.Equal(t, a.Live, a.Allocated)
		} else {
			require.Equal(t, 600, a.Allocated, "nothing else has changed")
		}
	}
	require.NoError(t, r.Verify())
}
