package logic_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// A SyncTest simulates every frame again, and the journal has each of them once.
func TestAJournalOfASyncTestHasEachFrameOnce(t *testing.T) {
	c := theatreConfigs["with a ring"]
	dir := t.TempDir()
	w := stageOf(t, c)
	var err error
	w.e, err = logic.New(w.r, logic.Config{Workers: 2, SyncTest: 3, OnError: func(error) {}})
	require.NoError(t, err)
	require.NoError(t, w.e.Journal(dir))
	w.direct()
	rnd := rand.New(rand.NewPCG(3, 3))
	var known []handles.Local
	for n := range uint64(60) {
		require.NoError(t, w.e.Input(0, n+1, []byte{byte(n * 7)}))
		w.outside(rnd, &known)
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Stop())
	var frames []uint64
	again, frame, err := replayed(t, c, os.DirFS(dir), logic.WithHashes(func(frame, _ uint64) { frames = append(frames, frame) }))
	require.NoError(t, err)
	require.EqualValues(t, 60, frame)
	require.Len(t, frames, 60)
	_, want := w.living()
	_, got := again.living()
	require.Equal(t, want, got)
}

// What systems panicked with when it was recorded they panic with again, and who asks hears of it.
func TestAReplayTellsErrorsToWhoAsks(t *testing.T) {
	errPlanned := errors.New("planned")
	open := func(told *[]error) (*registry.Registry, func(*logic.Engine) error) {
		r, err := registry.New(registry.Config{Deterministic: true})
		require.NoError(t, err)
		return r, func(e *logic.Engine) error {
			_, err := e.AddSystem(logic.Physics, "fails", func(f *logic.Frame) {
				if f.FrameNumber()%2 == 0 {
					panic(errPlanned)
				}
			})
			return err
		}
	}
	var first, second []error
	r, systems := open(&first)
	e, err := logic.New(r, logic.Config{OnError: func(err error) { first = append(first, err) }})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, e.Journal(dir))
	require.NoError(t, systems(e))
	for range 6 {
		_ = e.Step()
	}
	require.NoError(t, e.Stop())
	r, systems = open(&second)
	frame, err := logic.Replay(r, os.DirFS(dir), logic.WithSystems(systems), logic.WithErrors(func(err error) { second = append(second, err) }))
	require.NoError(t, err)
	require.EqualValues(t, 6, frame)
	require.Len(t, first, 3)
	require.Len(t, second, 3)
	for i := range first {
		require.ErrorIs(t, second[i], errPlanned)
		require.Equal(t, first[i].Error(), second[i].Error())
	}
}

// A journal begins with a state that it has words for.
func TestWhatAJournalDoesNotBeginWith(t *testing.T) {
	open := func() (*registry.Registry, *registry.Class[walker], *registry.Class[drone]) {
		r, err := registry.New(registry.Config{Deterministic: true})
		require.NoError(t, err)
		for _, register := range []func(testing.TB, *registry.Registry){temporal[spot], temporal[pacing], temporal[own]} {
			register(t, r)
		}
		walkers, err := registry.RegisterClass[walker](r)
		require.NoError(t, err)
		drones, err := registry.RegisterClass[drone](r, registry.Cosmetic())
		require.NoError(t, err)
		return r, walkers, drones
	}
	t.Run("entities of a cosmetic class", func(t *testing.T) {
		r, _, drones := open()
		e, err := logic.New(r, logic.Config{})
		require.NoError(t, err)
		require.NoError(t, r.Update(func(w *registry.Window) error {
			_, err := drones.Spawn(w, drone{})
			return err
		}))
		dir := t.TempDir()
		require.ErrorContains(t, e.Journal(dir), "cosmetic")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
		require.NoError(t, e.Step(), "it goes on")
		require.NoError(t, e.Stop())
	})
	for _, wishes := range []int{3, 1000} {
		r, walkers, _ := open()
		e, err := logic.New(r, logic.Config{})
		require.NoError(t, err)
		births := 0
		_, err = r.Observe(registry.Spawned, func(f *registry.Frame, _ []registry.Event) {
			if births++; births <= wishes {
				_, _ = walkers.SpawnLater(f, walker{})
			}
		})
		require.NoError(t, err)
		require.NoError(t, r.Update(func(w *registry.Window) error {
			_, err := walkers.Spawn(w, walker{})
			return err
		}))
		err = e.Journal(t.TempDir())
		if wishes < 16 {
			require.NoError(t, err, "observers come to an end")
		} else {
			require.ErrorIs(t, err, registry.ErrPutOff, "they do not")
		}
		require.Less(t, births, 20)
		require.NoError(t, e.Stop())
	}
}
