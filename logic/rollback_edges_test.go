package logic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// An engine that has stopped goes nowhere, and says so under its own name.
func TestAStoppedEngineDoesNotGoBack(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	for range 5 {
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Stop())
	err := w.e.Rollback(3)
	require.ErrorIs(t, err, logic.ErrStopped)
	require.EqualError(t, err, "logic: engine stopped: rollback to frame 3 in frame 5")
	err = w.e.Input(1, 4, []byte{1})
	require.ErrorIs(t, err, logic.ErrStopped)
	require.EqualError(t, err, "logic: engine stopped: input of player 1 for frame 4 in frame 5")
}

// Readers that hold as many older frames as there may be keep others from going back, and nothing is changed by that.
func TestReadersThatHoldTooMuchKeepFromGoingBack(t *testing.T) {
	for _, sync := range []int{0, 3} {
		w := newTheatre(t, logic.Config{Workers: 1, SyncTest: sync})
		for range 20 {
			require.NoError(t, w.e.Step())
		}
		var held []*registry.Snapshot
		for {
			s, err := w.r.AcquireAt(w.e.FrameNumber() - 1)
			if err != nil {
				require.ErrorIs(t, err, registry.ErrExhausted)
				break
			}
			held = append(held, s)
			require.NoError(t, w.e.Step())
		}
		require.Greater(t, len(held), 8)
		_, before := w.living()
		err := w.e.Rollback(w.e.FrameNumber() - 1)
		require.ErrorIs(t, err, logic.ErrTooOld)
		_, after := w.living()
		require.Equal(t, before, after)
		require.Zero(t, w.e.Stats().Rollbacks)
		require.NoError(t, w.e.Step(), "frames go on, without a SyncTest")
		for _, s := range held {
			s.Release()
		}
		for range 4 {
			require.NoError(t, w.e.Step())
		}
		require.NoError(t, w.e.Rollback(w.e.FrameNumber()-1))
		require.NoError(t, w.e.Step())
		require.EqualValues(t, 1, w.e.Stats().Rollbacks)
		require.NoError(t, w.r.Verify())
	}
}

// An input that comes when Logic has just taken those of its frame is late for it: it has the frame simulated again, and is not
// kept for a frame to come.
func TestAnInputThatComesAsItsFrameBeginsIsNotLost(t *testing.T) {
	w := newWorldIn(t, registry.Config{TemporalFrames: 8, MaxEntities: 8})
	seen := map[uint64]string{} // what a frame was simulated with last
	_, err := w.e.AddSystem(logic.Physics, "reader", func(f *logic.Frame) {
		in, _ := f.Input(1)
		seen[f.FrameNumber()] = string(in)
	})
	require.NoError(t, err)
	for range 3 {
		w.step()
	}
	came := false
	logic.WhenInputsAreTaken(w.e, func(frame uint64) {
		if !came {
			came = true
			require.EqualValues(t, 4, frame)
			require.NoError(t, w.e.Input(1, frame, []byte("left")))
		}
	})
	w.step()
	w.step()
	require.Equal(t, "left", seen[4])
	require.Empty(t, seen[5])
	require.EqualValues(t, 1, w.e.Stats().Rollbacks)
}
