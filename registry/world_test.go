package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// world is a registry with the classes that most tests need. It is verified when the test
// ends.
type world struct {
	t        testing.TB
	r        *registry.Registry
	soldiers *registry.Class[soldier]
	scouts   *registry.Class[scout]
}

func newWorld(t testing.TB, c registry.Config) *world {
	t.Helper()
	r, err := registry.New(c)
	require.NoError(t, err)
	return worldOf(t, r)
}

func worldOf(t testing.TB, r *registry.Registry) *world {
	t.Helper()
	_, err := registry.RegisterComponent[spot](r, registry.Split())
	require.NoError(t, err)
	_, err = registry.RegisterComponent[frozen](r)
	require.NoError(t, err)
	k := &world{t: t, r: r}
	k.soldiers, err = registry.RegisterClass[soldier](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	k.scouts, err = registry.RegisterClass[scout](r)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := r.Verify(); err != nil {
			t.Errorf("verify: %v", err)
		}
	})
	return k
}

// update runs fn in a window that must not fail.
func (k *world) update(fn func(w *registry.Window)) {
	k.t.Helper()
	require.NoError(k.t, k.r.Update(func(w *registry.Window) error {
		fn(w)
		return nil
	}))
}

// fails runs fn in a window that fails, as planned.
func (k *world) fails(fn func(w *registry.Window)) {
	k.t.Helper()
	require.ErrorIs(k.t, k.r.Update(func(w *registry.Window) error {
		fn(w)
		return errPlanned
	}), errPlanned)
}

// spawn makes a soldier that knows its own handle.
func (k *world) spawn(w *registry.Window) handles.Local {
	k.t.Helper()
	h, err := k.soldiers.Spawn(w, soldier{})
	require.NoError(k.t, err)
	require.NoError(k.t, registry.Set(w, h, self{h}))
	return h
}

// spawnOne makes a soldier in a window of its own.
func (k *world) spawnOne() (h handles.Local) {
	k.t.Helper()
	k.update(func(w *registry.Window) { h = k.spawn(w) })
	return h
}

// spawnMany makes soldiers in a window of their own.
func (k *world) spawnMany(n int) (hs []handles.Local) {
	k.t.Helper()
	k.update(func(w *registry.Window) {
		var err error
		hs, err = k.soldiers.SpawnBatch(w, n, nil)
		require.NoError(k.t, err)
		for _, h := range hs {
			require.NoError(k.t, registry.Set(w, h, self{h}))
		}
	})
	return hs
}

// recycle buries the dead and lets their indices serve again.
func (k *world) recycle() {
	k.t.Helper()
	k.update(func(w *registry.Window) {
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
	})
}

// successor cycles the index of a dead handle and gives the newcomer.
func (k *world) successor(dead handles.Local) (heir handles.Local) {
	k.t.Helper()
	k.recycle()
	k.update(func(w *registry.Window) {
		for heir.Index() != dead.Index() {
			heir = k.spawn(w)
		}
	})
	require.NotEqual(k.t, dead, heir)
	return heir
}

// dead checks that h, and n if there is one, names nobody.
func (k *world) dead(h handles.Local, n handles.Net) {
	k.t.Helper()
	require.False(k.t, k.r.Alive(h))
	_, err := k.r.Resolve(h)
	require.ErrorIs(k.t, err, registry.ErrStale)
	_, err = k.r.NetOf(h)
	require.ErrorIs(k.t, err, registry.ErrStale)
	require.ErrorIs(k.t, k.r.Destroy(h), registry.ErrStale)
	if n != 0 {
		require.False(k.t, k.r.AliveNet(n))
		_, err = k.r.ResolveNet(n)
		require.ErrorIs(k.t, err, registry.ErrStale)
	}
}

// engine steps a registry frame by frame, as package logic does.
type engine struct {
	*registry.Core
	t    testing.TB
	errs []error // what observers and wishes failed with
}

func (k *world) engine() *engine {
	k.t.Helper()
	e := &engine{t: k.t}
	core, err := k.r.Attach(registry.Hooks{OnError: func(err error) { e.errs = append(e.errs, err) }})
	require.NoError(k.t, err)
	e.Core = core
	k.t.Cleanup(core.Detach)
	return e
}

// system is a named system of one frame.
type system struct {
	name string
	fn   func(f *registry.Frame)
}

// frame runs one frame: a window, then systems.
func (e *engine) frame(window func(w *registry.Window) error, systems ...system) error {
	e.t.Helper()
	require.NoError(e.t, e.Enter(false))
	defer e.Leave()
	e.Advance()
	e.DrainDestroys()
	e.ProcessDestructions()
	e.OpenWindow()
	e.RunWishes()
	var err error
	if window != nil {
		err = e.CallbackRecover(window)
	}
	e.CloseWindow()
	f := e.NewFrame()
	e.Deliver()
	for _, s := range systems {
		e.Boundary()
		e.System(s.name, func() { s.fn(f) })
	}
	e.Deliver()
	e.Boundary()
	e.EndFrame()
	return err
}
