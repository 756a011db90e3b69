package views_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// stage is a registry whose frames are published: Position is Temporal, Velocity, Name and the split
// Altitude are Volatile, and Mark is Cold.
type stage struct {
	*world
	core   *registry.Core
	errs   []error // told to OnError; the test takes what it wants
	movers *registry.Class[Mover]
	loose  *registry.Class[struct{ Vel Velocity }] // follows no Temporal component
}

func newStage(tb testing.TB, temporal int) *stage {
	tb.Helper()
	r, err := registry.New(registry.Config{TemporalFrames: temporal})
	require.NoError(tb, err)
	registered[Position](tb, r, registry.InTier(archetype.Temporal))
	registered[Velocity](tb, r, registry.InTier(archetype.Volatile))
	registered[Name](tb, r, registry.InTier(archetype.Volatile))
	registered[Altitude](tb, r, registry.InTier(archetype.Volatile), registry.Split())
	registered[Mark](tb, r)
	registered[Frozen](tb, r)
	s := &stage{world: &world{r, tb}}
	s.movers = class[Mover](s.world, registry.SlotsPerChunk(64))
	s.loose = class[struct{ Vel Velocity }](s.world, registry.SlotsPerChunk(64))
	s.core, err = r.Attach(registry.Hooks{OnError: func(err error) { s.errs = append(s.errs, err) }})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		s.core.Detach()
		require.Empty(tb, s.errs)
		require.NoError(tb, r.Verify())
	})
	return s
}

// step runs a frame with a window and a system.
func (s *stage) step(window func(*registry.Window), system func(*registry.Frame)) {
	s.tb.Helper()
	require.NoError(s.tb, s.core.Enter(false))
	defer s.core.Leave()
	s.core.Advance()
	s.core.DrainDestroys()
	s.core.ProcessDestructions()
	s.core.OpenWindow()
	if window != nil {
		require.NoError(s.tb, s.core.Callback(func(w *registry.Window) error { window(w); return nil }))
	}
	s.core.CloseWindow()
	if f := s.core.NewFrame(); system != nil {
		s.core.System("test", func() { system(f) })
	}
	s.core.EndFrame()
}

func (s *stage) acquire() *registry.Snapshot {
	s.tb.Helper()
	snap, err := s.Acquire()
	require.NoError(s.tb, err)
	return snap
}

type seen struct {
	X, Vel float64
	Text   string
	Y      float32
	At     uint32
}

type seeing struct {
	Pos  []Position `ecs:"read"`
	Vel  []Velocity `ecs:"read"`
	Name []Name     `ecs:"read,optional"`
	Y    []float32  `ecs:"Altitude.Y,read,optional"`
	ID   []handles.Local
	At   []uint32 `ecs:"index"`
}

func (m *seeing) one(i int) seen {
	one := seen{X: m.Pos[i].X, Vel: m.Vel[i].X, At: m.At[i]}
	if m.Name != nil {
		one.Text = m.Name[i].Text
	}
	if m.Y != nil {
		one.Y = m.Y[i]
	}
	return one
}

// all is what the loops of a query show, of a frame or of a snapshot alike.
func all(t require.TestingT, q *views.Query[seeing], a registry.Access) map[handles.Local]seen {
	runs, spans, lanes := map[handles.Local]seen{}, map[handles.Local]seen{}, map[handles.Local]seen{}
	n := 0
	for m := range q.Runs(a) {
		for i, h := range m.ID {
			runs[h] = m.one(i)
			n++
		}
	}
	for m, mask := range q.Spans(a) {
		for _, i := range mask.Live() {
			spans[m.ID[i]] = m.one(int(i))
			require.Equal(t, mask.Base()+uint32(i), m.At[i])
		}
		n := 0
		for i, h := range m.ID {
			if mask.Words()[i>>6]>>(i&63)&1 != 0 {
				lanes[h] = m.one(i)
				n++
			}
		}
		require.Equal(t, n, mask.Count())
		require.Equal(t, mask.Full(), n == len(m.ID))
	}
	require.Equal(t, n, len(runs), "each once")
	require.True(t, maps.Equal(runs, spans))
	require.True(t, maps.Equal(runs, lanes))
	require.Equal(t, n, q.Count(a))
	return runs
}

