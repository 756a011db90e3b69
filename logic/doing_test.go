package logic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestDoingSaysWhoKeepsLogicAndForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{Watchdog: 2 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, logic.Doing{}, e.Doing())
		assert.Empty(t, e.Systems())
		_, err = e.AddSystem(logic.Late, "slow", func(f *logic.Frame) {
			if f.FrameNumber() == 2 {
				time.Sleep(3 * time.Second)
			}
		})
		require.NoError(t, err)
		require.NoError(t, e.Step())
		require.Len(t, e.Systems(), 1)
		assert.Equal(t, "slow", e.Systems()[0].Name())
		assert.Equal(t, logic.Late, e.Systems()[0].Phase())
		assert.Equal(t, logic.Doing{}, e.Doing())

		go e.Run(context.Background())
		time.Sleep(time.Second)
		synctest.Wait()
		d := e.Doing()
		assert.Equal(t, logic.Doing{Mode: logic.Running, What: "system slow", For: time.Second}, d)
		time.Sleep(1500 * time.Millisecond)
		assert.Contains(t, e.Doing().Stacks, "doing_test.go")
		time.Sleep(time.Second)
		synctest.Wait()
		d = e.Doing()
		assert.Equal(t, "running", d.Mode.String())
		assert.Empty(t, d.What)
		assert.Empty(t, d.Stacks)
		require.NoError(t, e.Stop())
		assert.Equal(t, logic.Doing{Mode: logic.Stopped}, e.Doing())
	})
}

func TestAPausedRunHoldsBetweenFramesAndCatchesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{Rate: 10})
		require.NoError(t, err)
		e.Advance(5) // not paused: for nothing
		e.Pause()
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.Background()) }()
		frames := func() uint64 {
			time.Sleep(time.Second)
			synctest.Wait()
			return e.Stats().Frames
		}
		assert.EqualValues(t, 0, frames())
		assert.True(t, e.Doing().Paused)
		e.Advance(1)
		assert.EqualValues(t, 1, frames())
		e.Advance(2)
		e.Advance(1)
		assert.EqualValues(t, 4, frames())
		e.Resume()
		assert.EqualValues(t, 15, frames())
		assert.False(t, e.Doing().Paused)
		assert.Zero(t, e.Stats().DroppedFrames)
		e.Pause()
		assert.EqualValues(t, 15, frames())
		require.NoError(t, e.Stop())
		require.NoError(t, <-ended)
	})
}

func TestBelowCountsWhatWasShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{})
		require.NoError(t, err)
		wait := 1<<20 - 1
		_, err = e.AddSystem(logic.Late, "slow", func(*logic.Frame) { time.Sleep(time.Duration(wait)) })
		require.NoError(t, err)
		require.NoError(t, e.Step())
		wait++
		require.NoError(t, e.Step())
		h := e.Stats().FrameTime
		assert.EqualValues(t, 0, h.Below(19))
		assert.EqualValues(t, 1, h.Below(20))
		assert.EqualValues(t, 2, h.Below(21))
		assert.EqualValues(t, 2, h.Below(99))
		assert.EqualValues(t, 0, h.Below(-1))
		require.NoError(t, e.Stop())
	})
}
