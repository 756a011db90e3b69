package defrag_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestDefragCases(t *testing.T) {
	t.Run("defrag-1", func(t *testing.T) {
		for _, slots := range []int{0, 64, 128, 4096} {
			smallBudgets(t, slots)
		}
		r, err := registry.New(registry.Config{Deterministic: true})
		require.NoError(t, err)
		_, err = registry.RegisterClass[stone](r)
		require.NoError(t, err)
		_, err = defrag.New(r, defrag.Config{})
		require.ErrorIs(t, err, registry.ErrDeterministic)
	})
	t.Run("defrag-2", subscribersKeepUp)
	t.Run("defrag-3", func(t *testing.T) {
		theDeadStayPut(t)
		aPoolStaysPut(t)
	})
	t.Run("registry-13", oneEventPerMove)
	t.Run("defrag-5", func(t *testing.T) {
		// Without rollback: the handles that entities hold of themselves, before and after.
		x := newWorld(t, 8)
		x.spawn(t, 0, 1000)
		x.spawn(t, 1, 1000)
		x.destroy(t, everyOther(x.order), false)
		x.reclaim(t)
		x.agree(t)
		d, err := defrag.New(x.r, defrag.Config{})
		require.NoError(t, err)
		require.Equal(t, 500, x.run(t, d).Moved)
		x.agree(t)
	})
}

func everyOther(hs []handles.Local) (half []handles.Local) {
	for i := 0; i < len(hs); i += 2 {
		half = append(half, hs[i])
	}
	return half
}

// smallBudgets compacts with a limit of 1 and then of 100.
func smallBudgets(t *testing.T, slots int) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	var opts []registry.ClassOption
	if slots != 0 {
		opts = append(opts, registry.SlotsPerChunk(slots))
	} else {
		slots = 1024
	}
	c, err := registry.RegisterClass[cloud](r, opts...)
	require.NoError(t, err)
	var living []handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) error {
		for i := range 10_000 {
			h, err := c.Spawn(w, cloud{})
			require.NoError(t, err)
			require.NoError(t, registry.Set(w, h, self{h}))
			if i%2 == 0 {
				require.NoError(t, w.Destroy(h))
			} else {
				living = append(living, h)
			}
		}
		w.ProcessDeferredDestructions()
		return nil
	}))
	moved, freed := 0, 0
	run := func(limit int) defrag.Report {
		d, err := defrag.New(r, defrag.Config{Moves: limit})
		require.NoError(t, err)
		var rep defrag.Report
		require.NoError(t, r.Update(func(w *registry.Window) error { rep, err = d.Run(w); return err }))
		require.LessOrEqual(t, rep.Moved, limit)
		moved += rep.Moved
		freed += rep.ChunksFreed
		return rep
	}
	before := r.Stats().Chunks
	for range 20 {
		require.Equal(t, 1, run(1).Moved)
	}
	for left := 1; left > 0; {
		rep := run(100)
		left = rep.Left
		require.True(t, left == 0 || rep.Moved > 0, "it comes to an end")
	}
	require.Equal(t, (5000+slots-1)/slots, r.Stats().Chunks, "the fewest chunks that hold the living")
	require.Equal(t, before-r.Stats().Chunks, freed)
	require.LessOrEqual(t, moved, 5000, "each moves at most once")
	for range 3 {
		require.Zero(t, run(100).Moved)
	}
	require.NoError(t, r.Verify())
	require.NoError(t, r.Update(func(w *registry.Window) error {
		for _, h := range living {
			s, err := registry.Peek[self](w, h)
			require.NoError(t, err)
			require.Equal(t, h, s.H)
		}
		return nil
	}))
}

