package logic_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// windowWays are the ways to the window: on a caller's goroutine while Logic waits, on Logic,
// and without an engine's frame.
var windowWays = map[string]func(w *world, fn func(*registry.Window) error) error{
	"Spawn":  func(w *world, fn func(*registry.Window) error) error { return w.e.Spawn(background(), fn) },
	"Update": func(w *world, fn func(*registry.Window) error) error { return w.r.Update(fn) },
	"Enqueue": func(w *world, fn func(*registry.Window) error) error {
		ticket, err := w.e.Enqueue(fn)
		if err != nil {
			return err
		}
		if err := w.e.Step(); err != nil {
			return err
		}
		<-ticket.Done()
		return ticket.Err()
	},
}

// ready has Run under way for who waits for it.
func (w *world) ready(way string) {
	w.t.Helper()
	if way == "Spawn" {
		w.run()
	}
}

// outcome goes one of the ways on a goroutine of its own; ErrGoexit stands for one that fn ended.
func (w *world) outcome(way string, fn func(*registry.Window) error) error {
	w.t.Helper()
	over := make(chan error, 1)
	go func() {
		err := registry.ErrGoexit
		defer func() { over <- err }()
		err = windowWays[way](w, fn)
	}()
	return soon(w.t, way, func() error { return <-over })
}

// A failed callback's moves are told back when all is undone, and the subscriber is inside the
// callback then as it was when they were made: what waits for the window is refused, the rest works.
func TestAMoverThatUndoTellsIsInsideTheCallback(t *testing.T) {
	for name, call := range map[string]struct {
		fn   func(w *world) error
		want error
	}{
		"Spawn":  {func(w *world) error { return w.e.Spawn(background(), noChange) }, logic.ErrWouldDeadlock},
		"Stop":   {func(w *world) error { return w.e.Stop() }, nil},
		"Defer":  {func(w *world) error { return w.e.Defer(noChange) }, nil},
		"Update": {func(w *world) error { return w.r.Update(noChange) }, logic.ErrWouldDeadlock},
		"Verify": {func(w *world) error { return w.r.Verify() }, nil},
	} {
		for way := range windowWays {
			t.Run(name+" in "+way, func(t *testing.T) {
				w := newWorld(t)
				h := w.spawn(1)
				told, failing := 0, false
				_, err := w.r.OnMove(func([]registry.Move) {
					if told++; failing {
						assert.ErrorIs(t, call.fn(w), call.want)
					}
				})
				require.NoError(t, err)
				w.ready(way)
				require.ErrorIs(t, w.outcome(way, func(win *registry.Window) error {
					assert.NoError(t, registry.Add(win, h, tag{1}))
					failing = true
					return errTest
				}), errTest)
				assert.Equal(t, 2, told, "there and back")
			})
		}
	}
}

// Whether a subscriber exits as it is told of the move alone, or also as it is told that the move
// is taken back: nothing of the callback stands, and nothing is left for a later one to take back.
func TestAMoverThatExitsLeavesNothingOfTheCallback(t *testing.T) {
	for name, most := range map[string]int{"once": 1, "always": 2} {
		for way := range windowWays {
			t.Run(name+" in "+way, func(t *testing.T) {
				w := newWorld(t)
				h := w.spawn(1)
				exits := 0
				_, err := w.r.OnMove(func([]registry.Move) {
					if exits < most {
						exits++
						runtime.Goexit()
					}
				})
				require.NoError(t, err)
				w.ready(way)
				var left, kept handles.Local
				require.ErrorIs(t, w.outcome(way, func(win *registry.Window) error {
					left, err = w.class.Spawn(win, thing{})
					assert.NoError(t, err)
					return registry.Add(win, h, tag{1})
				}), registry.ErrGoexit)
				require.Equal(t, most, exits)
				require.False(t, w.r.Alive(left))

				pass := func(end error) error {
					return w.outcome(way, func(win *registry.Window) (err error) {
						assert.False(t, registry.Has[tag](win, h))
						if end == nil {
							kept, err = w.class.Spawn(win, thing{})
						}
						assert.NoError(t, err)
						return end
					})
				}
				require.NoError(t, pass(nil))
				require.ErrorIs(t, pass(errTest), errTest)
				require.True(t, w.r.Alive(h) && w.r.Alive(kept), "a later failure takes back its own")
			})
		}
	}
}
