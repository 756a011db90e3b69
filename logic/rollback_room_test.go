package logic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// In a full registry a Reserve waits until no frame that can be gone back to needs the room any more: whoever was born
// with it is born once more when that frame is simulated again.
func TestAReserveTakesNoRoomThatAFrameOfThePastNeeds(t *testing.T) {
	const ring, birth, death = 8, 2, 4
	for name, ends := range map[string]func(w *theatre, f *logic.Frame, h handles.Local){
		"a system": func(_ *theatre, f *logic.Frame, h handles.Local) { assert.NoError(t, f.Destroy(h)) },
		"a window": func(_ *theatre, f *logic.Frame, h handles.Local) {
			f.Defer(func(win *registry.Window) error { return win.Destroy(h) })
		},
		"somebody outside": func(w *theatre, _ *logic.Frame, h handles.Local) {
			if w.e.FrameNumber() == death && w.births { // the first time
				w.births = false
				assert.NoError(t, w.r.Destroy(h))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := stageOf(t, registry.Config{MaxEntities: 1, TemporalFrames: ring})
			w.births = true
			var err error
			w.e, err = logic.New(w.r, logic.Config{OnError: func(err error) { t.Error(err) }})
			require.NoError(t, err)
			defer func() { require.NoError(t, w.e.Stop()) }()
			var h handles.Local
			born := 0
			_, err = w.e.AddSystem(logic.Physics, "fate", func(f *logic.Frame) {
				switch f.FrameNumber() {
				case birth:
					var err error
					h, err = w.walkers.SpawnLater(f.Frame, walker{})
					assert.NoError(t, err)
					born++
				case death:
					ends(w, f, h)
				}
			})
			require.NoError(t, err)
			reserved := uint64(0)
			for frame := uint64(1); frame < 4*ring; frame++ {
				require.NoError(t, w.e.Step())
				if frame < birth {
					continue
				}
				if _, err := w.r.Reserve(); err == nil {
					require.Zero(t, reserved, "two places, of one")
					reserved = frame
				} else {
					require.ErrorIs(t, err, registry.ErrExhausted)
				}
				require.NoError(t, w.e.Rollback(frame-min(frame, ring-1)))
			}
			require.Equal(t, ring, born, "it is born as often as its frame is simulated")
			require.NotZero(t, reserved, "the room is never given back")
			require.Greater(t, reserved, uint64(death+ring-2))
			require.Less(t, reserved, uint64(death+ring+4))
			require.NoError(t, w.r.Verify())
		})
	}
}
