package logic_test

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

type grain struct{ Weight weight }
type weight struct{ N int }

// scattered is a registry with n entities of which every tenth lives, each weighing its number.
func scattered(t *testing.T, n int, c registry.Config, opts ...registry.ClassOption) (*registry.Registry, []handles.Local) {
	t.Helper()
	r, err := registry.New(c)
	require.NoError(t, err)
	class, err := registry.RegisterClass[grain](r, opts...)
	require.NoError(t, err)
	var living []handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) error {
		hs, err := class.SpawnBatch(w, n, func(i int, g *grain) { g.Weight.N = i })
		for i, h := range hs {
			if i%10 == 9 {
				living = append(living, h)
			} else if err := w.Destroy(h); err != nil {
				return err
			}
		}
		w.ProcessDeferredDestructions()
		return err
	}))
	return r, living
}

func TestCompactionGoesOnWithinItsBudgetUntilNothingIsLeft(t *testing.T) {
	r, living := scattered(t, 20_000, registry.Config{})
	e, err := logic.New(r, logic.Config{Defrag: logic.Defrag{Moves: 150}})
	require.NoError(t, err)
	defer e.Stop()
	perFrame, total := 0, 0
	_, err = r.OnMove(func(ms []registry.Move) { perFrame += len(ms) })
	require.NoError(t, err)
	for range 40 {
		perFrame = 0
		require.NoError(t, e.Step())
		require.LessOrEqual(t, perFrame, 150)
		require.NoError(t, r.Verify())
		total += perFrame
	}
	require.Zero(t, perFrame, "nothing is left")
	require.Positive(t, total)
	require.Equal(t, 2, r.Stats().Chunks, "2000 entities in chunks of 1024")
	require.NoError(t, r.Update(func(w *registry.Window) error {
		for i, h := range living {
			v, err := registry.Peek[weight](w, h)
			require.NoError(t, err)
			require.Equal(t, 10*i+9, v.N)
		}
		return nil
	}))
}

func TestCompactionIsOffUnlessAskedFor(t *testing.T) {
	r, _ := scattered(t, 20_000, registry.Config{})
	e, err := logic.New(r, logic.Config{})
	require.NoError(t, err)
	defer e.Stop()
	before := r.Stats().Allocated
	for range 5 {
		require.NoError(t, e.Step())
	}
	require.Equal(t, before, r.Stats().Allocated)
}

func TestCompactionWaitsForItsThreshold(t *testing.T) {
	r, _ := scattered(t, 20_000, registry.Config{})
	e, err := logic.New(r, logic.Config{Defrag: logic.Defrag{Moves: 100, Above: 0.95}})
	require.NoError(t, err)
	defer e.Stop()
	before := r.Stats().Allocated
	for range 5 {
		require.NoError(t, e.Step())
	}
	require.Equal(t, before, r.Stats().Allocated, "nine tenths are free")
}

func TestCompactionIsRefusedWhereItWouldChangeWhatIsDeterministic(t *testing.T) {
	r, _ := scattered(t, 20_000, registry.Config{Deterministic: true})
	_, err := logic.New(r, logic.Config{Defrag: logic.Defrag{Moves: 100}})
	require.ErrorIs(t, err, registry.ErrDeterministic)
	e, err := logic.New(r, logic.Config{})
	require.NoError(t, err, "the registry was left free")
	require.NoError(t, e.Stop())

	r, _ = scattered(t, 20_000, registry.Config{Deterministic: true}, registry.Cosmetic())
	e, err = logic.New(r, logic.Config{Defrag: logic.Defrag{Moves: 100_000}})
	require.NoError(t, err)
	defer e.Stop()
	require.NoError(t, e.Step())
	require.Equal(t, 2, r.Stats().Chunks)
}

func TestCompactionConfigIsChecked(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	for _, d := range []logic.Defrag{{Moves: -1}, {Above: -0.1}, {Above: 1.1}, {Above: math.NaN()}} {
		_, err := logic.New(r, logic.Config{Defrag: d})
		require.Error(t, err, "%+v", d)
	}
}

func TestCompactionSurvivesItsSubscribers(t *testing.T) {
	r, _ := scattered(t, 20_000, registry.Config{})
	var failures []error
	e, err := logic.New(r, logic.Config{
		Defrag:  logic.Defrag{Moves: 150},
		OnError: func(err error) { failures = append(failures, err) },
	})
	require.NoError(t, err)
	defer e.Stop()
	heard, perFrame := 0, 0
	for _, fn := range []func([]registry.Move){
		func([]registry.Move) { panic("first") },
		func([]registry.Move) { runtime.Goexit() },
		func(ms []registry.Move) { heard++; perFrame += len(ms) },
	} {
		_, err := r.OnMove(fn)
		require.NoError(t, err)
	}
	for range 3 {
		perFrame = 0
		require.NoError(t, e.Step())
		require.Equal(t, 150, perFrame, "also when the goroutine is ended in the middle, once a frame")
	}
	require.Equal(t, 3, heard)
	require.Len(t, failures, 6)
	var p *registry.PanicError
	for _, err := range failures {
		require.True(t, errors.As(err, &p))
	}
	require.NoError(t, r.Verify())
}

// Compaction has no errors of its own. A bug of it is told every frame, and keeps nobody from the window.
func TestABugOfCompactionIsReported(t *testing.T) {
	r, _ := scattered(t, 20_000, registry.Config{})
	var failures []error
	e, err := logic.New(r, logic.Config{
		Defrag:  logic.Defrag{Moves: 150},
		OnError: func(err error) { failures = append(failures, err) },
	})
	require.NoError(t, err)
	defer e.Stop()
	bug := errors.New("bug")
	logic.CompactionFails(e, bug)
	ran := 0
	for range 3 {
		require.NoError(t, e.Defer(func(*registry.Window) error { ran++; return nil }))
		require.NoError(t, e.Step())
	}
	require.Equal(t, 3, ran)
	require.Len(t, failures, 3)
	for _, err := range failures {
		require.ErrorIs(t, err, bug)
	}
	require.NoError(t, r.Verify())
}
