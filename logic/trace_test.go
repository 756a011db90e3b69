package logic_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/trace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/flight"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// traced gives the trace of what fn does.
func traced(t *testing.T, fn func()) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := trace.Start(&out); err != nil {
		t.Skip("somebody traces: ", err)
	}
	func() {
		defer trace.Stop()
		fn()
	}()
	return out.Bytes()
}

// TestATraceNamesWhatAFrameDoes also has a system end its goroutine, and a callback fail.
func TestATraceNamesWhatAFrameDoes(t *testing.T) {
	text := traced(t, func() {
		w := newWorld(t, func(c *logic.Config) { c.Defrag = logic.Defrag{Moves: 1 << 20, Above: 0.01} })
		w.update(func(win *registry.Window) error {
			for i := range 4000 {
				h, err := w.class.Spawn(win, thing{value{i}})
				if err != nil || i%2 == 0 && w.r.Destroy(h) != nil {
					return errTest
				}
			}
			return nil
		})
		for p := logic.PrePhysics; p <= logic.Late; p++ {
			_, err := w.e.AddSystem(p, "of "+p.String(), func(f *logic.Frame) {
				if f.FrameNumber() == 1 && p == logic.Physics {
					runtime.Goexit()
				}
			})
			require.NoError(t, err)
		}
		_ = w.e.Step() // tells of the exit
		stop := w.run()
		require.NoError(t, w.e.Spawn(background(), noChange))
		require.ErrorIs(t, w.e.Spawn(background(), func(*registry.Window) error { return errTest }), errTest)
		require.Equal(t, []error{nil, nil}, w.e.SpawnBatch(background(), noChange, noChange))
		_ = stop()
	})
	for _, name := range []string{
		"airlock.frame", "airlock.window", "airlock.publish", "airlock.defrag", "airlock.update",
		"airlock.phase.PrePhysics", "airlock.phase.Physics", "airlock.phase.PostPhysics", "airlock.phase.Late",
		"airlock.system.of PrePhysics", "airlock.system.of Physics", "airlock.system.of PostPhysics", "airlock.system.of Late",
		"airlock.handshake", "airlock.wait", "airlock.callback",
	} {
		assert.True(t, bytes.Contains(text, []byte(name)), name)
	}
	if dir := os.Getenv("AIRLOCK_TRACE"); dir != "" { // for go tool trace -d=parsed
		require.NoError(t, os.WriteFile(filepath.Join(dir, "frame.trace"), text, 0o600))
	}
}

// TestASpawnThatIsTracedIsTheSame compares what callers are told.
func TestASpawnThatIsTracedIsTheSame(t *testing.T) {
	w := newWorld(t, func(c *logic.Config) { c.QueueSize = 1 })
	ask := func() (told []error) {
		cancelled, cancel := context.WithCancel(background())
		cancel()
		told = append(told, w.e.Spawn(cancelled, noChange))
		told = append(told, w.e.SpawnBatch(cancelled, noChange, noChange)...)
		require.NoError(t, w.e.Defer(noChange))
		told = append(told, w.e.Spawn(background(), noChange), w.e.Spawn(background(), nil))
		told = append(told, w.e.SpawnBatch(background())...)
		w.step()
		return told
	}
	plain := ask()
	var same []error
	_ = traced(t, func() { same = ask() })
	require.Equal(t, plain, same)
	require.ErrorIs(t, plain[0], context.Canceled)
	require.ErrorIs(t, plain[3], logic.ErrQueueFull)
}

func recorder(t *testing.T, c flight.Config) (*flight.Recorder, string) {
	t.Helper()
	c.Dir, c.Bytes = t.TempDir(), 1<<20
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	f, err := flight.New(c)
	require.NoError(t, err)
	return f, c.Dir
}

func TestAFrameThatOverrunsIsWrittenByTheFlightRecorder(t *testing.T) {
	f, dir := recorder(t, flight.Config{Budget: 1})
	w := newWorld(t, func(c *logic.Config) { c.Flight = f })
	_, err := logic.New(w.r, logic.Config{Flight: f})
	require.ErrorIs(t, err, registry.ErrRunning, "and does not count")
	_, err = w.e.AddSystem(logic.Physics, "seen", func(*logic.Frame) {})
	require.NoError(t, err)
	w.step()
	w.step()
	require.NoError(t, w.e.Stop())
	require.False(t, trace.IsEnabled(), "the recording ends with the engine")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "frame-0000000001.trace", entries[0].Name())
	text, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	require.NoError(t, err)
	require.True(t, bytes.Contains(text, []byte("airlock.system.seen")))
}

