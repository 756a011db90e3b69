package logic_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// throughExits steps the core on one goroutine after the other, until the frame is whole. It
// says how many that took.
func throughExits(c *logic.Core) (goroutines int) {
	for begun := false; !begun || c.MidFrame(); goroutines++ {
		begun = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Step()
		}()
		<-done
	}
	return goroutines
}

func TestTheCoreRunsFramesWithoutClockOrQueue(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	class, err := registry.RegisterClass[thing](r)
	require.NoError(t, err)
	c, free, err := logic.NewCore(r)
	require.NoError(t, err)
	defer free()
	for _, p := range []logic.Phase{logic.Late, logic.PrePhysics} {
		c.Add(p, p.String(), func(f *logic.Frame) {
			c.Log = append(c.Log, fmt.Sprint(p, " ", f.FrameNumber(), " ", f.Delta, " ", r.Stats().Live))
		})
	}
	c.Serve = func(core *registry.Core) {
		require.NoError(t, core.CallbackRecover(func(w *registry.Window) error {
			_, err := class.Spawn(w, thing{})
			return err
		}))
	}
	c.Step()
	c.Step()
	assert.False(t, c.MidFrame())
	assert.Equal(t, []string{
		"collect", "serve", "PrePhysics 1 0.5 1", "Late 1 0.5 1",
		"collect", "serve", "PrePhysics 2 0.5 2", "Late 2 0.5 2",
	}, c.Log)
	c.Leave()
	require.NoError(t, r.Verify())
}

func TestTheCoreGoesOnBehindWhoeverExits(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	class, err := registry.RegisterClass[thing](r)
	require.NoError(t, err)
	for i := range 2 {
		_, err := r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) {
			if i == 0 {
				runtime.Goexit()
			}
		})
		require.NoError(t, err)
	}
	c, free, err := logic.NewCore(r)
	require.NoError(t, err)
	defer free()
	for i := range 3 {
		c.Add(logic.Physics, fmt.Sprint("system ", i), func(f *logic.Frame) {
			c.Log = append(c.Log, fmt.Sprint("system ", i))
			if i != 1 {
				runtime.Goexit()
			}
		})
	}
	ops := 0
	c.Serve = func(core *registry.Core) {
		for ops < 3 {
			ops++
			_ = core.CallbackRecover(func(w *registry.Window) error {
				if _, err := class.Spawn(w, thing{}); err != nil || ops == 2 {
					runtime.Goexit() // and with it the spawn
				}
				return nil
			})
		}
	}
	assert.Equal(t, 5, throughExits(c), "four exits")
	assert.Equal(t, []string{
		"collect", "serve", "serve",
		"exited: registry: observers called runtime.Goexit in frame 1",
		"system 0", "system 1", "system 2",
		"failed: registry: system 0 called runtime.Goexit in frame 1",
		"failed: registry: system 2 called runtime.Goexit in frame 1",
	}, c.Log)
	c.Leave()
	assert.Equal(t, 2, r.Stats().Live)
	require.NoError(t, r.Verify())
}
