package logic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// A peer may join in the very window in which an entity dies and is buried: it was there
// before the death, so it is waited for.
func TestAPeerHoldsBackWhatDiesInTheWindowItJoinedIn(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.e.AddPeer(1))
	require.NoError(t, w.e.Step())
	spawn := func(win *registry.Window) (h handles.Local) {
		h, err := w.class.Spawn(win, thing{})
		require.NoError(t, err)
		_, err = win.AssignNet(h)
		require.NoError(t, err)
		return h
	}
	bury := func(win *registry.Window, h handles.Local) {
		require.NoError(t, win.Destroy(h))
		require.Equal(t, 1, win.ProcessDeferredDestructions())
	}
	require.NoError(t, w.e.Defer(func(win *registry.Window) error {
		before, after := spawn(win), spawn(win)
		bury(win, before)
		require.NoError(t, w.e.AddPeer(2))
		bury(win, after)
		return nil
	}))
	require.NoError(t, w.e.Step())
	died := w.e.FrameNumber()
	require.Equal(t, 2, w.r.Stats().Net.Pending)
	require.NoError(t, w.e.Ack(1, died))
	require.NoError(t, w.e.Step())
	require.Equal(t, 1, w.r.Stats().Net.Pending, "the second peer knew only the one")
	require.NoError(t, w.e.Ack(2, died))
	require.NoError(t, w.e.Step())
	require.Zero(t, w.r.Stats().Net.Pending)
}

// Between a death and its reclaim the index is not pending yet, but who joins then has never
// heard of the entity.
func TestAPeerDoesNotHoldBackWhatDiedBeforeItJoined(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.e.AddPeer(1))
	h, _ := w.spawnNet(1)
	w.step()
	require.NoError(t, w.e.Defer(func(win *registry.Window) error { return win.Destroy(h) }))
	w.step()
	require.False(t, w.r.Alive(h))
	require.Zero(t, w.r.Stats().Net.Pending, "not reclaimed")
	require.NoError(t, w.e.AddPeer(2))
	w.step()
	require.Equal(t, 1, w.r.Stats().Net.Pending, "the first peer knew it")
	require.NoError(t, w.e.Ack(1, w.e.FrameNumber()))
	w.step()
	require.Zero(t, w.r.Stats().Net.Pending)
}

// While frames are simulated again, what was the present is a frame that has run: it can be acknowledged, and who joins knows it.
func TestPeersWhileFramesAreSimulatedAgain(t *testing.T) {
	w := newWorldIn(t, registry.Config{TemporalFrames: 8, MaxEntities: 8})
	require.NoError(t, w.e.AddPeer(1))
	again := false
	_, err := w.e.AddSystem(logic.Physics, "asks", func(f *logic.Frame) {
		if again = again || f.FrameNumber() == 3 && w.e.Stats().Frames == 5; !again || f.FrameNumber() != 3 {
			return
		}
		require.NoError(t, w.e.Ack(1, 5))
		require.NoError(t, w.e.AddPeer(2))
		s := w.e.Stats()
		require.EqualValues(t, 5, s.SlowestAck, "who joins is not the slowest for being new")
		require.ErrorIs(t, w.e.Ack(1, 6), registry.ErrNotPublished)
	})
	require.NoError(t, err)
	for range 5 {
		w.step()
	}
	require.NoError(t, w.e.Rollback(2))
	w.step()
	require.True(t, again)
}
