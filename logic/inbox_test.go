package logic_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// inFrame runs fn in a system, in one frame.
func (w *world) inFrame(fn func(*logic.Frame)) {
	w.t.Helper()
	s, err := w.e.AddSystem(logic.Physics, "once", fn)
	require.NoError(w.t, err)
	w.step()
	require.NoError(w.t, s.Remove())
}

func TestInboxKeepsTheOrderOfArrivalAndItsBound(t *testing.T) {
	w := newWorld(t)
	b, err := logic.NewInbox[int](w.e, 3)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, b.Send(i))
	}
	require.ErrorIs(t, b.Send(3), logic.ErrQueueFull)
	require.Equal(t, 3, b.Len())
	var first, second []int
	w.inFrame(func(f *logic.Frame) {
		first = b.Drain(f.Frame)
		assert.Nil(t, b.Drain(f.Frame))
		assert.NoError(t, b.Send(4))
		assert.NoError(t, b.Send(5))
		second = b.Drain(f.Frame)
		assert.NoError(t, b.Send(6))
		assert.Equal(t, []int{0, 1, 2}, first, "valid in this frame, whatever comes")
		assert.Equal(t, []int{4, 5}, second)
	})
	w.inFrame(func(f *logic.Frame) {
		assert.Equal(t, []int{6}, b.Drain(f.Frame))
		assert.Zero(t, first[:1][0], "what it referred to is free")
	})
	var kept *registry.Frame
	w.inFrame(func(f *logic.Frame) { kept = f.Frame })
	assert.PanicsWithError(t, registry.ErrExpired.Error(), func() { b.Drain(kept) })
}

// What an inbox takes and gives is what a plain slice does, and a frame that is simulated again gets what it got.
func TestAnInboxAgreesWithAPlainSlice(t *testing.T) {
	for _, rc := range []registry.Config{{MaxEntities: 8}, {MaxEntities: 8, TemporalFrames: 8}} {
		rapid.Check(t, func(rt *rapid.T) {
			w := newWorldIn(t, rc)
			capacity := rapid.IntRange(1, 6).Draw(rt, "capacity")
			b, err := logic.NewInbox[int](w.e, capacity)
			require.NoError(rt, err)
			var (
				inside  []int              // what must be in the inbox
				sent    int                // the next value
				plan    []int              // of the next frame: after each drain, so many values are sent
				plans   = map[uint64]int{} // drains, by frame
				drained = map[uint64][]int{}
				last    uint64
			)
			send := func(n int) {
				for range n {
					err := b.Send(sent)
					if len(inside) == capacity {
						assert.ErrorIs(rt, err, logic.ErrQueueFull)
						return
					}
					assert.NoError(rt, err)
					inside = append(inside, sent)
					sent++
				}
			}
			_, err = w.e.AddSystem(logic.PrePhysics, "drains", func(f *logic.Frame) {
				now := f.FrameNumber()
				var got []int
				if now <= last {
					for range plans[now] + 1 { // one more finds nothing
						got = append(got, b.Drain(f.Frame)...)
					}
				} else {
					last, plans[now] = now, len(plan)
					for _, n := range plan {
						got = append(got, b.Drain(f.Frame)...)
						drained[now] = append(drained[now], inside...)
						inside = inside[:0]
						send(n)
					}
				}
				assert.Equal(rt, drained[now], got, "frame %d", now)
			})
			require.NoError(rt, err)
			rt.Repeat(map[string]func(*rapid.T){
				"send": func(rt *rapid.T) { send(rapid.IntRange(1, 5).Draw(rt, "values")) },
				"step": func(rt *rapid.T) {
					plan = rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(rt, "plan")
					w.step()
				},
				"back": func(rt *rapid.T) {
					if now := w.e.FrameNumber(); rc.TemporalFrames > 0 && now > 0 {
						_ = w.e.Rollback(now - min(now, rapid.Uint64Range(0, 6).Draw(rt, "frames")))
					}
				},
				"": func(rt *rapid.T) { require.Equal(rt, len(inside), b.Len()) },
			})
			require.NoError(rt, w.e.Stop())
		})
	}
}

func TestInboxLosesNothingOfManySenders(t *testing.T) {
	const senders, each = 8, 2000
	w := newWorld(t, fast)
	b, err := logic.NewInbox[[2]int](w.e, 64)
	require.NoError(t, err)
	var got [senders]int // the next value of each
	_, err = w.e.AddSystem(logic.PrePhysics, "drains", func(f *logic.Frame) {
		for _, v := range b.Drain(f.Frame) {
			assert.Equal(t, got[v[0]], v[1])
			got[v[0]]++
		}
	})
	require.NoError(t, err)
	stop := w.run()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := 0; i < each; {
				if b.Send([2]int{s, i}) == nil {
					i++
				} else {
					yield()
				}
			}
		})
	}
	wg.Wait()
	for range 2 {
		require.NoError(t, w.e.Spawn(background(), noChange))
	}
	require.NoError(t, stop())
	for _, n := range got {
		assert.Equal(t, each, n)
	}
}

func TestASteadyInboxAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	w := newWorld(t)
	b, err := logic.NewInbox[int](w.e, 64)
	require.NoError(t, err)
	_, err = w.e.AddSystem(logic.PrePhysics, "drains", func(f *logic.Frame) { b.Drain(f.Frame) })
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(500, func() {
		for i := range 50 {
			_ = b.Send(i)
		}
		_ = w.e.Step()
	}))
}
