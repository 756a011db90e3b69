package registry_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// What others see, or do, between two steps of the owner.

// beside has fn called again and again by another goroutine, until the returned function is.
func beside(fn func()) (end func()) {
	var done atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		for !done.Load() {
			fn()
		}
	})
	return func() {
		done.Store(true)
		other.Wait()
	}
}

func rounds(usual int) int {
	if testing.Short() {
		return usual / 10
	}
	return usual
}

// Names of slots go back to the others when a callback fails: who reserves one at once has room of his own, and gives it back.
func TestAReservationThatWasASlotsNameHasItsOwnRoom(t *testing.T) {
	for name, temporal := range map[string]int{"a pool taken back": 0, "a tenant taken back": 8} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, registry.Config{MaxEntities: 1024, TemporalFrames: temporal})
			var b *registry.Block
			if temporal > 0 {
				k.update(func(w *registry.Window) { b = k.pool(w, 64) })
			}
			end := beside(func() {
				if h, err := k.r.Reserve(); err == nil {
					_ = k.r.Destroy(h)
				}
			})
			for range rounds(500) {
				k.fails(func(w *registry.Window) {
					if temporal == 0 {
						_, _ = registry.NewBlock(w, k.soldiers, "", 64, &soldier{}) // no indices in a row, perhaps
						return
					}
					for range 64 {
						_, err := registry.SpawnIn(w, k.soldiers, b, &soldier{})
						require.NoError(t, err)
					}
				})
				k.recycle()
			}
			end()
			k.recycle()
			require.NoError(t, k.r.Verify(), "room of a reservation is lost")
		})
	}
}

func (k *world) pool(w *registry.Window, n int) *registry.Block {
	k.t.Helper()
	b, err := registry.NewBlock(w, k.soldiers, "", n, &soldier{})
	require.NoError(k.t, err)
	return b
}
