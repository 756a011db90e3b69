package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// named checks that h and n name each other.
func (k *world) named(h handles.Local, n handles.Net) {
	k.t.Helper()
	got, err := k.r.NetOf(h)
	require.NoError(k.t, err)
	require.Equal(k.t, n, got)
	who, err := k.r.ResolveNet(n)
	require.NoError(k.t, err)
	require.Equal(k.t, h, who)
}

// One message may say who died and who came instead.
func TestANewerNameBindsInTheWindowInWhichTheOldOneDied(t *testing.T) {
	older, newer := handles.NewNet(1, 7, 1), handles.NewNet(1, 7, 2)
	for name, died := range map[string]func(k *world, w *registry.Window, h handles.Local) error{
		"in the callback": func(_ *world, w *registry.Window, h handles.Local) error { return w.Destroy(h) },
		"from outside":    func(k *world, _ *registry.Window, h handles.Local) error { return k.r.Destroy(h) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, registry.Config{})
			h := k.spawnOne()
			k.update(func(w *registry.Window) { require.NoError(t, w.BindNet(h, older)) })
			var heir handles.Local
			k.update(func(w *registry.Window) {
				heir = k.spawn(w)
				require.ErrorIs(t, w.BindNet(heir, newer), registry.ErrStale, "the old one lives")
				require.NoError(t, died(k, w, h))
				require.NoError(t, w.BindNet(heir, newer))
				require.ErrorIs(t, w.BindNet(k.spawn(w), older), registry.ErrStale)
			})
			k.dead(h, older)
			k.named(heir, newer)
			k.recycle()
			k.named(heir, newer)
		})
	}
}

func TestABindThatReplacedTheDeadIsUndone(t *testing.T) {
	older, newer := handles.NewNet(1, 7, 1), handles.NewNet(1, 7, 2)
	k := newWorld(t, registry.Config{})
	h := k.spawnOne()
	k.update(func(w *registry.Window) { require.NoError(t, w.BindNet(h, older)) })
	before := k.r.Stats().Net
	replace := func(w *registry.Window) (heir handles.Local) {
		require.NoError(t, w.Destroy(h))
		heir = k.spawn(w)
		require.NoError(t, w.BindNet(heir, newer))
		return heir
	}
	k.fails(func(w *registry.Window) { replace(w) })
	require.NoError(t, k.r.Verify())
	k.named(h, older)
	require.False(t, k.r.AliveNet(newer))
	require.Equal(t, before, k.r.Stats().Net)
	k.recycle()
	k.named(h, older)
	var heir handles.Local
	k.update(func(w *registry.Window) { heir = replace(w) })
	k.named(heir, newer)
}
