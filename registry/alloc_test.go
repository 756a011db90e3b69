package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// onlyPlain skips a test of allocations where the build itself makes some.
func onlyPlain(t *testing.T) {
	if racing || check.Enabled {
		t.Skip("the race detector and the checks of a debug build allocate")
	}
}

// allocatesNothing measures calls that claim to allocate nothing.
func allocatesNothing(t *testing.T, calls map[string]func()) {
	t.Helper()
	for name, call := range calls {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}

func TestReadersAllocateNothing(t *testing.T) {
	onlyPlain(t)
	k := newWorld(t, registry.Config{})
	hs := k.spawnMany(10_000)
	var n handles.Net
	k.update(func(w *registry.Window) {
		n, _ = w.AssignNet(hs[0])
		w.DestroyBatch(hs[9000:])
	})
	k.recycle()
	next, dead := 0, hs[9500]
	allocatesNothing(t, map[string]func(){
		"Alive":      func() { k.r.Alive(hs[0]) },
		"Resolve":    func() { _, _ = k.r.Resolve(hs[0]) },
		"NetOf":      func() { _, _ = k.r.NetOf(hs[0]) },
		"AliveNet":   func() { k.r.AliveNet(n) },
		"ResolveNet": func() { _, _ = k.r.ResolveNet(n) },
		"ResolveWire": func() {
			_, _ = k.r.ResolveWire(n.Wire())
			_, _ = k.r.ResolveWire(99)
		},
		"of the dead": func() {
			k.r.Alive(dead)
			_, _ = k.r.Resolve(dead)
			_ = k.r.Destroy(dead)
		},
		"Destroy": func() {
			next++
			_ = k.r.Destroy(hs[next])
		},
		"Reserve":  func() { _, _ = k.r.Reserve() },
		"Obituary": func() { k.r.Obituary(hs[9999]) },
		"Acquire": func() {
			_, _ = k.r.Acquire()
			_, _ = k.r.AcquireAt(3)
			_ = k.r.Read(nil)
		},
		"CacheCap, Config, Layout, Name": func() {
			k.r.CacheCap()
			k.r.Config()
			k.soldiers.Layout()
			k.soldiers.Name()
			registry.ClassIndex[soldier](k.r)
		},
	})
}

func TestAccessAllocatesNothing(t *testing.T) {
	onlyPlain(t)
	k := newWorld(t, registry.Config{})
	var h, s handles.Local
	k.update(func(w *registry.Window) {
		h = k.spawn(w)
		var err error
		s, err = k.scouts.Spawn(w, scout{Title: title{"text"}})
		require.NoError(t, err)
	})
	health1, err := registry.NewCells[health](k.r)
	require.NoError(t, err)
	title1, err := registry.NewCells[title](k.r)
	require.NoError(t, err)
	spot1, err := registry.NewCells[spot](k.r)
	require.NoError(t, err)
	on, hs := true, []handles.Local{h, 0, s}
	calls := func(a registry.Access) map[string]func() {
		return map[string]func(){
			"Get":        func() { _, _ = registry.Get[health](a, h) },
			"Get text":   func() { _, _ = registry.Get[title](a, s) },
			"Peek":       func() { _, _ = registry.Peek[health](a, h) },
			"Peek text":  func() { _, _ = registry.Peek[title](a, s) },
			"Peek split": func() { _, _ = registry.Peek[spot](a, s) },
			"Set":        func() { _ = registry.Set(a, h, health{1}) },
			"Set text":   func() { _ = registry.Set(a, s, title{"other"}) },
			"Set split":  func() { _ = registry.Set(a, s, spot{X: 1}) },
			"Has":        func() { registry.Has[health](a, h) },
			"no such":    func() { _, _ = registry.Get[title](a, h) },
			"a dead one": func() { _, _ = registry.Get[title](a, 0) },
			"Active":     func() { registry.Active(a, h) },
			"SetActive":  func() { on = !on; _ = registry.SetActive(a, h, on) },
			"CacheIndex": func() { registry.CacheIndex(a, h) },
			"Cells.Get":  func() { health1.Get(a, h) },
			"Cells.Peek": func() { title1.Peek(a, s) },
			"Cells.Set":  func() { health1.Set(a, h, health{2}) },
			"Cells.Open": func() {
				open := health1.Open(a)
				open.Peek(h)
				for range open.Each(hs) {
				}
			},
			"Cells split": func() { spot1.Set(a, s, spot{}); spot1.Peek(a, s) },
			"Registry":    func() { a.Registry(); a.FrameNumber() },
			"Iterate": func() {
				registry.Iterate(a)
				registry.Finish(a)
			},
		}
	}
	k.update(func(w *registry.Window) { allocatesNothing(t, calls(w)) })
	require.NoError(t, k.engine().frame(nil, system{"s", func(f *registry.Frame) {
		allocatesNothing(t, calls(f))
		allocatesNothing(t, map[string]func(){"Rand": func() { f.Rand().Uint64(); f.Input(0) }})
	}}))
}

func TestWarmStructureAllocatesNothing(t *testing.T) {
	onlyPlain(t)
	k := newWorld(t, registry.Config{})
	_, err := k.r.OnMove(func([]registry.Move) {})
	require.NoError(t, err)
	k.observe(registry.Spawned, func(*registry.Frame, []registry.Event) {})
	k.observe(registry.Destroyed, func(*registry.Frame, []registry.Event) {})
	hs := k.spawnMany(3000)
	k.update(func(w *registry.Window) {
		w.DestroyBatch(hs)
	})
	k.recycle()
	hs = k.spawnMany(1000)
	k.update(func(w *registry.Window) {
		for _, h := range hs {
			_, _ = w.AssignNet(h)
			_ = registry.SetParent(w, h, hs[0])
			_ = registry.SetParent(w, h, 0)
			_ = registry.Add(w, h, frozen{})
		}
		registry.RemoveBatch[frozen](w, hs)
	})
	next := 0
	pick := func() handles.Local {
		next++
		return hs[next%500]
	}
	k.update(func(w *registry.Window) {
		allocatesNothing(t, map[string]func(){
			"Spawn":         func() { _, _ = k.soldiers.Spawn(w, soldier{}) },
			"Add, Remove":   func() { h := pick(); _ = registry.Add(w, h, frozen{}); _ = registry.Remove[frozen](w, h) },
			"AssignNet":     func() { _, _ = w.AssignNet(pick()) },
			"SetParent":     func() { _ = registry.SetParent(w, hs[501], pick()) },
			"Named":         func() { w.Named("cause") },
			"SpawnReserved": func() { h, _ := k.r.Reserve(); _ = k.soldiers.SpawnReserved(w, h, soldier{}) },
		})
		next = 0
		allocatesNothing(t, map[string]func(){
			"Destroy": func() { next++; _ = w.Destroy(hs[next]) },
			"DestroyBatch": func() {
				next++
				w.DestroyBatch(hs[500+next : 501+next])
			},
		})
		allocatesNothing(t, map[string]func(){
			"Process, Confirm": func() {
				w.ProcessDeferredDestructions()
				w.ConfirmLocalRecycles()
				w.ConfirmNetRecycles()
				w.ConfirmLocalRecyclesThrough(3)
				w.ConfirmNetRecyclesThrough(3)
			},
		})
	})
}

func TestASteadyUpdateAllocatesNothing(t *testing.T) {
	onlyPlain(t)
	k := newWorld(t, registry.Config{})
	e := k.engine()
	for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
		k.observe(kind, func(f *registry.Frame, es []registry.Event) {
			if kind == registry.Destroyed && len(es) > 0 {
				_, _ = k.soldiers.SpawnLater(f, soldier{})
				_ = registry.AddLater(f, es[0].Entity, frozen{})
			}
		})
	}
	empty := func(*registry.Window) error { return nil }
	hs := make([]handles.Local, 0, 100)
	churn := func(w *registry.Window) error {
		w.Named("churn")
		w.DestroyBatch(hs)
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
		hs = hs[:0]
		for range 100 {
			h, err := k.soldiers.Spawn(w, soldier{})
			if err != nil {
				return err
			}
			hs = append(hs, h)
			if err := registry.Set(w, h, self{h}); err != nil {
				return err
			}
			if err := registry.Add(w, h, frozen{}); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	failing := func(w *registry.Window) error {
		_ = churn(w)
		hs = hs[:0]
		return errPlanned
	}
	for range 50 {
		require.NoError(t, k.r.Update(churn))
		require.Error(t, k.r.Update(failing))
	}
	frame := func() {
		_ = e.Enter(false)
		e.Advance()
		e.DrainDestroys()
		e.ProcessDestructions()
		e.ConfirmLocal(e.FrameNumber())
		e.OpenWindow()
		e.RunWishes()
		err = e.Callback(empty)
		e.CloseWindow()
		f := e.NewFrame()
		e.Deliver()
		e.System("system", func() { f.FrameNumber() })
		e.Deliver()
		e.Boundary()
		e.EndFrame()
		e.Leave()
	}
	allocatesNothing(t, map[string]func(){
		"an empty Update":   func() { err = k.r.Update(empty) },
		"a frame":           frame,
		"a churning Update": func() { _ = k.r.Update(churn) },
		"a failing Update":  func() { _ = k.r.Update(failing) },
	})
	require.NoError(t, err)
}

func TestWishesAllocateNothing(t *testing.T) {
	onlyPlain(t)
	k := newWorld(t, registry.Config{})
	e := k.engine()
	const many = 300 // more than a block of tokens
	hs, young := make([]handles.Local, many), make([]handles.Local, many)
	var failed error
	check := func(err error) {
		if err != nil {
			failed = err
		}
	}
	turn := system{"turn", func(f *registry.Frame) {
		for i, h := range hs {
			if h != 0 {
				check(f.Destroy(h))
			}
			hs[i] = young[i]
			if hs[i] != 0 {
				check(registry.AddLater(f, hs[i], frozen{}))
				check(registry.RemoveLater[frozen](f, hs[i]))
			}
			var err error
			young[i], err = k.soldiers.SpawnLater(f, soldier{})
			check(err)
		}
	}}
	list := []system{turn}
	frame := func() {
		check(e.frame(nil, list...))
		e.ConfirmLocal(e.FrameNumber())
	}
	for range 20 {
		frame()
	}
	allocatesNothing(t, map[string]func(){"a frame of wishes": frame})
	require.NoError(t, failed)
	require.Empty(t, e.errs)
	require.NoError(t, k.r.Verify())
	require.Equal(t, many, k.r.Stats().Live, "the others are not born yet")
}
