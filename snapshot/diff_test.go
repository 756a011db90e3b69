package snapshot

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestDifferencesReadWell(t *testing.T) {
	type level uint8
	quiet, signaling := math.Float32frombits(0x7fc00000), math.Float32frombits(0x7fc00001)
	arrow := Difference{Archetype: "Arrow[Position Velocity]", Slot: 17, Entity: handles.NewLocal(5, 1)}
	with := func(component, field string, a, b any) Difference {
		d := arrow
		d.Component, d.Field, d.A, d.B = component, field, a, b
		return d
	}
	for want, d := range map[string]Difference{
		"no difference": {},
		"Arrow[Position Velocity] slot 17 (L5.1): Position.X: 1.5 / 1.25":                                          with("Position", "X", 1.5, 1.25),
		"Arrow[Position Velocity] slot 17 (L5.1): Velocity: 1 / 2":                                                 with("Velocity", "", level(1), level(2)),
		"Arrow[Position Velocity] slot 17 (L5.1): Velocity[3].Y: true / false":                                     with("Velocity", "[3].Y", true, false),
		"Arrow[Position Velocity] slot 17 (L5.1): present / absent":                                                with("", "", "present", "absent"),
		"Arrow[Position Velocity] slot 17 (L5.1): active: true / false":                                            with("", "active", true, false),
		"Arrow[Position Velocity] slot 17 (L5.1): handle: L5.1 / L6.2":                                             with("", "handle", handles.NewLocal(5, 1), handles.NewLocal(6, 2)),
		"Arrow[Position Velocity] slot 17 (L5.1): Position.X: NaN (0x7fc00000) / NaN (0x7fc00001)":                 with("Position", "X", quiet, signaling),
		"Arrow[Position Velocity] slot 17 (L5.1): Position.X: NaN (0x7ff8000000000001) / NaN (0x7ff8000000000002)": with("Position", "X", math.NaN(), math.Float64frombits(0x7ff8000000000002)),
		"Arrow[Position Velocity] slot 17 (L5.1): Velocity.X: 0 / -0":                                              with("Velocity", "X", 0.0, math.Copysign(0, -1)),
		"Arrow[P]: P: Cold struct{} / Cold uint8":                                                                  {Archetype: "Arrow[P]", Component: "P", A: "Cold struct{}", B: "Cold uint8"},
	} {
		require.Equal(t, want, d.String())
	}
}

// twoRealms are registries with the same entities.
func twoRealms(t *testing.T) (a, b *realm, hs []handles.Local) {
	a, b = newRealm(t, realmConfig{slots: 64}), newRealm(t, realmConfig{backward: true})
	hs = a.spawnArrows(200)
	require.Equal(t, hs, b.spawnArrows(200))
	return a, b, hs
}

// differ compares what the windows of two realms have after steps in one of them.
func differ(t *testing.T, a, b *realm, steps func(w *registry.Window)) (d Difference) {
	t.Helper()
	a.update(func(v *registry.Window) {
		b.update(func(w *registry.Window) {
			none, different := Diff(v, w)
			require.False(t, different)
			require.Zero(t, none)
			require.Equal(t, hashOf(t, v), hashOf(t, w))
			steps(w)
			d, different = Diff(v, w)
			require.True(t, different)
			require.NotEqual(t, hashOf(t, v), hashOf(t, w))
			back, different := Diff(w, v)
			require.True(t, different)
			same := d
			same.A, same.B, same.Entity = d.B, d.A, back.Entity
			require.Equal(t, same.String(), back.String())
		})
	})
	return d
}