func TestLoopsShowThePublishedFrame(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		s := newStage(t, temporal)
		q, moving := query[seeing](s.world, views.Published()), query[seeing](s.world, views.Without[Frozen]())
		var hs []handles.Local
		s.step(func(w *registry.Window) {
			var err error
			hs, err = s.movers.SpawnBatch(w, 300, func(i int, e *Mover) { e.Pos.X, e.Vel.X = float64(i), 1 })
			require.NoError(t, err)
		}, nil)
		var held []*registry.Snapshot
		wants := map[uint64][2]map[handles.Local]seen{}
		look := func(f *registry.Frame) {
			wants[f.FrameNumber()] = [2]map[handles.Local]seen{all(t, q, f), all(t, moving, f)}
		}
		changes := []struct {
			window func(w *registry.Window)
			system func(f *registry.Frame)
		}{
			{system: func(*registry.Frame) {}},
			{system: func(f *registry.Frame) {
				for m := range query[movers](s.world).Runs(f) {
					for i := range m.Pos {
						m.Pos[i].X++
					}
				}
			}},
			{window: func(w *registry.Window) {
				registry.AddBatch(w, hs[100:200], Frozen{})
				registry.AddBatch(w, hs[150:180], Name{Text: "named"})
				registry.AddBatch(w, hs[:50], Altitude{Y: 3})
			}},
			{window: func(w *registry.Window) { require.Equal(t, 100, w.DestroyBatch(hs[120:220])) },
				system: func(f *registry.Frame) {
					require.NoError(t, f.Destroy(hs[0]))
					require.NoError(t, registry.SetActive(f, hs[1], false))
				}},
			{window: func(w *registry.Window) {
				compact(t, w)
				_, err := s.movers.SpawnBatch(w, 500, func(i int, e *Mover) { e.Pos.X = -float64(i) })
				require.NoError(t, err)
			}},
			{window: func(w *registry.Window) { registry.RemoveBatch[Frozen](w, hs[:120]); compact(t, w) }},
		}
		for round := range 3 * len(changes) {
			c := changes[round%len(changes)]
			if round%len(changes) == 0 && round > 0 { // from the beginning, in memory that was used
				c.window = func(w *registry.Window) {
					require.NoError(t, w.Reset())
					var err error
					hs, err = s.movers.SpawnBatch(w, 300, func(i int, e *Mover) { e.Pos.X, e.Vel.X = float64(i+round), 2 })
					require.NoError(t, err)
				}
			}
			s.step(c.window, func(f *registry.Frame) {
				if c.system != nil {
					c.system(f)
				}
				look(f)
			})
			require.NoError(t, s.Verify())
			held = append(held, s.acquire())
			for _, snap := range held {
				want := wants[snap.FrameNumber()]
				if got := all(t, q, snap); !maps.Equal(want[0], got) {
					require.Equal(t, want[0], got, "frame %d in round %d", snap.FrameNumber(), round)
				}
				require.True(t, maps.Equal(want[1], all(t, moving, snap)))
			}
			if len(held) == 3 { // the first goes, and publishing goes on
				held[round%2].Release()
				held = append(held[:round%2], held[round%2+1:]...)
			}
		}
		for _, snap := range held {
			snap.Release()
		}
	}
}

func TestChangesOfAPublishedFrame(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		s := newStage(t, temporal)
		var hs []handles.Local
		s.step(func(w *registry.Window) {
			var err error
			hs, err = s.movers.SpawnBatch(w, 192, nil)
			require.NoError(t, err)
		}, nil)
		q := query[watchers](s.world)
		write := func(chunk int) func(f *registry.Frame) {
			return func(f *registry.Frame) { require.NoError(t, registry.Set(f, hs[chunk*64+5], Position{})) }
		}
		expect := func(a registry.Access, now uint64) { // chunk 0 was written in now, 1 in now-1, 2 in now-2
			t.Helper()
			for back := range 4 {
				since := now - uint64(back)
				got := changed(q, a, since)
				require.Equal(t, 64*min(back, 3), got, "frame %d, since %d", now, since)
				require.Equal(t, got, query[watchers](s.world, views.Changed[Position](since)).Count(a))
			}
		}
		three := func() uint64 {
			for chunk := range 3 {
				s.step(nil, write(2-chunk))
			}
			return s.Stats().Frame
		}
		s.step(nil, nil)
		now := three()
		a := s.acquire()
		expect(a, now)
		later := three()
		expect(a, now)
		b := s.acquire()
		expect(b, later)
		three() // storage frames step over those of a, and of b
		expect(b, later)
		a.Release()
		b.Release()
		s.step(nil, nil)
		s.step(nil, nil)
		for range 3 {
			now := three()
			c := s.acquire()
			require.Equal(t, now, c.FrameNumber())
			expect(c, now)
			c.Release()
		}
	}
}

