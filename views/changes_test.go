package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type writers struct {
	Pos []Position
	ID  []handles.Local
}

type watchers struct {
	Pos []Position `ecs:"read"`
	At  []uint32   `ecs:"index"`
}

// changed counts the entities that RunsSince shows after a frame.
func changed(q *views.Query[watchers], a registry.Access, frame uint64) (n int) {
	for m := range q.RunsSince(a, frame) {
		n += len(m.Pos)
	}
	return n
}

// TestWhatCountsAsAChange has 192 entities in three chunks. Every way to change them goes for one
// entity of the second chunk, and every way to look for none.
func TestWhatCountsAsAChange(t *testing.T) {
	const none, chunk, all = 0, 64, 192
	for _, c := range []struct {
		name string
		do   func(t *testing.T, w *world, a registry.Access, h handles.Local)
		want int // entities in chunks that changed, of those that live in the end
	}{
		{"nothing", func(*testing.T, *world, registry.Access, handles.Local) {}, none},
		{"Peek", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			_, err := registry.Peek[Position](a, h)
			require.NoError(t, err)
		}, none},
		{"Get", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			_, err := registry.Get[Position](a, h)
			require.NoError(t, err)
		}, chunk},
		{"Set", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.NoError(t, registry.Set(a, h, Position{}))
		}, chunk},
		{"Set of another component", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.NoError(t, registry.Set(a, h, Velocity{}))
		}, none},
		{"SetActive", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.NoError(t, registry.SetActive(a, h, false))
		}, chunk - 1},
		{"Destroy", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.NoError(t, destroyBy(a, h))
		}, chunk - 1},
		{"a loop that reads", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.Equal(t, all, changed(query[watchers](w), a, 0))
			for range query[watchers](w).Spans(a) {
			}
			query[watchers](w).Parallel(a, func(*registry.Frame, *watchers) {})
		}, none},
		{"a loop that writes something else", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			for range query[struct{ Vel []Velocity }](w).Runs(a) {
			}
		}, none},
		{"Count", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			require.Equal(t, all, query[writers](w).Count(a))
		}, none},
		{"Runs, for as far as it went", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			runs := 0
			for range query[writers](w).Runs(a) {
				if runs++; runs == 2 {
					break
				}
			}
		}, 2 * chunk},
		{"RunsSince", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			for range query[writers](w).RunsSince(a, 0) {
			}
		}, all},
		{"Spans", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			for range query[writers](w).Spans(a) {
			}
		}, all},
		{"Parallel", func(t *testing.T, w *world, a registry.Access, h handles.Local) {
			query[writers](w).Parallel(a, func(*registry.Frame, *writers) {})
		}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
				hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), all)
				q := query[watchers](w)
				for range 2 { // let the spawns be of an earlier frame
					w.frame(func(*registry.Frame) {})
				}
				var before uint64
				inside(func(a registry.Access) {
					before = a.FrameNumber()
					if _, ok := a.(*registry.Frame); ok {
						before-- // what a frame writes has its number, what a window does the next one
					}
					c.do(t, w, a, hs[100])
					require.Equal(t, c.want, changed(q, a, before), "in the same token")
					for m := range query[watchers](w, views.Changed[Position](before)).Runs(a) {
						require.NotEmpty(t, m.Pos)
					}
					require.Equal(t, c.want, query[struct{}](w, views.Changed[Position](before)).Count(a))
				})
				w.frame(func(f *registry.Frame) {
					require.Equal(t, c.want, changed(q, f, before), "a frame later")
					require.Zero(t, changed(q, f, f.FrameNumber()), "and it ends")
				})
			})
		})
	}
}

// TestNothingIsMissedFromFrameToFrame has a reader that passes the frame before the one in which it
// ran last, among writers before and after it in each frame and in the windows.
func TestNothingIsMissedFromFrameToFrame(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 640)
	q := query[watchers](w)
	known := map[uint32]float64{}
	last, next := uint64(0), 0.0
	write := func(a registry.Access, i int) {
		next++
		require.NoError(t, registry.Set(a, hs[i], Position{X: next}))
	}
	looked := 0
	for round := range 20 {
		w.window(func(win *registry.Window) { write(win, round) })
		w.frame(func(f *registry.Frame) {
			write(f, 100+round)
			for m := range q.RunsSince(f, last) {
				looked++
				for i, p := range m.Pos {
					known[m.At[i]] = p.X
				}
			}
			if f.FrameNumber() > 1 {
				last = f.FrameNumber() - 1
			}
			write(f, 300+round) // after the reader, in the same frame
			if round < 19 {
				return
			}
			n := 0
			for m := range q.RunsSince(f, last) { // once more, to catch up
				n++
				for i, p := range m.Pos {
					known[m.At[i]] = p.X
				}
			}
			require.Less(t, n, 10)
			for m := range q.Runs(f) {
				for i, p := range m.Pos {
					require.Equal(t, p.X, known[m.At[i]])
				}
			}
		})
	}
	require.Less(t, looked, 10+20*6, "it looks at what has changed, not at everything")
}

func TestChangedOfATagGoesByWhoIsThere(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 192)
	w.window(func(win *registry.Window) { require.Equal(t, 128, registry.AddBatch(win, hs[:128], Frozen{})) })
	for range 2 {
		w.frame(func(*registry.Frame) {})
	}
	w.window(func(win *registry.Window) {
		now := win.FrameNumber()
		q := query[ids](w, views.Changed[Frozen](now))
		require.Zero(t, q.Count(win))
		_, err := registry.Get[Position](win, hs[0])
		require.NoError(t, err)
		require.Zero(t, q.Count(win), "a tag has no cell to be written")
		require.NoError(t, registry.Add(win, hs[190], Frozen{}))
		require.Equal(t, []handles.Local{hs[190]}, visited(q, win), "it opened a chunk")
		require.NoError(t, registry.Remove[Frozen](win, hs[3]))
		require.Equal(t, 64, q.Count(win))
	})
}

func TestChangedImpliesWith(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w), 10)
	q := query[ids](w, views.Changed[Mark](0))
	w.window(func(win *registry.Window) {
		require.Zero(t, q.Count(win))
		require.NoError(t, registry.Add(win, hs[4], Mark(1)))
		require.Equal(t, hs[4:5], visited(q, win))
	})
}
