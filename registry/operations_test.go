package registry_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// ends are the ways in which an operation may end.
var ends = []string{"succeeds", "fails", "panics", "exits"}

// operated serves operations as package logic does: what ends a row is followed by another row, if need be of
// another goroutine. It gives what each came to.
func operated(e *engine, ops []func(*registry.Window) error) []error {
	came, taken := make([]error, len(ops)), 0
	answered := func(err error) { came[taken-1] = err }
	take := func() func(*registry.Window) error {
		if taken == len(ops) {
			return nil
		}
		taken++
		return ops[taken-1]
	}
	served := func() func(*registry.Window) error {
		answered(nil)
		return take()
	}
	row := func(fn func(*registry.Window) error) {
		returned := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := e.Operations(fn, served); err != nil {
				answered(err)
			}
			returned = true
		}()
		<-done
		if !returned {
			answered(registry.ErrGoexit)
		}
	}
	for fn := take(); fn != nil; fn = take() {
		row(fn)
	}
	return came
}

// Operations that are served in a row are as good as alone: each has a window that ends with it, is undone without
// the others, and comes to what it came to.
func TestOperationsInARowAreEachOnTheirOwn(t *testing.T) {
	for name, config := range map[string]registry.Config{
		"plain": {}, "deterministic": {Deterministic: true}, "ring": {TemporalFrames: 8},
	} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, config)
			e := k.engine()
			rapid.Check(t, func(t *rapid.T) {
				outcomes := rapid.SliceOfN(rapid.SampledFrom(ends), 1, 12).Draw(t, "outcomes")
				live := k.r.Stats().Live
				var born, made []handles.Local
				var kept []*registry.Window
				var ops []func(*registry.Window) error
				for i, outcome := range outcomes {
					ops = append(ops, func(w *registry.Window) error {
						for _, old := range kept {
							require.NotSame(t, old, w)
							_, err := k.soldiers.Spawn(old, soldier{})
							require.ErrorIs(t, err, registry.ErrExpired)
						}
						require.True(t, caller.Inside(e.ID()))
						kept = append(kept, w)
						w.Named(fmt.Sprint("operation ", i))
						h := k.spawn(w)
						made = append(made, h)
						if len(born) > 0 { // undone with the rest
							require.NoError(t, w.Destroy(born[0]))
						}
						switch outcome {
						case "fails":
							return errPlanned
						case "panics":
							panic(errPlanned)
						case "exits":
							runtime.Goexit()
						}
						if len(born) > 0 {
							born = born[1:]
						}
						born = append(born, h)
						return nil
					})
				}
				require.NoError(t, e.Enter(false))
				e.Advance()
				e.OpenWindow()
				came := operated(e, ops)
				e.CloseWindow()
				e.NewFrame()
				e.Deliver()
				e.Boundary()
				e.EndFrame()
				e.Leave()

				require.False(t, caller.Inside(e.ID()))
				for i, err := range came {
					var failure *registry.PanicError
					switch outcomes[i] {
					case "succeeds":
						require.NoError(t, err)
					case "fails":
						require.Equal(t, errPlanned, err)
					case "panics":
						require.ErrorAs(t, err, &failure)
						require.Equal(t, errPlanned, failure.Value)
						require.Equal(t, "operation", failure.Where)
						require.Contains(t, string(failure.Stack), "operations_test.go")
					case "exits":
						require.ErrorIs(t, err, registry.ErrGoexit)
					}
				}
				lives := 0
				for _, h := range made {
					if k.r.Alive(h) {
						lives++
						require.Equal(t, []handles.Local{h}, born)
					}
				}
				require.Equal(t, len(born), lives)
				require.Equal(t, live+lives, k.r.Stats().Live)
				require.NoError(t, k.r.Verify())
			})
		})
	}
}

// What asks for the next operation is no operation: its panic is nobody's failure.
func TestAPanicBetweenOperationsGoesOnThrough(t *testing.T) {
	k := newWorld(t, registry.Config{})
	e := k.engine()
	require.NoError(t, e.Enter(false))
	e.Advance()
	e.OpenWindow()
	var h handles.Local
	require.PanicsWithValue(t, "next", func() {
		_ = e.Operations(func(w *registry.Window) error {
			h = k.spawn(w)
			return nil
		}, func() func(*registry.Window) error { panic("next") })
	})
	require.True(t, k.r.Alive(h), "the operation had succeeded")
	require.NoError(t, e.CallbackRecover(func(w *registry.Window) error { return w.Destroy(h) }))
	e.CloseWindow()
	e.Leave()
}

func TestOperationsAllocateTheirTokensAlone(t *testing.T) {
	if racing || check.Enabled {
		t.Skip("the race detector and the checks of a debug build allocate")
	}
	k := newWorld(t, registry.Config{})
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	e.Advance()
	e.OpenWindow()
	defer e.CloseWindow()
	left := 0
	fn := func(*registry.Window) error { return nil }
	next := func() func(*registry.Window) error {
		if left--; left < 0 {
			return nil
		}
		return fn
	}
	failed := errors.New("an operation failed")
	require.Zero(t, testing.AllocsPerRun(200, func() {
		left = 16
		if e.Operations(fn, next) != nil {
			panic(failed)
		}
	}))
}

// BenchmarkOperations is an operation that does nothing: in rows of 64, and each with guards of its own.
func BenchmarkOperations(b *testing.B) {
	const rows = 64
	k := newWorld(b, registry.Config{})
	e := k.engine()
	if err := e.Enter(false); err != nil {
		b.Fatal(err)
	}
	defer e.Leave()
	e.Advance()
	e.OpenWindow()
	defer e.CloseWindow()
	left := 0
	fn := func(*registry.Window) error { return nil }
	next := func() func(*registry.Window) error {
		if left--; left <= 0 {
			return nil
		}
		return fn
	}
	for _, way := range []struct {
		name string
		all  func()
	}{
		{"row", func() {
			left = rows
			_ = e.Operations(fn, next)
		}},
		{"alone", func() {
			for range rows {
				_ = e.CallbackRecover(fn)
			}
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.all()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*rows), "ns/operation")
			b.ReportMetric(0, "ns/op")
		})
	}
}
