package snapshot

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// makePools makes a pool of arrows, with 70 slots of which some are in use, and one of sparks.
func makePools(t *testing.T, m *realm) (arrows, sparks *registry.Block, used []handles.Local) {
	m.window(func(w *registry.Window) {
		initial := anArrow(7)
		var err error
		arrows, err = registry.NewBlock(w, m.arrows, "quiver", 70, &initial)
		require.NoError(t, err)
		sparks, err = registry.NewBlock(w, m.sparks, "", 65, &spark{})
		require.NoError(t, err)
		for i := range 68 {
			a := anArrow(100 + i)
			h, err := registry.SpawnIn(w, m.arrows, arrows, &a)
			require.NoError(t, err)
			used = append(used, h)
			_, err = registry.SpawnIn(w, m.sparks, sparks, nil)
			require.Equal(t, i >= 65, err != nil)
		}
		for i := 0; i < 68; i += 3 {
			require.NoError(t, arrows.Despawn(w, used[i]))
		}
		require.NoError(t, registry.Add(w, used[1], frozen{})) // who has moved out of its slot
		_, err = w.AssignNet(used[2])
		require.NoError(t, err)
		_, err = w.AssignNet(used[4])
		require.NoError(t, err)
		require.NoError(t, arrows.Despawn(w, used[4])) // whose net handle waits
	})
	require.NoError(t, m.r.Destroy(used[5]))
	return arrows, sparks, used
}

func TestPoolsAreSavedAndLoaded(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		a := newRealm(t, realmConfig{Config: c})
		arrows, sparks, used := makePools(t, a)
		saved := a.save()
		b := newRealm(t, realmConfig{Config: c})
		require.NoError(t, b.load(saved))
		require.NoError(t, b.r.Verify())
		require.True(t, bytes.Equal(saved, b.save()))

		var again, glow *registry.Block
		b.update(func(w *registry.Window) {
			again, glow = registry.Blocks(w)[0], registry.Blocks(w)[1]
			require.Equal(t, b.r.BlocksNamed("quiver"), []*registry.Block{again})
			require.Equal(t, arrows.Counts().InUse, again.Counts().InUse)
			for i := range 70 {
				require.Equal(t, arrows.Slot(i), again.Slot(i), "slot %d", i)
				require.Equal(t, arrows.Idle(i), again.Idle(i))
			}
			require.Equal(t, registry.BlockCounts{Free: 65}, glow.Counts(), "of a cosmetic pool everybody is gone")
			for i := range 65 {
				require.NotEqual(t, sparks.Slot(i), glow.Slot(i))
			}
		})
		for _, m := range []*realm{a, b} { // the two go on alike
			m.window(func(w *registry.Window) {
				block := registry.Blocks(w)[0]
				for _, h := range []handles.Local{used[1], used[2], used[7]} {
					require.NoError(t, block.Despawn(w, h))
				}
				h, err := registry.SpawnIn(w, m.arrows, block, nil)
				require.NoError(t, err)
				require.Equal(t, block.Slot(0), h)
				p, err := registry.Peek[velocity](w, h)
				require.NoError(t, err)
				require.Equal(t, anArrow(7).Velocity, p, "reset to what was initial at the save")
				_, err = w.AssignNet(h)
				require.NoError(t, err)
			})
			m.window(func(*registry.Window) {})
			require.NoError(t, m.r.Verify())
			m.update(func(w *registry.Window) { require.NoError(t, w.Reset()) })
			require.NoError(t, m.r.Verify())
		}
		require.Equal(t, 70, again.Counts().Free)
		require.Equal(t, arrows.Slot(3), again.Slot(3))
	}
}

func TestPoolsOfAClassHashApart(t *testing.T) {
	worlds := [2]*realm{newRealm(t, realmConfig{}), newRealm(t, realmConfig{})}
	for i, m := range worlds {
		m.window(func(w *registry.Window) {
			for k := range 2 {
				b, err := registry.NewBlock(w, m.arrows, "", 64, nil)
				require.NoError(t, err)
				if k == i { // the same arrow, in the first pool or in the second
					a := anArrow(1)
					_, err = registry.SpawnIn(w, m.arrows, b, &a)
					require.NoError(t, err)
				}
			}
		})
	}
	worlds[0].update(func(w *registry.Window) {
		worlds[1].update(func(v *registry.Window) {
			require.NotEqual(t, hashOf(t, w), hashOf(t, v))
			d, differ := Diff(w, v)
			require.True(t, differ)
			require.Contains(t, d.Archetype, "pool 1")
			require.Equal(t, "active", d.Field)
		})
	})
}
