package registry_test

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	unknown    struct{ N int }
	unexported struct {
		Health health
		title  title
	}
	interfaced struct {
		Health health
		Any    any
	}
	doubled struct {
		A health
		B health
	}
	brandNew  struct{ N int }
	withBrand struct {
		Brand brandNew
		inner int
	}
	nothing interface{ Nothing() }
)

// Fields that nobody reads: they are there to be refused.
var _ = []any{unexported{title: title{}}, withBrand{inner: 0}}

// Every sentinel that this package returns, and the call that provokes it.
func TestEveryErrorCanBeProvoked(t *testing.T) {
	type env struct {
		*world
		h, dead, reserved handles.Local
		net, deadNet      handles.Net
	}
	in := func(e *env, fn func(w *registry.Window) error) (err error) {
		e.update(func(w *registry.Window) { err = fn(w) })
		return err
	}
	cases := []struct {
		name string
		want error
		call func(e *env) error
	}{
		{"Destroy of a dead handle", registry.ErrStale, func(e *env) error { return e.r.Destroy(e.dead) }},
		{"Resolve of a dead handle", registry.ErrStale, func(e *env) error { _, err := e.r.Resolve(e.dead); return err }},
		{"NetOf a dead handle", registry.ErrStale, func(e *env) error { _, err := e.r.NetOf(e.dead); return err }},
		{"ResolveNet of a dead name", registry.ErrStale, func(e *env) error { _, err := e.r.ResolveNet(e.deadNet); return err }},
		{"Get of a dead handle", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error { _, err := registry.Get[self](w, e.dead); return err })
		}},
		{"Add to a dead handle", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.Add(w, e.dead, frozen{}) })
		}},
		{"SetParent of a dead handle", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.SetParent(w, e.dead, e.h) })
		}},
		{"SetParent below a dead handle", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.SetParent(w, e.h, e.dead) })
		}},
		{"SpawnReserved of a dead handle", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error { return e.soldiers.SpawnReserved(w, e.dead, soldier{}) })
		}},
		{"Remove of an observer twice", registry.ErrStale, func(e *env) error {
			o, err := e.r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) {})
			require.NoError(e.t, err)
			require.NoError(e.t, o.Remove())
			return o.Remove()
		}},
		{"BindNet of an older name", registry.ErrStale, func(e *env) error {
			return in(e, func(w *registry.Window) error {
				other := e.spawn(w)
				require.NoError(e.t, w.BindNet(other, handles.NewNet(9, 4, 7)))
				require.NoError(e.t, w.Destroy(other))
				w.ProcessDeferredDestructions()
				return w.BindNet(e.spawn(w), handles.NewNet(9, 4, 6))
			})
		}},
		{"Destroy of the zero handle", registry.ErrInvalidHandle, func(e *env) error { return e.r.Destroy(0) }},
		{"Resolve of a handle never issued", registry.ErrInvalidHandle, func(e *env) error {
			_, err := e.r.Resolve(handles.NewLocal(5000, 1))
			return err
		}},
		{"ResolveNet of a name never issued", registry.ErrInvalidHandle, func(e *env) error {
			_, err := e.r.ResolveNet(handles.NewNet(0, 5000, 1))
			return err
		}},
		{"ResolveWire of a name never issued", registry.ErrInvalidHandle, func(e *env) error { _, err := e.r.ResolveWire(5000); return err }},
		{"BindNet of an own name", registry.ErrInvalidHandle, func(e *env) error {
			return in(e, func(w *registry.Window) error { return w.BindNet(e.h, handles.NewNet(0, 99, 1)) })
		}},
		{"BindNet of the zero name", registry.ErrInvalidHandle, func(e *env) error {
			return in(e, func(w *registry.Window) error { return w.BindNet(e.h, 0) })
		}},
		{"SpawnReserved of a living entity", registry.ErrInvalidHandle, func(e *env) error {
			return in(e, func(w *registry.Window) error { return e.soldiers.SpawnReserved(w, e.h, soldier{}) })
		}},
		{"Spawn at the cap", registry.ErrExhausted, func(e *env) error {
			return in(e, func(w *registry.Window) error {
				for {
					if _, err := e.soldiers.Spawn(w, soldier{}); err != nil {
						return err
					}
				}
			})
		}},
		{"SpawnBatch beyond the cap", registry.ErrExhausted, func(e *env) error {
			return in(e, func(w *registry.Window) error { _, err := e.soldiers.SpawnBatch(w, 101, nil); return err })
		}},
		{"Reserve at the cap", registry.ErrExhausted, func(e *env) error {
			for {
				if _, err := e.r.Reserve(); err != nil {
					return err
				}
			}
		}},
		{"SpawnLater at the cap", registry.ErrExhausted, func(e *env) (err error) {
			require.NoError(e.t, e.engine().frame(nil, system{"s", func(f *registry.Frame) {
				for err == nil {
					_, err = e.soldiers.SpawnLater(f, soldier{})
				}
			}}))
			return err
		}},
		{"a window kept too long", registry.ErrExpired, func(e *env) error {
			var old *registry.Window
			e.update(func(w *registry.Window) { old = w })
			_, err := e.soldiers.Spawn(old, soldier{})
			return err
		}},
		{"Get of an unknown component", registry.ErrNotRegistered, func(e *env) error {
			return in(e, func(w *registry.Window) error { _, err := registry.Get[unknown](w, e.h); return err })
		}},
		{"Add of an unknown component", registry.ErrNotRegistered, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.Add(w, e.h, unknown{}) })
		}},
		{"NewCells of an unknown component", registry.ErrNotRegistered, func(e *env) error {
			_, err := registry.NewCells[unknown](e.r)
			return err
		}},
		{"AddLater of an unknown component", registry.ErrNotRegistered, func(e *env) (err error) {
			require.NoError(e.t, e.engine().frame(nil, system{"s", func(f *registry.Frame) {
				err = errors.Join(registry.AddLater(f, e.h, unknown{}))
				require.ErrorIs(e.t, registry.RemoveLater[unknown](f, e.h), registry.ErrNotRegistered)
			}}))
			return err
		}},
		{"a component twice", registry.ErrAlreadyRegistered, func(e *env) error {
			_, err := registry.RegisterComponent[health](e.r)
			return err
		}},
		{"a class twice", registry.ErrAlreadyRegistered, func(e *env) error {
			_, err := registry.RegisterClass[soldier](e.r, registry.Named("other"))
			return err
		}},
		{"a name twice", registry.ErrAlreadyRegistered, func(e *env) error {
			_, err := registry.RegisterClass[oneMore](e.r, registry.Named(e.soldiers.Name()))
			return err
		}},
		{"a component's name twice", registry.ErrAlreadyRegistered, func(e *env) error {
			_, err := registry.RegisterComponent[extraOne](e.r, registry.Named("registry_test.health"))
			return err
		}},
		{"BindNet of a name in use", registry.ErrAlreadyRegistered, func(e *env) error {
			return in(e, func(w *registry.Window) error {
				n := handles.NewNet(9, 3, 1)
				other := e.spawn(w)
				require.NoError(e.t, w.BindNet(other, n))
				require.NoError(e.t, w.BindNet(other, n)) // the same again
				return w.BindNet(e.spawn(w), n)
			})
		}},
		{"BindNet of an entity with a name", registry.ErrAlreadyRegistered, func(e *env) error {
			return in(e, func(w *registry.Window) error { return w.BindNet(e.h, handles.NewNet(9, 2, 1)) })
		}},
		{"a pointer in Temporal", registry.ErrPointerInTemporal, func(e *env) error {
			_, err := registry.RegisterComponent[withNested](e.r, registry.InTier(archetype.Temporal))
			return err
		}},
		{"Resolve of a reservation", registry.ErrNotSpawned, func(e *env) error { _, err := e.r.Resolve(e.reserved); return err }},
		{"Peek of a reservation", registry.ErrNotSpawned, func(e *env) error {
			return in(e, func(w *registry.Window) error { _, err := registry.Peek[self](w, e.reserved); return err })
		}},
		{"Acquire before any frame", registry.ErrNotPublished, func(e *env) error { _, err := e.r.Acquire(); return err }},
		{"Read before any frame", registry.ErrNotPublished, func(e *env) error {
			return e.r.Read(func(*registry.Snapshot) error { panic("it ran") })
		}},
		{"AcquireAt the present", registry.ErrNotPublished, func(e *env) error { _, err := e.r.AcquireAt(0); return err }},
		{"AcquireAt the past", registry.ErrTooOld, func(e *env) error {
			require.NoError(e.t, e.engine().frame(nil))
			_, err := e.r.AcquireAt(0)
			return err
		}},
		{"a second engine", registry.ErrRunning, func(e *env) error {
			e.engine()
			_, err := e.r.Attach(registry.Hooks{})
			return err
		}},
		{"Update while an engine runs", registry.ErrRunning, func(e *env) error {
			c := e.engine()
			require.NoError(e.t, c.Enter(true))
			defer c.Leave()
			require.ErrorIs(e.t, e.r.Verify(), registry.ErrRunning)
			return e.r.Update(func(*registry.Window) error { return nil })
		}},
		{"Update in Update", registry.ErrWouldDeadlock, func(e *env) error {
			return in(e, func(*registry.Window) error { return e.r.Update(func(*registry.Window) error { return nil }) })
		}},
		{"Update in a system", registry.ErrWouldDeadlock, func(e *env) (err error) {
			require.NoError(e.t, e.engine().frame(nil, system{"s", func(*registry.Frame) {
				err = e.r.Update(func(*registry.Window) error { return nil })
			}}))
			return err
		}},
		{"Step in a callback of a run", registry.ErrWouldDeadlock, func(e *env) (err error) {
			c := e.engine()
			require.NoError(e.t, c.Enter(true))
			defer c.Leave()
			require.NoError(e.t, c.Callback(func(*registry.Window) error {
				require.True(e.t, c.Inside())
				err = c.Enter(false)
				return nil
			}))
			return err
		}},
		{"Get of a component that is not there", registry.ErrNoComponent, func(e *env) error {
			return in(e, func(w *registry.Window) error { _, err := registry.Get[title](w, e.h); return err })
		}},
		{"Set of a component that is not there", registry.ErrNoComponent, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.Set(w, e.h, title{}) })
		}},
		{"Get of a split component", registry.ErrSplit, func(e *env) error {
			return in(e, func(w *registry.Window) error {
				h, err := e.scouts.Spawn(w, scout{})
				require.NoError(e.t, err)
				_, err = registry.Get[spot](w, h)
				return err
			})
		}},
		{"SetParent below oneself", registry.ErrCycle, func(e *env) error {
			return in(e, func(w *registry.Window) error { return registry.SetParent(w, e.h, e.h) })
		}},
		{"an observer that exits", registry.ErrGoexit, func(*env) error {
			return &registry.PanicError{Value: registry.ErrGoexit, Where: "observer"}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := &env{world: newWorld(t, registry.Config{MaxEntities: 100})}
			e.update(func(w *registry.Window) {
				e.h, e.dead = e.spawn(w), e.spawn(w)
				var err error
				e.net, err = w.AssignNet(e.h)
				require.NoError(t, err)
				e.deadNet, err = w.AssignNet(e.dead)
				require.NoError(t, err)
				require.NoError(t, w.Destroy(e.dead))
				w.ProcessDeferredDestructions()
			})
			var err error
			e.reserved, err = e.r.Reserve()
			require.NoError(t, err)
			require.ErrorIs(t, c.call(e), c.want)
			require.True(t, e.r.Alive(e.h))
			require.NoError(t, e.r.Verify())
		})
	}
	// ErrDeterministic is defrag's to return; here it is only declared.
	require.Error(t, registry.ErrDeterministic)
}

