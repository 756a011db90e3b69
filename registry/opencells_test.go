package registry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// agree compares what OpenCells find with what Cells do.
func agree[C comparable](t require.TestingT, cells *registry.Cells[C], a registry.Access, hs []handles.Local) {
	open := cells.Open(a)
	var want, got []int
	for i, h := range hs {
		v, ok := cells.Peek(a, h)
		if ok {
			want = append(want, i)
		}
		if peeked, found := open.Peek(h); found != ok || peeked != v {
			require.Failf(t, "peek", "%T of %v: %v, %t, want %v, %t", v, h, peeked, found, v, ok)
		}
	}
	for i, v := range open.Each(hs) {
		got = append(got, i)
		if want, _ := cells.Peek(a, hs[i]); v != want {
			require.Failf(t, "each", "%T of %v: %v, want %v", v, hs[i], v, want)
		}
	}
	require.Equal(t, want, got)
}

func cellsOf[C any](t require.TestingT, r *registry.Registry) *registry.Cells[C] {
	cells, err := registry.NewCells[C](r)
	require.NoError(t, err)
	return cells
}

// TestOpenCellsAgreeWithCells has entities of all kinds of components come, move and die in every way, and looks at all
// handles there ever were, with every kind of token.
func TestOpenCellsAgreeWithCells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t, rapid.SampledFrom([]int{0, 8}).Draw(rt, "ring"))
		defer s.e.Detach()
		places, moods, badges := cellsOf[place](t, s.r), cellsOf[mood](t, s.r), cellsOf[badge](t, s.r)
		colds, spots, tags := cellsOf[notes](t, s.r), cellsOf[spot](t, s.r), cellsOf[frozen](t, s.r)
		hs := []handles.Local{0, 1, handles.NewLocal(1<<31, 1), handles.NewLocal(1<<32-1, 1<<32-1), handles.NewLocal(3, 0)}
		look := func(a registry.Access) {
			agree(rt, places, a, hs)
			agree(rt, moods, a, hs)
			agree(rt, badges, a, hs)
			agree(rt, colds, a, hs)
			agree(rt, spots, a, hs)
			agree(rt, tags, a, hs)
		}
		pick := func() handles.Local { return rapid.SampledFrom(hs).Draw(rt, "handle") }
		var snap *registry.Snapshot
		change := func(w *registry.Window) {
			old := moods.Open(w) // sees what comes after it
			switch rapid.IntRange(0, 5).Draw(rt, "change") {
			case 0, 1:
				for range rapid.IntRange(1, 70).Draw(rt, "births") {
					n := len(hs)
					h, err := s.actors.Spawn(w, actor{place{float64(n), 1}, mood{n, n}, badge{fmt.Sprint(n)}, notes{n}})
					require.NoError(rt, err)
					hs = append(hs, h)
				}
			case 2:
				h, err := s.ghosts.Spawn(w, ghost{Mood: mood{len(hs), 2}})
				require.NoError(rt, err)
				hs = append(hs, h)
				require.NoError(rt, registry.Add(w, h, spot{X: 3}))
			case 3:
				_ = registry.Add(w, pick(), frozen{}) // or it is dead, or has one
			case 4:
				_ = registry.Remove[mood](w, pick())
			case 5:
				for range 20 {
					_ = w.Destroy(pick())
				}
			}
			look(w)
			for i, v := range old.Each(hs) {
				now, ok := moods.Peek(w, hs[i])
				require.True(rt, ok)
				require.Equal(rt, now, v)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"frame": func(rt *rapid.T) {
				s.frame(change, func(f *registry.Frame) {
					look(f)
					_ = s.r.Destroy(pick())
					for range 3 {
						_ = registry.Set(f, pick(), mood{Now: rapid.Int().Draw(rt, "now")})
						_ = registry.Set(f, pick(), place{X: 5})
					}
					look(f) // in a frame with a ring, who was destroyed is still to be seen
				})
			},
			"update": func(*rapid.T) { s.update(change) },
			"fails":  func(*rapid.T) { s.fails(change) },
			"snapshot": func(*rapid.T) {
				if snap != nil {
					look(snap)
					snap.Release()
				}
				snap, _ = s.r.Acquire() // or there is no frame so far
			},
		})
		require.NoError(rt, s.r.Verify())
		if snap != nil {
			snap.Release()
		}
	})
}

