package logic_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// A follower hears of what a rollback has put back, and of frames that are simulated again: in a system, which runs in them,
// between frames, and on snapshots that are far apart.
func TestAFollowerMissesNothingOfARollback(t *testing.T) {
	type seen struct {
		ID   []handles.Local
		Spot []spot `ecs:"read"`
	}
	r, err := registry.New(registry.Config{TemporalFrames: 16})
	require.NoError(t, err)
	temporal[spot](t, r)
	walkers, err := registry.RegisterClass[walker](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{Workers: 1, OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	defer e.Stop()
	q, err := views.NewQuery[seen](r)
	require.NoError(t, err)
	var hs []handles.Local
	require.NoError(t, e.Defer(func(w *registry.Window) (err error) {
		hs, err = walkers.SpawnBatch(w, 640, nil)
		return err
	}))
	type mirror struct {
		*views.Follower[seen]
		known map[handles.Local]spot
	}
	mirrors := [3]mirror{}
	for i := range mirrors {
		mirrors[i] = mirror{q.Follow(), map[handles.Local]spot{}}
	}
	shown, looks := 0, 0
	look := func(m mirror, a registry.Access) {
		looks++
		for run := range m.Runs(a) {
			shown += len(run.ID)
			for i, h := range run.ID {
				m.known[h] = run.Spot[i]
			}
		}
		for run := range q.Runs(a) {
			for i, h := range run.ID {
				require.Equal(t, run.Spot[i], m.known[h], "frame %d: %v", a.FrameNumber(), h)
			}
		}
	}
	_, err = e.AddSystem(logic.Physics, "move", func(f *logic.Frame) {
		if in, ok := f.Input(0); ok {
			require.NoError(t, registry.Set(f, hs[int(in[0])*2], spot{float64(f.FrameNumber()), float64(in[1])}))
		}
	})
	require.NoError(t, err)
	_, err = e.AddSystem(logic.Late, "send", func(f *logic.Frame) { look(mirrors[0], f) })
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		if now := e.FrameNumber(); rnd.IntN(3) > 0 { // for one to come, or one that has been
			frame := max(now+2-min(uint64(rnd.IntN(9)), now), 2)
			require.NoError(t, e.Input(0, frame, []byte{byte(rnd.IntN(256)), byte(rnd.IntN(256))}))
		}
		require.NoError(t, e.Step())
		if rnd.IntN(4) == 0 {
			require.NoError(t, r.Update(func(w *registry.Window) error {
				look(mirrors[1], w)
				return nil
			}))
		}
		if rnd.IntN(4) == 0 {
			require.NoError(t, r.Read(func(s *registry.Snapshot) error {
				look(mirrors[2], s)
				return nil
			}))
		}
	}
	require.Positive(t, e.Stats().Rollbacks)
	require.Less(t, shown, looks*320, "it looks at what has changed, not at everything")
}
