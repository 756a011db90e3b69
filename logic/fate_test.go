package logic_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Who is dead stays so for who wants to destroy it, also while frames are simulated again in which it lives: whoever has ended
// it, and whether a window has seen that yet.
func TestTheDeadCannotBeDestroyedWhileThePastIsSimulated(t *testing.T) {
	for _, syncTest := range []int{0, 3} {
		r, err := registry.New(registry.Config{TemporalFrames: 8, Deterministic: true})
		require.NoError(t, err)
		temporal[spot](t, r)
		walkers, err := registry.RegisterClass[walker](r)
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{SyncTest: syncTest, Workers: 1})
		require.NoError(t, err)
		var hs [4]handles.Local // ended from outside, by a window, by a system, from outside and not seen yet
		require.NoError(t, e.Defer(func(w *registry.Window) error {
			for i := range hs {
				if hs[i], err = walkers.Spawn(w, walker{}); err != nil {
					return err
				}
			}
			return nil
		}))
		reserved, err := r.Reserve()
		require.NoError(t, err)

		var tried, again int // while they live once more
		dead := map[handles.Local]bool{}
		_, err = e.AddSystem(logic.Physics, "ends", func(f *logic.Frame) {
			if f.FrameNumber() == 6 {
				require.NoError(t, f.Destroy(hs[2]))
				dead[hs[2]] = true
			}
			for h := range dead {
				if r.Alive(h) {
					again++
				}
				tried++
				answer := make(chan error)
				go func() { answer <- r.Destroy(h) }()
				assert.ErrorIs(t, <-answer, registry.ErrStale, "%v in frame %d", h, f.FrameNumber())
			}
		})
		require.NoError(t, err)
		for frame := uint64(1); frame <= 12; frame++ {
			switch frame {
			case 6:
				require.NoError(t, r.Destroy(hs[0]))
				require.NoError(t, r.Destroy(reserved))
				dead[hs[0]], dead[reserved] = true, true
				require.NoError(t, e.Defer(func(w *registry.Window) error {
					dead[hs[1]] = true
					return w.Destroy(hs[1])
				}))
			case 8:
				require.NoError(t, r.Destroy(hs[3]))
				dead[hs[3]] = true
				require.NoError(t, e.Rollback(4))
			case 10:
				require.NoError(t, e.Rollback(5))
			}
			require.NoError(t, e.Step(), "frame %d", frame)
			require.NoError(t, r.Verify())
		}
		require.Greater(t, tried, 10)
		require.Greater(t, again, 5, "nobody lived again")
		for h := range dead {
			require.False(t, r.Alive(h))
		}
		require.NoError(t, e.Stop())
	}
}

// Of many goroutines that destroy the same entities while frames are simulated again after each frame, one each succeeds.
func TestOneDestroyerEachBesideSyncTest(t *testing.T) {
	const entities, goroutines, rounds = 64, 3, 6
	r, err := registry.New(registry.Config{TemporalFrames: 8, Deterministic: true})
	require.NoError(t, err)
	temporal[spot](t, r)
	walkers, err := registry.RegisterClass[walker](r)
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{SyncTest: 3, Workers: 1})
	require.NoError(t, err)

	for range rounds {
		hs := make([]handles.Local, entities)
		require.NoError(t, e.Defer(func(w *registry.Window) error {
			for i := range hs {
				if hs[i], err = walkers.Spawn(w, walker{}); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, e.Step())

		var wins [entities]atomic.Int32
		var over atomic.Bool
		var others sync.WaitGroup
		for g := range goroutines {
			others.Go(func() {
				for i := 0; !over.Load() || i < entities; i++ {
					n := (i*(2*g+1) + g) % entities
					if r.Destroy(hs[n]) == nil {
						wins[n].Add(1)
					}
					runtime.Gosched()
				}
			})
		}
		for range 8 {
			require.NoError(t, e.Step())
		}
		over.Store(true)
		others.Wait()
		for range 2 {
			require.NoError(t, e.Step())
		}
		require.NoError(t, r.Verify())
		for i := range wins {
			require.EqualValues(t, 1, wins[i].Load(), "%v", hs[i])
			require.False(t, r.Alive(hs[i]))
		}
	}
	require.Zero(t, r.Stats().Live)
	require.NoError(t, e.Stop())
}