func TestWhatASnapshotRefuses(t *testing.T) {
	s := newStage(t, 8)
	h := handles.Local(0)
	s.step(func(w *registry.Window) {
		var err error
		h, err = s.movers.Spawn(w, Mover{})
		require.NoError(t, err)
		require.NoError(t, registry.Add(w, h, Mark(1)))
		_, err = s.loose.Spawn(w, struct{ Vel Velocity }{})
		require.NoError(t, err)
	}, nil)
	panicsWith := func(want error, contains string, fn func()) {
		t.Helper()
		defer func() {
			t.Helper()
			err, _ := recover().(error)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, contains)
		}()
		fn()
	}
	loops := func(a registry.Access, want error, contains string) {
		t.Helper()
		marks := query[struct{ Mark []Mark }](s.world)
		panicsWith(want, contains, func() {
			for range marks.Runs(a) {
			}
		})
		panicsWith(want, contains, func() {
			for range marks.RunsSince(a, 1) {
			}
		})
		panicsWith(want, contains, func() {
			for range marks.Spans(a) {
			}
		})
		panicsWith(want, contains, func() { marks.Count(a) })
	}
	snap := s.acquire()
	loops(snap, registry.ErrNotPublished, "InTier(Volatile)")
	require.Equal(t, 1, query[ids](s.world, views.With[Mark]()).Count(snap), "a filter looks at no cells")
	panicsWith(registry.ErrReadOnly, "Parallel", func() { query[ids](s.world).Parallel(snap, nil) })

	other := newStage(t, 0)
	other.step(nil, nil)
	foreign := other.acquire()
	loops(foreign, views.ErrForeign, "")
	foreign.Release()

	for range 5 {
		s.step(nil, nil)
	}
	old, err := s.AcquireAt(2)
	require.NoError(t, err)
	require.Equal(t, 1, query[struct{ Pos []Position }](s.world).Count(old))
	panicsWith(registry.ErrNotPublished, "frame 2", func() { query[movers](s.world).Count(old) })
	panicsWith(registry.ErrNotPublished, "frame 2", func() { query[ids](s.world).Count(old) })
	require.Equal(t, 1, query[ids](s.world, views.With[Position]()).Count(old))
	old.Release()
	require.Equal(t, 2, query[ids](s.world).Count(snap))
	snap.Release()
	loops(snap, registry.ErrExpired, "")
	loops(old, registry.ErrExpired, "")
}