func TestBadRegistrationsAreRefusedByName(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = registry.RegisterComponent[health](r)
	require.NoError(t, err)
	for name, register := range map[string]func() error{
		"unexported": func() error { _, err := registry.RegisterClass[unexported](r); return err },
		"interfaced": func() error { _, err := registry.RegisterClass[interfaced](r); return err },
		"doubled":    func() error { _, err := registry.RegisterClass[doubled](r); return err },
		"withBrand":  func() error { _, err := registry.RegisterClass[withBrand](r); return err },
		"nothing":    func() error { _, err := registry.RegisterClass[nothing](r); return err },
		"int":        func() error { _, err := registry.RegisterClass[int](r); return err },
		"oneMore":    func() error { _, err := registry.RegisterClass[oneMore](r, registry.SlotsPerChunk(63)); return err },
		"error":      func() error { _, err := registry.RegisterComponent[error](r); return err },
		"string":     func() error { _, err := registry.RegisterComponent[string](r, registry.Split()); return err },
		"extraTwo":   func() error { _, err := registry.RegisterComponent[extraTwo](r, registry.InTier(9)); return err },
	} {
		require.ErrorContains(t, register(), name)
	}
	require.Equal(t, 1, r.Schema().Len())
	_, known := registry.ClassIndex[unexported](r)
	require.False(t, known)
	// The names are free: what was refused left nothing behind.
	c, err := registry.RegisterClass[oneMore](r, registry.SlotsPerChunk(64), registry.Cosmetic(), registry.Named("one"))
	require.NoError(t, err)
	require.Equal(t, "one", c.Name())
	i, known := registry.ClassIndex[oneMore](r)
	require.True(t, known)
	require.Zero(t, i)
	_, ok := r.Schema().ByType(reflect.TypeFor[brandNew]())
	require.False(t, ok)
}

