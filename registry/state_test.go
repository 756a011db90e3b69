package registry_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// saved is a state with the cells that go with it.
type saved struct {
	state *registry.State
	cells [][]any // by archetype and component: a slice of the values of the living
}

func capture(t require.TestingT, r *registry.Registry) (s saved) {
	require.NoError(t, r.Update(func(w *registry.Window) error {
		s = captureIn(t, w)
		return nil
	}))
	return s
}

func captureIn(t require.TestingT, w *registry.Window) (s saved) {
	state, archetypes, err := registry.CaptureState(w)
	require.NoError(t, err)
	require.Len(t, archetypes, len(state.Stores))
	s.state = state
	for i, a := range archetypes {
		var columns []any
		for _, comp := range a.Components() {
			values := reflect.MakeSlice(reflect.SliceOf(comp.Type), 0, 0)
			for c, ch := range a.Chunks() {
				for _, slot := range ones(state.Stores[i].LiveIn(c)) {
					v := reflect.New(comp.Type)
					ch.LoadComponent(comp, slot, v)
					values = reflect.Append(values, v.Elem())
				}
			}
			columns = append(columns, values.Interface())
		}
		s.cells = append(s.cells, columns)
	}
	return s
}

func ones(words []uint64) (slots []uint32) {
	for slot := range uint32(len(words) * 64) {
		if words[slot/64]>>(slot%64)&1 != 0 {
			slots = append(slots, slot)
		}
	}
	return slots
}

// into puts a state into a registry.
func (s saved) into(r *registry.Registry) error {
	return r.Update(func(w *registry.Window) error {
		p, err := registry.PrepareRestore(w, s.state)
		if err != nil {
			return err
		}
		return p.Run(s.fill)
	})
}

func (s saved) fill(archetypes []*archetype.Archetype) error {
	for i, a := range archetypes {
		for k, comp := range a.Components() {
			n := 0
			for c, ch := range a.Chunks() {
				for _, slot := range ones(s.state.Stores[i].LiveIn(c)) {
					ch.StoreComponent(comp, slot, reflect.ValueOf(s.cells[i][k]).Index(n).Addr())
					n++
				}
			}
		}
	}
	return nil
}

// clone is a copy that shares nothing with the state.
func clone(s *registry.State) *registry.State {
	c := deepCopy(reflect.ValueOf(s)).Interface().(*registry.State)
	return c
}

func deepCopy(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(v.Type().Elem()))
		to.Elem().Set(deepCopy(v.Elem()))
	case reflect.Slice:
		if v.IsNil() {
			return to
		}
		to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			to.Index(i).Set(deepCopy(v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			to.Field(i).Set(deepCopy(v.Field(i)))
		}
	default:
		to.Set(v)
	}
	return to
}

// step does one of the things that a machine does.
func (k *machine) step(t *rapid.T) {
	switch rapid.SampledFrom([]string{"update", "update", "update", "reserve", "process", "confirm"}).Draw(t, "step") {
	case "update":
		k.update(t)
	case "reserve":
		if h, err := k.r.Reserve(); err == nil {
			k.born(h, life{reserved: true})
		}
	case "process":
		require.NoError(t, k.r.Update(func(w *registry.Window) error {
			w.ProcessDeferredDestructions()
			return nil
		}))
		k.m.pending += k.m.dying
		k.m.netPend += k.m.dyingN
		k.m.dying, k.m.dyingN = 0, 0
	case "confirm":
		require.NoError(t, k.r.Update(func(w *registry.Window) error {
			w.ConfirmLocalRecycles()
			w.ConfirmNetRecycles()
			return nil
		}))
		k.m.free += k.m.pending
		k.m.netFree += k.m.netPend
		k.m.pending, k.m.netPend = 0, 0
	}
}

func TestARestoredRegistryIsTheOneThatWasSaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := registry.Config{MaxEntities: 300, Owner: 3, Deterministic: rapid.Bool().Draw(t, "deterministic")}
		k := newMachine(t, c)
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				k.step(t)
			}
			var s saved
			require.NoError(t, k.r.Update(func(w *registry.Window) error {
				for range rapid.IntRange(0, 3).Draw(t, "ops") { // and not committed yet
					k.inWindow(t, w)
				}
				for range rapid.IntRange(0, 3).Draw(t, "killed") { // and seen by nobody yet
					h := k.pick(t)
					if _, alive := k.m.alive[h]; alive { // a child of one that was killed dies with it, when that is seen
						require.NoError(t, k.r.Destroy(h))
						k.m.kill(h)
					}
				}
				s = captureIn(t, w)
				return nil
			}))
			want := clone(s.state)
			again := newMachine(t, c)
			again.m, again.all = k.m.clone(), slices.Clone(k.all)
			require.NoError(t, again.r.Update(func(w *registry.Window) error {
				p, err := registry.PrepareRestore(w, s.state)
				require.NoError(t, err)
				require.NoError(t, p.Run(s.fill))
				require.NoError(t, again.r.Verify())
				got := captureIn(t, w)
				require.Equal(t, want, got.state)
				require.Equal(t, s.cells, got.cells)
				return nil
			}))
			nothing := func(*registry.Window) error { return nil }
			require.NoError(t, k.r.Update(nothing)) // who was destroyed is seen
			require.NoError(t, again.r.Update(nothing))
			again.agree(t)
			stats, now := k.r.Stats(), again.r.Stats()
			stats.Archetypes, now.Archetypes = nil, nil // without chunks, or with other memory
			require.Equal(t, stats, now)
			k = again
		}
	})
}
