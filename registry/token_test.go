package registry_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// use is one method or function that takes a token.
type use struct {
	name string
	call func() error
}

// caught runs a call and gives its error, or what it panicked with.
func caught(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e, ok := v.(error)
			if !ok {
				e = fmt.Errorf("panic: %v", v)
			}
			err = e
		}
	}()
	return call()
}

// done is the answer of a call that has no error to give.
var errNone = errors.New("no error")

func answered(...any) error { return errNone }

// accessUses is everything that takes an Access.
func accessUses(k *world, a registry.Access, h handles.Local) []use {
	cells, err := registry.NewCells[health](k.r)
	require.NoError(k.t, err)
	return []use{
		{"Get", func() error { _, err := registry.Get[self](a, h); return err }},
		{"Peek", func() error { _, err := registry.Peek[self](a, h); return err }},
		{"Set", func() error { return registry.Set(a, h, health{99}) }},
		{"Has", func() error { return answered(registry.Has[self](a, h)) }},
		{"Active", func() error { return answered(registry.Active(a, h)) }},
		{"SetActive", func() error { return registry.SetActive(a, h, false) }},
		{"CacheIndex", func() error { return answered(registry.CacheIndex(a, h)) }},
		{"Cells.Get", func() error { return answered(cells.Get(a, h)) }},
		{"Cells.Peek", func() error { return answered(cells.Peek(a, h)) }},
		{"Cells.Set", func() error { return answered(cells.Set(a, h, health{98})) }},
		{"Iterate", func() error { return answered(registry.Iterate(a)) }},
		{"Registry", func() error { return answered(a.Registry()) }},
		{"FrameNumber", func() error { return answered(a.FrameNumber()) }},
	}
}

// windowUses is everything that takes a Window.
func windowUses(k *world, w *registry.Window, h handles.Local) []use {
	return append(accessUses(k, w, h), []use{
		{"Spawn", func() error { _, err := k.soldiers.Spawn(w, soldier{}); return err }},
		{"SpawnBatch", func() error { _, err := k.soldiers.SpawnBatch(w, 3, nil); return err }},
		{"SpawnBatch of none", func() error { _, err := k.soldiers.SpawnBatch(w, 0, nil); return err }},
		{"SpawnReserved", func() error { return k.soldiers.SpawnReserved(w, h, soldier{}) }},
		{"Add", func() error { return registry.Add(w, h, frozen{}) }},
		{"AddBatch", func() error { return answered(registry.AddBatch(w, []handles.Local{h}, frozen{})) }},
		{"Remove", func() error { return registry.Remove[health](w, h) }},
		{"RemoveBatch", func() error { return answered(registry.RemoveBatch[health](w, []handles.Local{h})) }},
		{"SetParent", func() error { return registry.SetParent(w, h, 0) }},
		{"Destroy", func() error { return w.Destroy(h) }},
		{"DestroyBatch", func() error { return answered(w.DestroyBatch([]handles.Local{h})) }},
		{"Named", func() error { w.Named("late"); return errNone }},
		{"AssignNet", func() error { _, err := w.AssignNet(h); return err }},
		{"BindNet", func() error { return w.BindNet(h, handles.NewNet(9, 9, 9)) }},
		{"ProcessDeferredDestructions", func() error { return answered(w.ProcessDeferredDestructions()) }},
		{"ConfirmLocalRecycles", func() error { return answered(w.ConfirmLocalRecycles()) }},
		{"ConfirmLocalRecyclesThrough", func() error { return answered(w.ConfirmLocalRecyclesThrough(1)) }},
		{"ConfirmNetRecycles", func() error { return answered(w.ConfirmNetRecycles()) }},
		{"ConfirmNetRecyclesThrough", func() error { return answered(w.ConfirmNetRecyclesThrough(1)) }},
		{"Reset", func() error { return w.Reset() }},
	}...)
}

// frameUses is everything that takes a Frame.
func frameUses(k *world, f *registry.Frame, h handles.Local) []use {
	return append(accessUses(k, f, h), []use{
		{"SpawnLater", func() error { _, err := k.soldiers.SpawnLater(f, soldier{}); return err }},
		{"AddLater", func() error { return registry.AddLater(f, h, frozen{}) }},
		{"RemoveLater", func() error { return registry.RemoveLater[health](f, h) }},
		{"Frame.Destroy", func() error { return f.Destroy(h) }},
		{"Frame.Defer", func() error { f.Defer(func(*registry.Window) error { return nil }); return errNone }},
		{"Frame.Input", func() error { return answered(f.Input(0)) }},
		{"Frame.Rand", func() error { return answered(f.Rand()) }},
	}...)
}

