package stress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

// What one side does and the other is not told is seen.
func TestCompareSeesEveryDifference(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		do   func(k *machine, w *registry.Window, h handles.Local) error
	}{
		"nothing": {"", func(*machine, *registry.Window, handles.Local) error { return nil }},
		"somebody who is not known": {"2 entities are stored, and 1 live", func(k *machine, w *registry.Window, _ handles.Local) error {
			_, err := k.pieces.Spawn(w, piece{})
			return err
		}},
		"somebody who is dead": {"Alive is false, and should be true", func(_ *machine, w *registry.Window, h handles.Local) error { return w.Destroy(h) }},
		"somebody who is not dead": {"Alive is true, and should be false", func(k *machine, _ *registry.Window, h handles.Local) error {
			return k.m.Destroy(h)
		}},
		"inactive": {"Active is false, and should be true", func(_ *machine, w *registry.Window, h handles.Local) error {
			return registry.SetActive(w, h, false)
		}},
		"a value": {"stress_test.place is {7 0}, and should be {1 2}", func(_ *machine, w *registry.Window, h handles.Local) error {
			return registry.Set(w, h, place{X: 7})
		}},
		"a component too many": {"stress_test.frozen: stress: the answer was <nil>", func(_ *machine, w *registry.Window, h handles.Local) error {
			return registry.Add(w, h, frozen{})
		}},
		"a component too few": {"stress_test.title: registry: entity has no such component", func(_ *machine, w *registry.Window, h handles.Local) error {
			return registry.Remove[title](w, h)
		}},
		"a net handle": {"NetOf is N0:1.1, and should be N0:0.0", func(_ *machine, w *registry.Window, h handles.Local) error {
			_, err := w.AssignNet(h)
			return err
		}},
		"no net handle": {"NetOf is N0:0.0, and should be N0:9.1", func(k *machine, _ *registry.Window, h handles.Local) error {
			return k.m.Named(h, handles.NewNet(0, 9, 1))
		}},
		"another record": {"has the record G9.9, and now G1.1", func(k *machine, _ *registry.Window, h handles.Local) error {
			return k.m.Resolved(h, handles.NewGlobal(9, 9))
		}},
	} {
		k := newMachine(t, registry.Config{}, logic.Config{Workers: 1})
		var h handles.Local
		require.NoError(t, k.r.Update(func(w *registry.Window) (err error) {
			e := piece{Place: place{1, 2}, Title: title{"a"}}
			h, err = k.pieces.Spawn(w, e)
			require.NoError(t, k.m.Spawned(h, e))
			return err
		}))
		v, ok := stress.Value[place](k.m, h)
		require.True(t, ok)
		require.Equal(t, place{1, 2}, v)
		require.NoError(t, k.r.Update(func(w *registry.Window) error {
			require.NoError(t, c.do(k, w, h), name)
			require.NoError(t, stress.Distinct(w))
			if err := k.m.Compare(w); c.want == "" {
				assert.NoError(t, err, name)
			} else {
				assert.ErrorContains(t, err, c.want, name)
			}
			return nil
		}))
		require.NoError(t, k.e.Stop())
	}
}

func TestCompareStatsNamesTheCounter(t *testing.T) {
	m := stress.NewModel(registry.Config{})
	require.NoError(t, m.CompareStats(registry.Stats{}))
	require.NoError(t, m.Spawned(handles.NewLocal(1, 1), nil))
	err := m.CompareStats(registry.Stats{Live: 2})
	assert.ErrorContains(t, err, "Stats.Live is 2, and should be 1")
	assert.ErrorContains(t, err, "Stats.Local.Issued is 0, and should be 1")
}

func TestAHistoryThatNoOrderExplains(t *testing.T) {
	h := stress.NewHistory(2)
	one := handles.NewLocal(1, 1)
	add := func(c stress.Call, err error) { require.NoError(t, h.Add(c, err)) }
	add(stress.Call{Client: 0, What: stress.SpawnCall, Local: one, Begin: h.Now()}, nil)
	add(stress.Call{Client: 1, What: stress.AliveCall, Local: one, Begin: h.Now()}, nil)
	require.NoError(t, h.Check())
	add(stress.Call{Client: 0, What: stress.DestroyCall, Local: one, Begin: h.Now()}, nil)
	require.NoError(t, h.Check())
	<-time.After(time.Microsecond)
	add(stress.Call{Client: 1, What: stress.AliveCall, Local: one, Begin: h.Now()}, nil)
	err := h.Check()
	assert.ErrorContains(t, err, "no order explains the 4 calls")
	assert.ErrorContains(t, err, "1: Alive L1.1")
	assert.ErrorIs(t, h.Add(stress.Call{}, registry.ErrExhausted), registry.ErrExhausted, "not an answer")

	h = stress.NewHistory(1)
	add(stress.Call{What: stress.SpawnCall, Local: one}, nil)
	add(stress.Call{What: stress.SpawnCall, Local: handles.NewLocal(2, 1)}, nil)
	add(stress.Call{What: stress.AssignNetCall, Local: one, Net: handles.NewNet(0, 1, 1)}, nil)
	add(stress.Call{What: stress.AssignNetCall, Local: handles.NewLocal(2, 1), Net: handles.NewNet(0, 1, 1)}, nil)
	assert.ErrorContains(t, h.Check(), "were given the net handle N0:1.1")
}

type (
	mixed struct {
		A int8
		B uint16
		C float32
		D float64
		E complex64
		F bool
		G [2]struct{ H int64 }
	}
	kinds struct{ Mixed mixed }
)

func TestTheHashCoversEveryKindOfField(t *testing.T) {
	require.NoError(t, stress.HashCovers(func() (*registry.Registry, *registry.Class[kinds], error) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		_, err = registry.RegisterComponent[mixed](r, registry.InTier(archetype.Temporal))
		require.NoError(t, err)
		c, err := registry.RegisterClass[kinds](r)
		return r, c, err
	}, kinds{mixed{A: -1, C: 1.5, D: 2.5, F: true}}))
}