func TestTokensOfAnotherRegistryAreRefused(t *testing.T) {
	a, b := newWorld(t, registry.Config{}), newWorld(t, registry.Config{})
	h := a.spawnOne()
	cells, err := registry.NewCells[health](a.r)
	require.NoError(t, err)
	b.update(func(w *registry.Window) {
		_, err := a.soldiers.Spawn(w, soldier{})
		require.Error(t, err)
		_, err = a.soldiers.SpawnBatch(w, 3, nil)
		require.Error(t, err)
		require.Error(t, a.soldiers.SpawnReserved(w, h, soldier{}))
		require.False(t, cells.Set(w, h, health{}))
	})
	require.NoError(t, b.engine().frame(nil, system{"s", func(f *registry.Frame) {
		_, err := a.soldiers.SpawnLater(f, soldier{})
		require.Error(t, err)
	}}))
	require.Equal(t, 1, a.r.Stats().Live)
	require.Zero(t, b.r.Stats().Live)
}

func TestPanicErrorSaysWhere(t *testing.T) {
	p := &registry.PanicError{Value: errPlanned, Where: "the mover", Frame: 7}
	require.ErrorIs(t, p, errPlanned)
	require.EqualError(t, p, "registry: the mover panicked in frame 7: planned failure")
	p = &registry.PanicError{Value: registry.ErrGoexit, Where: "the mover", Frame: 7}
	require.EqualError(t, p, "registry: the mover called runtime.Goexit in frame 7")
	p = &registry.PanicError{Value: "text"}
	require.NoError(t, p.Unwrap())
	require.Panics(t, func() { _ = newWorld(t, registry.Config{}).r.Update(nil) })
}

// A goroutine that exits inside Update leaves a registry that works.
func TestGoexitInAnObserverIsSurvived(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var second []registry.Event
	exited := false
	k.observe(registry.Spawned, func(*registry.Frame, []registry.Event) {
		if !exited {
			exited = true
			runtime.Goexit()
		}
	})
	k.observe(registry.Spawned, func(_ *registry.Frame, es []registry.Event) { second = append(second, es...) })
	done := make(chan bool)
	var h handles.Local
	go func() {
		defer close(done)
		_ = k.r.Update(func(w *registry.Window) error {
			var err error
			h, err = k.soldiers.Spawn(w, soldier{})
			return err
		})
	}()
	<-done
	require.True(t, k.r.Alive(h))
	require.NoError(t, k.r.Verify())
	k.update(func(w *registry.Window) {
		func() { // a loop in which somebody is born and dies: nobody sees it
			registry.Iterate(w)
			defer registry.Finish(w)
			require.NoError(t, w.Destroy(k.spawn(w)))
		}()
		count, _ := liveIn(w, 0)
		require.Equal(t, 1, count)
	})
	require.Equal(t, h, second[0].Entity, "the delivery went on behind the observer that exited")
}