// subscribersKeepUp keeps a map by notices alone, over a million moves, while other subscribers panic
// and destroy who has moved.
func subscribersKeepUp(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	c, err := registry.RegisterClass[stone](r)
	require.NoError(t, err)
	places := map[handles.Local]uint32{}
	notices, killed := 0, 0
	killing := false
	for _, fn := range []func([]registry.Move){
		func([]registry.Move) { panic("a subscriber fails") },
		func(ms []registry.Move) {
			if killing {
				require.NoError(t, r.Destroy(ms[0].Entity))
				killed++
			}
		},
		func(ms []registry.Move) {
			for _, m := range ms {
				require.Equal(t, m.Old, places[m.Entity])
				places[m.Entity] = m.New
			}
			notices += len(ms)
		},
	} {
		_, err := r.OnMove(fn)
		require.NoError(t, err)
	}
	d, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	moves, goal := 0, 1_000_000
	if testing.Short() || raceEnabled {
		goal /= 10
	}
	var living []handles.Local
	for round := 0; moves < goal; round++ {
		require.NoError(t, r.Update(func(w *registry.Window) error {
			hs, err := c.SpawnBatch(w, 60_000-len(living), nil)
			require.NoError(t, err)
			for _, h := range hs {
				places[h], _ = registry.CacheIndex(w, h)
			}
			living = append(living, hs...)
			rng.Shuffle(len(living), func(i, k int) { living[i], living[k] = living[k], living[i] })
			dead := living[30_000:]
			living = living[:30_000]
			require.Equal(t, len(dead), w.DestroyBatch(dead))
			for _, h := range dead {
				delete(places, h)
			}
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
			return nil
		}))
		killing = round%5 == 4
		var rep defrag.Report
		err := r.Update(func(w *registry.Window) error { rep, err = d.Run(w); return err })
		var failed *registry.PanicError
		require.True(t, errors.As(err, &failed), "the failure of a subscriber is reported: %v", err)
		require.Equal(t, rep.Moved, notices, "one notice a move")
		moves += notices
		notices = 0
		require.NoError(t, r.Update(func(w *registry.Window) error {
			alive := living[:0]
			for _, h := range living {
				if !r.Alive(h) {
					delete(places, h)
					continue
				}
				alive = append(alive, h)
				at, ok := registry.CacheIndex(w, h)
				require.True(t, ok)
				require.Equal(t, at, places[h])
			}
			living = alive
			require.Len(t, places, len(living))
			return nil
		}))
	}
	require.Positive(t, killed)
	require.NoError(t, r.Verify())
}

// theDeadStayPut compacts around a tombstone and beside a reservation.
func theDeadStayPut(t *testing.T) {
	x := newWorld(t, 0)
	x.spawn(t, 0, 640)
	reserved, err := x.r.Reserve()
	require.NoError(t, err)
	x.destroy(t, everyOther(x.order), false)
	x.reclaim(t)
	last := x.order[len(x.order)-1]
	x.destroy(t, []handles.Local{last}, false)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	x.run(t, d) // checks that there is no notice of the dead
	require.False(t, x.r.Alive(last))
	require.ErrorIs(t, func() error { _, err := x.r.Resolve(last); return err }(), registry.ErrStale)
	x.agree(t)
	x.window(t, func(w *registry.Window) {
		require.NoError(t, x.stones.SpawnReserved(w, reserved, stone{Self: self{reserved}, Spot: spot{7, -7}}), "the reservation is untouched")
		at, _ := registry.CacheIndex(w, reserved)
		x.grow(at)
		x.bodies[at], x.places[reserved] = reserved, at
	})
	x.model[reserved] = being{number: 7}
	x.agree(t)
	x.reclaim(t)
	require.Zero(t, x.run(t, d).Left)
	x.agree(t)
	require.Equal(t, 5, x.r.Stats().Chunks, "320 entities in chunks of 64")
}