func TestWhatOverrunsTheWatchdogIsWrittenByTheFlightRecorder(t *testing.T) {
	var log bytes.Buffer
	f, dir := recorder(t, flight.Config{Budget: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := newWorld(t, func(c *logic.Config) { c.Flight, c.Watchdog = f, 20*time.Millisecond })
	first := false // where the machine stands still for so long, something else may be
	_, err := w.e.AddSystem(logic.Physics, "slow", func(*logic.Frame) {
		first = w.e.Stats().Overruns == 0
		for w.e.Stats().Overruns == 0 {
			yield()
		}
	})
	require.NoError(t, err)
	w.step()
	require.NoError(t, w.e.Stop())
	files, err := filepath.Glob(filepath.Join(dir, "frame-*.trace"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	if first {
		require.Contains(t, log.String(), `cause="system slow"`)
	}

	other, _ := recorder(t, flight.Config{})
	require.NoError(t, other.Begin())
	defer other.End()
	_, err = logic.New(w.r, logic.Config{Flight: f})
	require.ErrorContains(t, err, "Config.Flight")
	next, err := logic.New(w.r, logic.Config{})
	require.NoError(t, err, "the registry is free")
	require.NoError(t, next.Stop())
}

// keys is a log handler that keeps the keys of each line.
type keys struct{ lines map[string]string }

func (k *keys) Enabled(context.Context, slog.Level) bool { return true }
func (k *keys) WithAttrs([]slog.Attr) slog.Handler       { return k }
func (k *keys) WithGroup(string) slog.Handler            { return k }

func (k *keys) Handle(_ context.Context, r slog.Record) error {
	var list []string
	r.Attrs(func(a slog.Attr) bool { list = append(list, a.Key); return true })
	k.lines[r.Message] = strings.Join(list, " ")
	return nil
}

// TestLogLinesHaveStableKeys is the table of docs/OBSERVING.md, as far as it is of this package.
func TestLogLinesHaveStableKeys(t *testing.T) {
	slow := func() { time.Sleep(time.Second) } // in a bubble
	for name, c := range map[string]struct {
		edit           func(*logic.Config)
		play           func(t *testing.T, w *world)
		message, wants string
	}{
		"the error of a deferred operation": {
			func(c *logic.Config) { c.OnError = nil },
			func(t *testing.T, w *world) {
				require.NoError(t, w.e.Defer(func(*registry.Window) error { return errTest }))
				w.step()
			},
			"airlock: operation failed", "frame err",
		},
		"the panic of a deferred operation": {
			func(c *logic.Config) { c.OnError = nil },
			func(t *testing.T, w *world) {
				require.NoError(t, w.e.Defer(func(*registry.Window) error { panic("as the test wants it") }))
				w.step()
			},
			"airlock: operation failed", "frame err where stack",
		},
		"a system that is slow": {
			func(c *logic.Config) { c.Watchdog = 50 * time.Millisecond },
			func(t *testing.T, w *world) {
				_, err := w.e.AddSystem(logic.Physics, "slow", func(*logic.Frame) { slow() })
				require.NoError(t, err)
				w.step()
			},
			"airlock: callback overran the watchdog", "frame cause took limit system stack",
		},
		"an operation that is slow": {
			func(c *logic.Config) { c.Watchdog = 50 * time.Millisecond },
			func(t *testing.T, w *world) {
				require.NoError(t, w.e.Defer(func(*registry.Window) error { slow(); return nil }))
				w.step()
			},
			"airlock: callback overran the watchdog", "frame cause took limit stack",
		},
		"an OnError that panics": {
			func(c *logic.Config) { c.OnError = func(error) { panic("as the test wants it") } },
			func(t *testing.T, w *world) {
				require.NoError(t, w.e.Defer(func(*registry.Window) error { return errTest }))
				w.step()
			},
			"airlock: OnError panicked", "frame panic stack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keys{map[string]string{}}
				w := newWorld(t, c.edit, func(c *logic.Config) { c.Logger = slog.New(k) })
				c.play(t, w)
				require.NoError(t, w.e.Stop())
				require.Equal(t, map[string]string{c.message: c.wants}, k.lines)
			})
		})
	}
}
