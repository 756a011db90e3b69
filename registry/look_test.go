package registry_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// existing lists the entities that a walk shows, and which of them are active.
func existing(t testing.TB, a registry.Access) (hs []handles.Local, active int) {
	t.Helper()
	require.NoError(t, registry.EachChunk(a, func(l *registry.Look) bool {
		for w := range l.Chunk.Slots() / 64 {
			exists := l.Exists(w)
			require.Zero(t, l.Active(w)&^exists)
			for i := range 64 {
				if exists>>i&1 != 0 {
					hs = append(hs, l.Chunk.Entities()[64*w+i])
				}
				active += int(l.Active(w) >> i & 1)
			}
		}
		return true
	}))
	return hs, active
}

func TestEachChunkShowsWhoExists(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		s := newStage(t, temporal)
		hs := s.spawnActors(130)
		ghosts := []handles.Local(nil)
		s.frame(func(w *registry.Window) {
			var err error
			ghosts, err = s.ghosts.SpawnBatch(w, 3, nil)
			require.NoError(t, err)
			require.NoError(t, registry.SetActive(w, hs[5], false))
			require.NoError(t, registry.SetActive(w, hs[6], false))
			require.NoError(t, w.Destroy(hs[7]))
		}, func(f *registry.Frame) {
			require.NoError(t, f.Destroy(hs[6]))
		})
		want := slices.Concat(hs[:6], hs[8:], ghosts)
		snap := s.acquire()
		got, active := existing(t, snap)
		require.Equal(t, want, got)
		require.Equal(t, len(want)-1, active)
		s.update(func(w *registry.Window) {
			got, active := existing(t, w)
			require.Equal(t, want, got)
			require.Equal(t, len(want)-1, active)
			require.NoError(t, registry.Add(w, hs[5], frozen{})) // inactive: it leaves its cell with no trace
			require.NoError(t, w.Destroy(hs[8]))

			registry.Iterate(w)
			late, err := s.actors.Spawn(w, actor{})
			require.NoError(t, err)
			got, active = existing(t, w)
			require.ElementsMatch(t, slices.Concat(hs[:6], hs[9:], ghosts, []handles.Local{late}), got)
			require.Equal(t, len(got)-1, active, "born in a loop")
			registry.Finish(w)
		})
		got, _ = existing(t, snap)
		require.Equal(t, want, got, "the frame stays what it was")
		snap.Release()
	}
}

func TestEachChunkStopsAndRefuses(t *testing.T) {
	s := newStage(t, 8)
	require.ErrorIs(t, registry.EachChunk(nil, nil), registry.ErrExpired)
	hs := s.spawnActors(200)
	var old *registry.Frame
	n := 0
	s.frame(nil, func(f *registry.Frame) {
		old = f
		require.NoError(t, registry.EachChunk(f, func(l *registry.Look) bool {
			n++
			require.Contains(t, hs, l.Chunk.Entities()[0])
			return n < 2
		}))
	})
	require.Equal(t, 2, n)
	require.ErrorIs(t, registry.EachChunk(old, nil), registry.ErrExpired)
	_, _, err := registry.Source(old)
	require.ErrorIs(t, err, registry.ErrExpired)
	snap := s.acquire()
	r, published, err := registry.Source(snap)
	require.NoError(t, err)
	require.True(t, published)
	require.Same(t, s.r, r)
	snap.Release()
	require.ErrorIs(t, registry.EachChunk(snap, nil), registry.ErrExpired)

	s.frame(func(w *registry.Window) {
		_, err := s.ghosts.Spawn(w, ghost{})
		require.NoError(t, err)
	}, nil)
	frame := s.frameNumber()
	for range 5 {
		s.frame(nil, nil)
	}
	late, err := s.r.AcquireAt(frame)
	require.NoError(t, err)
	defer late.Release()
	err = registry.EachChunk(late, nil)
	require.ErrorIs(t, err, registry.ErrNotPublished)
	require.ErrorContains(t, err, "ghost[")
	before, err := s.r.AcquireAt(frame - 1)
	require.NoError(t, err)
	defer before.Release()
	got, _ := existing(t, before)
	require.Equal(t, hs, got)
}

func TestManyLooksAtOneTime(t *testing.T) {
	s := newStage(t, 0)
	hs := s.spawnActors(100)
	snap := s.acquire()
	defer snap.Release()
	var deeper func(n int)
	deeper = func(n int) {
		if n == 0 {
			return
		}
		require.NoError(t, registry.EachChunk(snap, func(l *registry.Look) bool {
			c, first := l.Chunk, l.Chunk.Entities()[0]
			deeper(n - 1)
			require.Same(t, c, l.Chunk)
			require.Equal(t, first, l.Chunk.Entities()[0])
			return false
		}))
	}
	deeper(20)
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			for range 20 {
				got, _ := existing(t, snap)
				if !slices.Equal(hs, got) {
					t.Error("another state")
				}
			}
		})
	}
	readers.Wait()
	require.Panics(t, func() { _ = registry.EachChunk(snap, func(*registry.Look) bool { panic("out") }) })
	got, _ := existing(t, snap)
	require.Equal(t, hs, got)
}

