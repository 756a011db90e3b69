package views_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// mirror is what somebody knows who hears of a query through a follower alone.
type mirror struct {
	*views.Follower[watched]
	known  map[handles.Local]Position
	looked int // runs
}

type watched struct {
	ID  []handles.Local
	Pos []Position `ecs:"read"`
}

func newMirror(w *world) *mirror {
	return &mirror{query[watched](w).Follow(), map[handles.Local]Position{}, 0}
}

func (m *mirror) look(a registry.Access) (runs int) {
	for run := range m.Runs(a) {
		runs++
		for i, h := range run.ID {
			m.known[h] = run.Pos[i]
		}
	}
	m.looked += runs
	return runs
}

func (m *mirror) agrees(t *testing.T, q *views.Query[watched], a registry.Access) {
	t.Helper()
	for run := range q.Runs(a) {
		for i, h := range run.ID {
			require.Equal(t, run.Pos[i], m.known[h], h)
		}
	}
}

// Every way to look has a mirror of its own, which looks between writers in windows, frames, and on what they have published.
func TestAFollowerMissesNothing(t *testing.T) {
	s := newStage(t, 0)
	var hs []handles.Local
	s.step(func(w *registry.Window) {
		var err error
		hs, err = s.movers.SpawnBatch(w, 1280, nil)
		require.NoError(t, err)
	}, nil)
	q := query[watched](s.world)
	inWindow, inFrame, outside := newMirror(s.world), newMirror(s.world), newMirror(s.world)
	next := 0.0
	write := func(a registry.Access, i int) {
		next++
		require.NoError(t, registry.Set(a, hs[i], Position{X: next}))
	}
	for round := range 30 {
		s.step(func(w *registry.Window) {
			write(w, round*7)
			if round%3 == 0 {
				inWindow.look(w)
				inWindow.agrees(t, q, w)
			}
			write(w, 300+round*11)
		}, func(f *registry.Frame) {
			write(f, 600+round)
			inFrame.look(f)
			inFrame.agrees(t, q, f)
			write(f, 900+round*5)
		})
		if round%2 == 0 {
			snap := s.acquire()
			outside.look(snap)
			outside.agrees(t, q, snap)
			require.Zero(t, outside.look(snap), "a frame that was seen")
			snap.Release()
		}
	}
	for _, m := range []*mirror{inWindow, inFrame, outside} {
		require.Less(t, m.looked, 20+30*10, "it looks at what has changed, not at everything")
	}
}

func TestALoopOfAFollowerThatIsLeftDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 192)
	m := newMirror(w)
	for range 2 {
		w.frame(func(f *registry.Frame) {
			for range m.Runs(f) {
				break
			}
			require.Panics(t, func() {
				for range m.Runs(f) {
					panic("no")
				}
			})
		})
	}
	w.frame(func(f *registry.Frame) { require.Equal(t, 3, m.look(f)) })
	w.frame(func(f *registry.Frame) { require.Zero(t, m.look(f)) })
}

// A follower is for whoever sends what has changed: it needs no frame numbers.
func ExampleQuery_Follow() {
	type Ship struct{ Pos Position }
	type placed struct {
		Pos []Position `ecs:"read"`
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	ships, err := registry.RegisterClass[Ship](r)
	if err != nil {
		panic(err)
	}
	q, err := views.NewQuery[placed](r)
	if err != nil {
		panic(err)
	}
	changes := q.Follow()
	for range 2 {
		err := r.Update(func(w *registry.Window) error {
			n := 0
			for run := range changes.Runs(w) {
				n += len(run.Pos)
			}
			fmt.Println("to send:", n)
			_, err := ships.SpawnBatch(w, 3, nil)
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	// Output:
	// to send: 0
	// to send: 3
}