func TestDiffNamesTheFirst(t *testing.T) {
	const arrows = "Arrow[Armor Bag Feeling Position Velocity]"
	for name, c := range map[string]struct {
		steps func(m *realm, w *registry.Window, hs []handles.Local)
		want  string
	}{
		"value": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			for _, h := range hs[130:] {
				require.NoError(t, registry.Set(w, h, position{9, 9, 9}))
				require.NoError(t, registry.Set(w, h, velocity{9, 9}))
			}
		}, arrows + " slot 130 (L131.1): Position.X: 130 / 9"},
		"field of a split component": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			require.NoError(t, registry.Set(w, hs[7], velocity{1, 0}))
		}, arrows + " slot 7 (L8.1): Velocity.Y: -0 / 0"},
		"deep inside": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			p, err := registry.Get[armor](w, hs[0])
			require.NoError(t, err)
			p.D[2].F = 1
			p.g = 5
		}, arrows + " slot 0 (L1.1): Armor.D[2].F: 0 / 1"},
		"inactive": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			require.NoError(t, registry.SetActive(w, hs[64], false))
			require.NoError(t, registry.Set(w, hs[64], position{}))
		}, arrows + " slot 64 (L65.1): active: true / false"},
		"dead": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			require.NoError(t, w.Destroy(hs[70]))
			require.NoError(t, registry.Set(w, hs[71], position{}))
		}, arrows + " slot 70 (L71.1): present / absent"},
		"the last block": {func(_ *realm, w *registry.Window, hs []handles.Local) {
			w.DestroyBatch(hs[192:])
		}, arrows + " slot 192 (L193.1): present / absent"},
		"an archetype more, before": {func(m *realm, w *registry.Window, hs []handles.Local) {
			require.NoError(t, registry.Add(w, hs[199], frozen{}))
		}, "Arrow[Armor Bag Feeling Frozen Position Velocity] slot 0 (L200.1): absent / present"},
		"an archetype more, behind": {func(m *realm, w *registry.Window, hs []handles.Local) {
			_, err := m.ghosts.Spawn(w, ghost{})
			require.NoError(t, err)
		}, "Ghost[Feeling] slot 0 (L201.1): absent / present"},
	} {
		a, b, hs := twoRealms(t)
		d := differ(t, a, b, func(w *registry.Window) { c.steps(b, w, hs) })
		require.Equal(t, c.want, d.String(), name)
	}
}

func TestDiffNamesAnotherHandle(t *testing.T) {
	a, b := newRealm(t, realmConfig{}), newRealm(t, realmConfig{})
	for _, m := range []*realm{a, b} {
		m.update(func(w *registry.Window) {
			h, err := m.ghosts.Spawn(w, ghost{})
			require.NoError(t, err)
			if m == b {
				require.NoError(t, w.Destroy(h))
				w.ProcessDeferredDestructions()
				_, err = m.ghosts.Spawn(w, ghost{})
				require.NoError(t, err)
			}
		})
	}
	a.update(func(v *registry.Window) {
		b.update(func(w *registry.Window) {
			d, differ := Diff(v, w)
			require.True(t, differ)
			require.Equal(t, "Ghost[Feeling] slot 0 (L1.1): handle: L1.1 / L2.1", d.String())
		})
	})
}

func TestDiffNamesAnotherLayout(t *testing.T) {
	type thing struct{ Position position }
	var rs [2]*registry.Registry
	for i := range rs {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		opts := []registry.ComponentOption{registry.InTier(archetype.Temporal)}
		if i == 1 {
			opts = append(opts, registry.Split())
		}
		require.NoError(t, component[position](r, opts...))
		things, err := registry.RegisterClass[thing](r)
		require.NoError(t, err)
		require.NoError(t, r.Update(func(w *registry.Window) error {
			_, err := things.Spawn(w, thing{})
			return err
		}))
		rs[i] = r
	}
	require.NoError(t, rs[0].Update(func(v *registry.Window) error {
		return rs[1].Update(func(w *registry.Window) error {
			d, differ := Diff(v, w)
			require.True(t, differ)
			require.Equal(t, "snapshot.thing[snapshot.position]: snapshot.position: Temporal struct{X float32; Y float32; Z float32} / "+
				"Temporal split struct{X float32; Y float32; Z float32}", d.String())
			require.NotEqual(t, hashOf(t, v), hashOf(t, w))
			return nil
		})
	}))
}

func TestDiffKeepsTheBitsOfNaNs(t *testing.T) {
	for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xffffffff} {
		a, b, hs := twoRealms(t)
		d := differ(t, a, b, func(w *registry.Window) {
			p, err := registry.Get[armor](w, hs[3])
			require.NoError(t, err)
			p.g = complex(math.Float32frombits(bits), 1)
		})
		require.Equal(t, "Armor", d.Component)
		require.Equal(t, "g.real", d.Field)
		require.Equal(t, bits, math.Float32bits(d.B.(float32)))
	}
}