// TestSettledContentHasOneName keeps, under the name that Settled gives it, whatever was ever settled, and
// compares.
func TestSettledContentHasOneName(t *testing.T) {
	type name struct {
		published    bool
		chunk, stamp uint64
		slot         int
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t, rapid.SampledFrom([]int{0, 8}).Draw(rt, "ring"))
		defer s.e.Detach()
		known := map[name][]byte{}
		look := func(a registry.Access) {
			snap := registry.Frames(a)
			err := registry.EachChunk(a, func(l *registry.Look) bool {
				c := l.Chunk
				for key, d := range c.Layout().All() {
					stamp, ok := l.Settled(d.Slot)
					if !ok || d.Pointers {
						continue
					}
					var content []byte
					switch comp, found := s.r.Schema().ByID(key.Component); {
					case !found:
						for w := range c.Slots() / 64 {
							for i := range 64 {
								content = append(content, byte(l.Exists(w)>>i&1), byte(l.Active(w)>>i&1))
							}
						}
					case snap != nil && snap.Readable(comp) != nil:
						continue
					default:
						content = c.Bytes(d.Slot)
					}
					n := name{chunk: c.ID(), stamp: stamp, slot: d.Slot}
					n.published = !slices.Contains([]archetype.ComponentID{archetype.ActiveID, archetype.EntityID}, key.Component) || snap != nil
					if was, ok := known[n]; !ok {
						known[n] = slices.Clone(content)
					} else {
						require.Equal(rt, was, content, "chunk %d, slot %d, stamp %d", n.chunk, n.slot, n.stamp)
					}
				}
				return true
			})
			if err != nil {
				require.ErrorIs(rt, err, registry.ErrNotPublished)
			}
		}
		var hs []handles.Local
		who := func() handles.Local {
			if len(hs) == 0 {
				return 0
			}
			return hs[rapid.IntRange(0, len(hs)-1).Draw(rt, "who")]
		}
		planned := errors.New("planned")
		for range rapid.IntRange(1, 10).Draw(rt, "frames") {
			fails := rapid.IntRange(0, 2).Draw(rt, "fails") == 0
			count := len(hs)
			_ = s.e.frame(func(w *registry.Window) error {
				look(w)
				for range rapid.IntRange(0, 4).Draw(rt, "steps") {
					switch rapid.IntRange(0, 6).Draw(rt, "op") {
					case 0:
						born, err := s.actors.SpawnBatch(w, rapid.SampledFrom([]int{1, 70}).Draw(rt, "n"), nil)
						require.NoError(rt, err)
						hs = append(hs, born...)
					case 1:
						h, err := s.ghosts.Spawn(w, ghost{})
						require.NoError(rt, err)
						hs = append(hs, h)
					case 2:
						_ = registry.Add(w, who(), frozen{})
					case 3:
						_ = registry.Remove[frozen](w, who())
					case 4:
						_ = w.Destroy(who())
					case 5:
						_ = registry.SetActive(w, who(), false)
					case 6:
						_ = s.r.Destroy(who())
					}
					look(w)
				}
				if fails {
					hs = hs[:count]
					return planned
				}
				return nil
			}, system{"s", func(f *registry.Frame) {
				for range rapid.IntRange(0, 3).Draw(rt, "writes") {
					switch rapid.IntRange(0, 4).Draw(rt, "op") {
					case 0:
						_ = registry.Set(f, who(), place{rapid.Float64().Draw(rt, "x"), 1})
					case 1:
						_ = registry.Set(f, who(), mood{1, 2})
					case 2:
						_ = f.Destroy(who())
					case 3:
						_ = s.r.Destroy(who())
					case 4:
						_ = registry.SetActive(f, who(), rapid.Bool().Draw(rt, "active"))
					}
					look(f)
				}
			}})
			snap, err := s.r.Acquire()
			require.NoError(rt, err)
			look(snap)
			snap.Release()
			if n := s.frameNumber(); n > 3 {
				if old, err := s.r.AcquireAt(n - 3); err == nil {
					look(old)
					old.Release()
				}
			}
		}
	})
}

func TestLodgersStay(t *testing.T) {
	type one struct{}
	type other struct{ n int }
	s := newStage(t, 0)
	var all sync.WaitGroup
	got := make([]any, 50)
	for i := range got {
		all.Go(func() { got[i] = s.r.Lodger(one{}, func() any { return new(int) }) })
	}
	all.Wait()
	for _, v := range got {
		require.Same(t, got[0], v)
	}
	require.NotSame(t, got[0], s.r.Lodger(other{1}, func() any { return new(int) }))
	require.Same(t, got[0], s.r.Lodger(one{}, func() any { panic("there is one") }))
	require.NotSame(t, got[0], newStage(t, 0).r.Lodger(one{}, func() any { return new(int) }))
}

func TestCosmeticClass(t *testing.T) {
	s := newStage(t, 0)
	type fog struct{ Mood mood }
	_, err := registry.RegisterClass[fog](s.r, registry.Cosmetic())
	require.NoError(t, err)
	i, ok := registry.ClassIndex[fog](s.r)
	require.True(t, ok)
	require.True(t, s.r.CosmeticClass(i))
	require.False(t, s.r.CosmeticClass(0))
	require.False(t, s.r.CosmeticClass(-1))
	require.False(t, s.r.CosmeticClass(i+1))
}

func TestEachChunkAllocatesNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("checks allocate")
	}
	s := newStage(t, 0)
	s.spawnActors(500)
	look := func(a registry.Access) {
		n := uint64(0)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = registry.EachChunk(a, func(l *registry.Look) bool {
				n += l.Exists(0)
				return true
			})
		}))
	}
	snap := s.acquire()
	defer snap.Release()
	look(snap)
	s.update(func(w *registry.Window) { look(w) })
}