// TestOpenCellsExpireWithTheirToken looks with cells that were opened in a window, a frame and a part of a loop that are
// over.
func TestOpenCellsExpireWithTheirToken(t *testing.T) {
	s, other := newStage(t, 0), newStage(t, 0)
	moods := cellsOf[mood](t, s.r)
	var h handles.Local
	var kept []registry.OpenCells[mood]
	keep := func(a registry.Access) {
		open := moods.Open(a)
		v, ok := open.Peek(h)
		require.True(t, ok)
		require.Equal(t, mood{7, 8}, v)
		kept = append(kept, open)
	}
	s.frame(func(w *registry.Window) {
		var err error
		h, err = s.actors.Spawn(w, actor{Mood: mood{7, 8}})
		require.NoError(t, err)
		keep(w)
		keep(embedded{w})
	}, func(f *registry.Frame) {
		keep(f)
		registry.Fork(f, task(func(f *registry.Frame, _, _ int) { keep(f) }), 1, false)
		foreign := cellsOf[mood](t, other.r).Open(f)
		_, ok := foreign.Peek(h)
		require.False(t, ok, "of another registry")
		for range foreign.Each([]handles.Local{h}) {
			require.Fail(t, "of another registry")
		}
	})
	for i := range kept {
		require.PanicsWithValue(t, registry.ErrExpired, func() { kept[i].Peek(h) })
		require.PanicsWithValue(t, registry.ErrExpired, func() {
			for range kept[i].Each([]handles.Local{h}) {
				require.Fail(t, "expired")
			}
		})
	}
	for _, a := range []registry.Access{nil, (*registry.Window)(nil), (*registry.Frame)(nil), (*registry.Snapshot)(nil)} {
		require.PanicsWithValue(t, registry.ErrExpired, func() { moods.Open(a) })
	}
}

// TestOpenCellsSeeWhatTheirLoopDoes changes structure in the body of a loop, and leaves one.
func TestOpenCellsSeeWhatTheirLoopDoes(t *testing.T) {
	s := newStage(t, 0)
	colds := cellsOf[notes](t, s.r)
	s.update(func(w *registry.Window) {
		var hs []handles.Local
		for n := range 3 {
			h, err := s.actors.Spawn(w, actor{Notes: notes{n}})
			require.NoError(t, err)
			hs = append(hs, h)
		}
		open := colds.Open(w)
		var seen []int
		for i, v := range open.Each(hs) {
			require.Equal(t, i, v.N)
			if i == 0 {
				_, err := s.actors.SpawnBatch(w, 5000, nil) // more blocks
				require.NoError(t, err)
				require.NoError(t, registry.Set(w, hs[2], notes{2}))
				require.NoError(t, w.Destroy(hs[1]))
				require.NoError(t, registry.Add(w, hs[2], frozen{})) // to a new archetype
			}
			seen = append(seen, i)
		}
		require.Equal(t, []int{0, 2}, seen)
		for range open.Each(hs) {
			seen = append(seen, 9)
			break
		}
		require.Equal(t, []int{0, 2, 9}, seen)
	})
}

// TestOpenCellsBesideKillers looks in the parts of a loop while other goroutines destroy and reserve: nobody gets a cell
// that is not that of the handle.
func TestOpenCellsBesideKillers(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = registry.RegisterComponent[self](r, registry.InTier(archetype.Volatile))
	require.NoError(t, err)
	class, err := registry.RegisterClass[soldier](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	core, err := r.Attach(registry.Hooks{Workers: 4, Spread: spread})
	require.NoError(t, err)
	defer core.Detach()
	require.NoError(t, core.Enter(false))
	selves := cellsOf[self](t, r)
	var hs []handles.Local
	for range 8 {
		core.Advance()
		core.DrainDestroys()
		core.ProcessDestructions()
		core.OpenWindow()
		require.NoError(t, core.CallbackRecover(func(w *registry.Window) error {
			for range 100 {
				h, err := class.Spawn(w, soldier{})
				require.NoError(t, err)
				require.NoError(t, registry.Set(w, h, self{h}))
				hs = append(hs, h)
			}
			return nil
		}))
		core.CloseWindow()
		f := core.NewFrame()
		core.System("look", func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; i < len(hs); i += 5 {
					_ = r.Destroy(hs[i])
					_, _ = r.Reserve()
				}
			}()
			registry.Fork(f, task(func(f *registry.Frame, _, _ int) {
				open := selves.Open(f)
				for i, v := range open.Each(hs) {
					if v.H != hs[i] {
						t.Errorf("%v has the cell of %v", hs[i], v.H)
					}
				}
			}), 16, true)
			<-done
		})
		core.Boundary()
		core.EndFrame()
	}
	core.Leave()
	require.NoError(t, r.Verify())
}