// TestHeldPastItsTime is the case views-5: a pointer and a slice are good until their frame ends, however
// the class grows, and what is written through them later is told by a debug build.
func TestHeldPastItsTime(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("views-5/temporal=%d/moved=%v", temporal, moved), func(t *testing.T) {
				s := newStage(t, temporal)
				var hs []handles.Local
				var pointer *Position
				var slice []Velocity
				s.step(func(w *registry.Window) {
					var err error
					hs, err = s.movers.SpawnBatch(w, 10, nil)
					require.NoError(t, err)
					pointer, err = registry.Get[Position](w, hs[3])
					require.NoError(t, err)
					for m := range query[movingView](s.world).Runs(w) {
						slice = m.Vel
					}
					_, err = s.movers.SpawnBatch(w, 10_000, nil)
					require.NoError(t, err)
				}, func(f *registry.Frame) {
					pointer.X, slice[3].X = 41, 42
					p, err := registry.Peek[Position](f, hs[3])
					require.NoError(t, err)
					v, err := registry.Peek[Velocity](f, hs[3])
					require.NoError(t, err)
					require.Equal(t, []float64{41, 42}, []float64{p.X, v.X})
				})
				taken := s.Stats().Frame
				s.step(func(w *registry.Window) {
					if moved {
						require.NoError(t, registry.Add(w, hs[3], Frozen{}))
					}
				}, func(f *registry.Frame) {
					require.Empty(t, s.errs)
					pointer.X, slice[3].X = -1, -2
					p, err := registry.Peek[Position](f, hs[3])
					require.NoError(t, err)
					v, err := registry.Peek[Velocity](f, hs[3])
					require.NoError(t, err)
					require.Equal(t, []float64{41, 42}, []float64{p.X, v.X}, "its cells are elsewhere by now")
				})
				told := map[string]uint64{}
				for _, err := range s.errs {
					var late *registry.LateWriteError
					require.ErrorAs(t, err, &late)
					require.ErrorIs(t, err, registry.ErrLateWrite)
					require.Equal(t, "views_test.Mover", late.Class)
					require.EqualValues(t, 3, late.Place)
					told[late.Component] = late.Frame
				}
				if check.Enabled {
					require.Equal(t, map[string]uint64{"views_test.Position": taken, "views_test.Velocity": taken}, told)
				} else {
					require.Empty(t, told)
				}
				s.errs = nil
				s.step(func(w *registry.Window) { require.NoError(t, w.Reset()) }, nil)
				for range 10 { // until nothing of that memory is left
					s.step(nil, nil)
				}
				require.Empty(t, s.errs)
			})
		}
	}
}

type movingView struct {
	Pos []Position
	Vel []Velocity
}

func TestAPublishedLoopCanBeLeft(t *testing.T) {
	s := newStage(t, 0)
	s.step(func(w *registry.Window) {
		_, err := s.movers.SpawnBatch(w, 1000, func(i int, e *Mover) { e.Pos.X = float64(i) })
		require.NoError(t, err)
	}, nil)
	snap := s.acquire()
	defer snap.Release()
	q := query[seeing](s.world)
	for range 20 { // more than there are places
		for range q.Runs(snap) {
			break
		}
		for range q.Spans(snap) {
			break
		}
		require.Panics(t, func() {
			for range q.Runs(snap) {
				panic("left")
			}
		})
		require.Equal(t, 1000, q.Count(snap))
	}
	var nest func(depth int) int
	nest = func(depth int) (n int) { // deeper than there are places
		for m := range q.Runs(snap) {
			if depth > 0 {
				require.Equal(t, 1000, nest(depth-1))
			}
			n += len(m.Pos)
			if depth > 0 {
				n = 1000
				break
			}
		}
		return n
	}
	require.Equal(t, 1000, nest(12))
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for range 20 {
				sum := 0.0
				for m := range q.Runs(snap) {
					for i := range m.Pos {
						sum += m.Pos[i].X
					}
				}
				if sum != 999*1000/2 {
					t.Error("sum", sum)
				}
			}
		})
	}
	readers.Wait()
}

func TestAPublishedLoopAllocatesNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build remembers who acquired")
	}
	s := newStage(t, 0)
	s.step(func(w *registry.Window) {
		_, err := s.movers.SpawnBatch(w, 3000, nil)
		require.NoError(t, err)
	}, nil)
	q := query[seeing](s.world)
	n := 0
	for name, fn := range map[string]func(*registry.Snapshot){
		"runs": func(snap *registry.Snapshot) {
			for m := range q.Runs(snap) {
				n += len(m.ID)
			}
		},
		"since": func(snap *registry.Snapshot) {
			for m := range q.RunsSince(snap, 1) {
				n += len(m.ID)
			}
		},
		"spans": func(snap *registry.Snapshot) {
			for _, mask := range q.Spans(snap) {
				n += len(mask.Live())
			}
		},
		"count": func(snap *registry.Snapshot) { n += q.Count(snap) },
	} {
		require.Zero(t, testing.AllocsPerRun(200, func() {
			snap, _ := s.Acquire()
			fn(snap)
			snap.Release()
		}), name)
	}
}
