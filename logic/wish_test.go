package logic_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestWishesAreForgottenThoughTheLastOneExits(t *testing.T) {
	w := newWorld(t)
	var held weak.Pointer[[1 << 16]byte]
	granted := 0
	_, err := w.e.AddSystem(logic.Late, "wishes", func(f *logic.Frame) {
		if f.FrameNumber() > 1 {
			return
		}
		big := new([1 << 16]byte)
		held = weak.Make(big)
		f.Defer(func(*registry.Window) error { big[0]++; granted++; return nil })
		f.Defer(func(*registry.Window) error { granted++; runtime.Goexit(); return nil })
	})
	require.NoError(t, err)
	w.step()
	runtime.GC()
	require.True(t, held.Value() != nil, "the wish holds it")
	for range 3 {
		w.step()
	}
	require.Equal(t, 2, granted)
	runtime.GC()
	require.True(t, held.Value() == nil, "the closure of a granted wish is kept")
}

// Above 131,072 entities Logic keeps the room of those that die for those that it makes.
func TestASystemOfAFullRegistryReplacesWhatItDestroyed(t *testing.T) {
	const full, dead = 1<<17 + 1, 5000
	w := newWorldIn(t, registry.Config{MaxEntities: full})
	var hs []handles.Local
	w.update(func(win *registry.Window) (err error) {
		hs, err = w.class.SpawnBatch(win, full, nil)
		return err
	})
	refused := 0
	_, err := w.e.AddSystem(logic.Physics, "replaces", func(f *logic.Frame) {
		if f.FrameNumber() > 1 {
			return
		}
		_, err := w.class.SpawnLater(f.Frame, thing{})
		assert.ErrorIs(t, err, registry.ErrExhausted)
		for _, n := range []int{1, dead} {
			for _, h := range hs[:n] {
				assert.NoError(t, f.Destroy(h))
			}
			hs = hs[n:]
			for range n {
				if _, err := w.class.SpawnLater(f.Frame, thing{}); err != nil {
					refused++
				}
			}
		}
		_, err = w.class.SpawnLater(f.Frame, thing{})
		assert.ErrorIs(t, err, registry.ErrExhausted)
	})
	require.NoError(t, err)
	w.step()
	require.Zero(t, refused)
	w.step()
	require.Equal(t, full, w.r.Stats().Live)
}

func TestSpawnLaterWaitsForAConfirmWhenTooManyIndicesArePending(t *testing.T) {
	const most = 8
	w := newWorldIn(t, registry.Config{MaxEntities: most}, func(c *logic.Config) { c.LocalWindow = -1 })
	var last error
	_, err := w.e.AddSystem(logic.Physics, "churns", func(f *logic.Frame) {
		var h handles.Local
		if h, last = w.class.SpawnLater(f.Frame, thing{}); last == nil {
			assert.NoError(t, f.Destroy(h))
		}
	})
	require.NoError(t, err)
	for range 5 * most {
		w.step()
	}
	require.ErrorIs(t, last, registry.ErrExhausted)
	require.Equal(t, most+1, w.r.Stats().Local.Pending)
	w.update(func(win *registry.Window) error { win.ConfirmLocalRecycles(); return nil })
	w.step()
	require.NoError(t, last)
}