func TestTokensKeptTooLong(t *testing.T) {
	refused := func(t *testing.T, k *world, h handles.Local, uses []use) {
		t.Helper()
		before := k.r.Stats()
		for _, u := range uses {
			require.ErrorIs(t, caught(u.call), registry.ErrExpired, u.name)
		}
		require.True(t, k.r.Alive(h))
		require.Equal(t, before, k.r.Stats())
	}
	unchanged := func(t *testing.T, a registry.Access, h handles.Local) {
		t.Helper()
		p, err := registry.Peek[health](a, h)
		require.NoError(t, err)
		require.EqualValues(t, 1, p.Points)
		require.True(t, registry.Active(a, h))
	}
	t.Run("registry-8/windows", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h := k.spawnOne()
		var old, failed *registry.Window
		k.update(func(w *registry.Window) {
			old = w
			require.NoError(t, registry.Set(w, h, health{1}))
		})
		k.fails(func(w *registry.Window) { failed = w })
		for _, w := range []*registry.Window{old, failed, nil, new(registry.Window)} {
			refused(t, k, h, windowUses(k, w, h))
			k.update(func(now *registry.Window) {
				require.NotSame(t, w, now)
				refused(t, k, h, windowUses(k, w, h))
				unchanged(t, now, h)
				registry.Finish(w)
			})
		}
	})
	t.Run("registry-8/frames", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h := k.spawnOne()
		k.update(func(w *registry.Window) { require.NoError(t, registry.Set(w, h, health{1})) })
		e := k.engine()
		var old *registry.Frame
		require.NoError(t, e.frame(nil, system{"keeps", func(f *registry.Frame) { old = f }}))
		for _, f := range []*registry.Frame{old, nil, new(registry.Frame)} {
			refused(t, k, h, frameUses(k, f, h))
			require.NoError(t, e.frame(func(*registry.Window) error {
				refused(t, k, h, frameUses(k, f, h))
				return nil
			}, system{"later", func(now *registry.Frame) {
				require.NotSame(t, f, now)
				refused(t, k, h, frameUses(k, f, h))
				unchanged(t, now, h)
			}}))
		}
		require.Empty(t, e.errs)
		require.Equal(t, 1, k.r.Stats().Live)
	})
	t.Run("registry-9/a snapshot that nobody acquired shows nothing", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h := k.spawnOne()
		_, err := k.r.Acquire()
		require.ErrorIs(t, err, registry.ErrNotPublished)
		for _, s := range []*registry.Snapshot{nil, new(registry.Snapshot)} {
			s.Release()
			s.Release()
			for _, u := range accessUses(k, s, h) {
				if u.name != "FrameNumber" { // stays valid
					require.ErrorIs(t, caught(u.call), registry.ErrExpired, u.name)
				}
			}
		}
		require.ErrorIs(t, caught(func() error { return registry.Set(nil, h, health{}) }), registry.ErrExpired)
	})
}

func TestAFrameTokenIsOneForItsFrame(t *testing.T) {
	k := newWorld(t, registry.Config{})
	e := k.engine()
	for n := range uint64(300) { // past a block of tokens
		var first *registry.Frame
		require.NoError(t, e.frame(nil,
			system{"a", func(f *registry.Frame) { first = f }},
			system{"b", func(f *registry.Frame) {
				require.Same(t, first, f)
				require.Equal(t, n+1, f.FrameNumber())
				require.Same(t, k.r, f.Registry())
				_, ok := f.Input(0)
				require.False(t, ok)
			}}))
	}
}

func TestRandIsAFunctionOfTheFrame(t *testing.T) {
	draw := func() (out [][3]uint64) {
		k := newWorld(t, registry.Config{})
		e := k.engine()
		for range 5 {
			require.NoError(t, e.frame(nil, system{"dice", func(f *registry.Frame) {
				out = append(out, [3]uint64{f.Rand().Uint64(), f.Rand().Uint64(), f.Rand().Uint64()})
			}}))
		}
		return out
	}
	a, b := draw(), draw()
	require.Equal(t, a, b)
	require.NotEqual(t, a[0], a[1])
}
