package registry_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
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
	for i, a := range archetypes[:len(s.cells)] { // without cells they are zero
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
			again.m, again.all, again.before = k.m.clone(), slices.Clone(k.all), maps.Clone(k.m.obits)
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

// numbers calls fn with every number in a state, and how it is reached.
func numbers(v reflect.Value, path string, fn func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		numbers(v.Elem(), path, fn)
	case reflect.Struct:
		for i := range v.NumField() {
			numbers(v.Field(i), path+"."+v.Type().Field(i).Name, fn)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			numbers(v.Index(i), fmt.Sprintf("%s[%d]", path, i), fn)
		}
	case reflect.String:
	default:
		fn(path, v)
	}
}

func TestNoNumberOfAStateIsBelieved(t *testing.T) {
	for _, c := range []registry.Config{{MaxEntities: 40}, {MaxEntities: 40, TemporalFrames: 8}} {
		k := newWorld(t, c)
		e := k.engine()
		var hs []handles.Local
		for round := range 3 {
			require.NoError(t, e.frame(func(w *registry.Window) error {
				for i := range 8 {
					h := k.spawn(w)
					hs = append(hs, h)
					if i > 1 {
						require.NoError(t, registry.SetParent(w, h, hs[len(hs)-2]))
					}
					_, err := w.AssignNet(h)
					require.NoError(t, err)
				}
				require.NoError(t, w.BindNet(k.spawn(w), handles.NewNet(7, uint32(round+1), 3)))
				require.NoError(t, registry.Add(w, hs[len(hs)-8], frozen{}))
				w.Named("a cause")
				require.NoError(t, w.Destroy(hs[len(hs)-3]))
				if round == 0 {
					w.ProcessDeferredDestructions()
					w.ConfirmLocalRecycles()
				}
				return nil
			}))
			require.Error(t, e.frame(func(w *registry.Window) error {
				_, err := w.AssignNet(k.spawn(w))
				require.NoError(t, err)
				return errPlanned
			}))
		}
		var s saved
		k.update(func(w *registry.Window) {
			require.NoError(t, k.r.Destroy(hs[len(hs)-8]))
			s = captureIn(t, w)
		})
		nothingIsBelieved(t, c, s.state)
	}
}

// nothingIsBelieved changes every number of a state, in a few ways: the result is refused, or one that may be.
func nothingIsBelieved(t *testing.T, c registry.Config, good *registry.State) {
	var paths []string
	numbers(reflect.ValueOf(good), "", func(path string, _ reflect.Value) { paths = append(paths, path) })
	tried, refused := 0, 0
	for i, path := range paths {
		if (racing || check.Enabled) && i%9 != 0 {
			continue
		}
		for _, how := range []int{0, 1, 2, 3} {
			bad := clone(good)
			at, changed := 0, true
			numbers(reflect.ValueOf(bad), "", func(_ string, v reflect.Value) {
				if at == i {
					changed = spoil(v, how)
				}
				at++
			})
			if !changed || strings.Contains(path, ".Live[") {
				continue // it is found from the rest
			}
			tried++
			other := newWorld(t, c)
			before := other.r.Stats()
			err := saved{state: bad}.into(other.r)
			require.NoError(t, other.r.Verify(), "%s, spoiled in way %d, after %v", path, how, err)
			if err != nil {
				refused++
				require.Equal(t, before, other.r.Stats(), path)
				continue
			}
			other.recycle() // what nobody can tell from the right one
			other.update(func(w *registry.Window) { _, _ = other.soldiers.Spawn(w, soldier{}) })
			require.NoError(t, other.r.Verify(), "%s, spoiled in way %d", path, how)
		}
	}
	require.Greater(t, refused, tried/2)
}

// spoil makes another number of it, and says whether it did.
func spoil(v reflect.Value, how int) bool {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
		return how == 0
	case reflect.Int:
		old := v.Int()
		v.SetInt([]int64{0, old + 1, old - 1, 1 << 40}[how])
		return v.Int() != old
	default:
		old := v.Uint()
		v.SetUint([]uint64{0, old + 1, old - 1, 1<<(v.Type().Bits()-1) | 1}[how])
		return v.Uint() != old
	}
}

func TestAStateGoesIntoAFreshRegistryOnly(t *testing.T) {
	k := newWorld(t, registry.Config{})
	k.spawnMany(3)
	s := capture(t, k.r)
	used := func(use func(k *world)) {
		t.Helper()
		other := newWorld(t, registry.Config{})
		use(other)
		require.ErrorIs(t, s.into(other.r), registry.ErrNotEmpty)
	}
	used(func(k *world) { k.spawnOne() })
	used(func(k *world) { _, err := k.r.Reserve(); require.NoError(t, err) })
	used(func(k *world) { k.spawnOne(); k.update(func(w *registry.Window) { require.NoError(t, w.Reset()) }) })
	used(func(k *world) { k.fails(func(w *registry.Window) { k.spawn(w) }) })

	other := newWorld(t, registry.Config{})
	other.update(func(w *registry.Window) {
		p, err := registry.PrepareRestore(w, s.state)
		require.NoError(t, err)
		_, err = other.r.Reserve() // after it was checked
		require.NoError(t, err)
		require.ErrorIs(t, p.Run(s.fill), registry.ErrNotEmpty)
	})
	var late *registry.Restoration
	other = newWorld(t, registry.Config{})
	other.update(func(w *registry.Window) {
		var err error
		late, err = registry.PrepareRestore(w, s.state)
		require.NoError(t, err)
	})
	require.ErrorIs(t, late.Run(s.fill), registry.ErrExpired)
	_, err := registry.PrepareRestore(nil, s.state)
	require.ErrorIs(t, err, registry.ErrExpired)
	_, _, err = registry.CaptureState(nil)
	require.ErrorIs(t, err, registry.ErrExpired)
}

func TestALoadedDeathHasItsObituary(t *testing.T) {
	k := newWorld(t, registry.Config{})
	h := k.spawnOne()
	var s saved
	k.update(func(w *registry.Window) {
		w.Named("the end")
		require.NoError(t, w.Destroy(h))
		s = captureIn(t, w)
	})
	other := newWorld(t, registry.Config{})
	told := 0
	for _, kind := range []registry.EventKind{registry.Spawned, registry.Destroyed} {
		_, err := other.r.Observe(kind, func(*registry.Frame, []registry.Event) { told++ })
		require.NoError(t, err)
	}
	require.NoError(t, s.into(other.r))
	o, ok := other.r.Obituary(h)
	require.True(t, ok)
	require.Equal(t, "the end", o.Cause)
	require.Zero(t, told, "no event tells of what is loaded")
}