// aPoolStaysPut compacts around a pool with gaps, whose class also has entities of its own on both sides.
func aPoolStaysPut(t *testing.T) {
	x := newWorld(t, 0)
	const slots = 100
	var b *registry.Block
	x.spawn(t, 0, 200)
	x.window(t, func(w *registry.Window) {
		var err error
		b, err = registry.NewBlock(w, x.stones, "quarry", slots, &stone{Spot: spot{1, 2}})
		require.NoError(t, err)
	})
	x.spawn(t, 0, 200)
	var pooled []handles.Local
	x.window(t, func(w *registry.Window) {
		for range slots {
			h, err := registry.SpawnIn(w, x.stones, b, &stone{Spot: spot{3, 4}})
			require.NoError(t, err)
			pooled = append(pooled, h)
		}
		for i, h := range pooled {
			if i%3 == 0 {
				require.NoError(t, b.Despawn(w, h))
			}
		}
	})
	x.destroy(t, everyOther(x.order), false)
	x.reclaim(t)
	base, first := b.Base(), b.Slot(0)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	require.Positive(t, x.run(t, d).Moved) // the array of the model has nobody of the pool in it: a notice of one fails
	require.Zero(t, x.run(t, d).Left)
	require.Equal(t, base, b.Base())
	require.Equal(t, first, b.Slot(0))
	require.Equal(t, registry.BlockCounts{InUse: 66, Free: 34, Peak: slots}, b.Counts())
	x.window(t, func(w *registry.Window) {
		for i, h := range pooled {
			require.Equal(t, i%3 != 0, x.r.Alive(h))
			at, ok := registry.CacheIndex(w, b.Slot(i))
			require.True(t, ok)
			require.Equal(t, base+uint32(i), at, "one piece, and in place")
			if i%3 != 0 {
				require.Equal(t, h, b.Slot(i))
				s, err := registry.Peek[spot](w, h)
				require.NoError(t, err)
				require.Equal(t, spot{3, 4}, s)
			}
		}
	})
	require.NoError(t, x.r.Verify())
}

// oneEventPerMove has an observer of every kind, and compares what they hear with the report and with the notices.
func oneEventPerMove(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		x := newWorld(t, temporal)
		told := map[registry.EventKind]int{}
		moved := map[handles.Local]int{}
		for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
			_, err := x.r.Observe(kind, func(_ *registry.Frame, es []registry.Event) {
				told[kind] += len(es)
				for _, e := range es {
					if kind == registry.Moved {
						moved[e.Entity]++
					}
				}
			})
			require.NoError(t, err)
		}
		x.spawn(t, 0, 500)
		x.spawn(t, 1, 500)
		dead := everyOther(x.order)
		x.destroy(t, dead, false)
		x.reclaim(t)
		require.Equal(t, map[registry.EventKind]int{registry.Spawned: 1000, registry.Destroyed: len(dead)}, told)
		clear(told)
		d, err := defrag.New(x.r, defrag.Config{})
		require.NoError(t, err)
		rep := x.run(t, d)
		require.Positive(t, rep.Moved)
		require.Equal(t, map[registry.EventKind]int{registry.Moved: rep.Moved}, told)
		for h, times := range moved {
			require.Equal(t, 1, times, "%v", h)
			require.True(t, x.r.Alive(h))
		}
		x.agree(t)
	}
}

// TestASubscriberThatExitsIsNotRemembered has the subscriber to moves end its goroutine, and Run with it: the next one may
// move what that one did.
func TestASubscriberThatExitsIsNotRemembered(t *testing.T) {
	x := newWorld(t, 0)
	x.spawn(t, 1, 128)
	x.spawn(t, 0, 128) // two chunks behind the one of the trees
	trees, stones := slices.Clone(x.order[:128]), slices.Clone(x.order[128:])
	x.destroy(t, trees, false)
	x.destroy(t, everyOther(stones), false)
	x.reclaim(t)
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	o, err := x.r.OnMove(func([]registry.Move) { runtime.Goexit() })
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = x.r.Update(func(w *registry.Window) error {
			_, err := d.Run(w) // the second chunk fills the first, which does not move in the same Run
			return err
		})
	}()
	<-ended
	require.NoError(t, o.Remove())
	rep := x.run(t, d)
	require.Equal(t, 64, rep.Moved, "the chunk is lowered")
	require.Zero(t, rep.Left)
	x.agree(t)
}
