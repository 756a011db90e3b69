package views_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type Position struct{ X, Y float64 }

type Velocity struct{ X, Y float64 }

type Name struct {
	Text string
	Tail []int32
}

type Odd [7]byte

type Frozen struct{}

type Altitude struct{ X, Y, Z float32 }

type Mark uint32

// Mover is the plain class of these tests.
type Mover struct {
	Pos Position
	Vel Velocity
}

type movers struct {
	Pos []Position
	Vel []Velocity `ecs:"read"`
	ID  []handles.Local
}

type ids struct{ ID []handles.Local }

// world is a registry with the two ways into it that a loop knows: a window and a frame.
type world struct {
	*registry.Registry
	tb tester
}

// tester is what a test and a step of a model have in common.
type tester interface {
	require.TestingT
	Helper()
	Error(...any)
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	r, err := registry.New(registry.Config{})
	require.NoError(tb, err)
	registered[Frozen](tb, r)
	registered[Name](tb, r)
	registered[Odd](tb, r)
	registered[Mark](tb, r)
	registered[Altitude](tb, r, registry.Split())
	if t, ok := tb.(*testing.T); ok {
		t.Cleanup(func() { require.NoError(t, r.Verify()) })
	}
	return &world{r, tb}
}

func registered[C any](tb tester, r *registry.Registry, o ...registry.ComponentOption) archetype.ComponentID {
	tb.Helper()
	id, err := registry.RegisterComponent[C](r, o...)
	require.NoError(tb, err)
	return id
}

func class[E any](w *world, o ...registry.ClassOption) *registry.Class[E] {
	w.tb.Helper()
	c, err := registry.RegisterClass[E](w.Registry, o...)
	require.NoError(w.tb, err)
	return c
}

func query[T any](w *world, filters ...views.Filter) *views.Query[T] {
	w.tb.Helper()
	q, err := views.NewQuery[T](w.Registry, filters...)
	require.NoError(w.tb, err)
	return q
}

// window runs fn in a window of its own. It may panic through.
func (w *world) window(fn func(*registry.Window)) {
	w.tb.Helper()
	require.NoError(w.tb, w.Update(func(win *registry.Window) error {
		fn(win)
		return nil
	}))
}

// frame runs fn as a system of one frame, with the window in which its wishes come true
// after it.
func (w *world) frame(fn func(*registry.Frame)) {
	w.tb.Helper()
	w.frameWith(1, fn)
}

// frameWith is frame in an engine with some workers.
func (w *world) frameWith(workers int, fn func(*registry.Frame)) {
	w.tb.Helper()
	core, err := w.Attach(registry.Hooks{OnError: func(err error) { w.tb.Error(err) }, Workers: workers, Spread: spread})
	require.NoError(w.tb, err)
	defer core.Detach()
	require.NoError(w.tb, core.Enter(false))
	defer core.Leave()
	core.Advance()
	core.DrainDestroys()
	core.ProcessDestructions()
	f := core.NewFrame()
	func() {
		defer core.EndFrame()
		core.System("test", func() { fn(f) })
	}()
	core.Advance()
	core.DrainDestroys()
	core.ProcessDestructions()
	core.OpenWindow()
	core.RunWishes()
	core.CloseWindow()
	core.Deliver()
	core.EndFrame()
}

// spread is what an engine does for a parallel loop.
func spread(n int, run func(worker int)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := 1; i < n; i++ {
		wg.Go(func() { run(i) })
	}
	run(0)
}

// both runs a test once in a window and once in a frame.
func both(t *testing.T, fn func(t *testing.T, w *world, inside func(func(registry.Access)))) {
	t.Run("window", func(t *testing.T) {
		w := newWorld(t)
		fn(t, w, func(f func(registry.Access)) { w.window(func(win *registry.Window) { f(win) }) })
	})
	t.Run("frame", func(t *testing.T) {
		w := newWorld(t)
		fn(t, w, func(f func(registry.Access)) { w.frame(func(fr *registry.Frame) { f(fr) }) })
	})
}

// spawn makes n movers; the X of each is its number.
func (w *world) spawn(c *registry.Class[Mover], n int) []handles.Local {
	w.tb.Helper()
	var hs []handles.Local
	w.window(func(win *registry.Window) {
		var err error
		hs, err = c.SpawnBatch(win, n, func(i int, e *Mover) {
			e.Pos, e.Vel = Position{float64(i), 0}, Velocity{1, float64(i)}
		})
		require.NoError(w.tb, err)
	})
	return append([]handles.Local(nil), hs...)
}

// destroy destroys and reclaims.
func (w *world) destroy(hs ...handles.Local) {
	w.tb.Helper()
	w.window(func(win *registry.Window) {
		require.Equal(w.tb, len(hs), win.DestroyBatch(hs))
		win.ProcessDeferredDestructions()
	})
}

// visited collects the handles a loop shows, in order.
func visited(q *views.Query[ids], a registry.Access) []handles.Local {
	var seen []handles.Local
	for m := range q.Runs(a) {
		seen = append(seen, m.ID...)
	}
	return seen
}
