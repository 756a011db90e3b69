package logic_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type value struct{ N int }

type tag struct{ M int }

type thing struct{ Value value }

// world is a registry with one class and an engine.
type world struct {
	t     testing.TB
	r     *registry.Registry
	e     *logic.Engine
	class *registry.Class[thing]

	log logHook

	mu      sync.Mutex // guards the rest
	errors  []error    // told to OnError
	onError func()     // called by OnError
}

// logHook is a log handler that calls something, once.
type logHook struct {
	mu sync.Mutex // guards fn
	fn func()
}

func (l *logHook) set(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fn = fn
}

func (l *logHook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logHook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logHook) WithGroup(string) slog.Handler            { return l }

func (l *logHook) Handle(context.Context, slog.Record) error {
	l.mu.Lock()
	fn := l.fn
	l.fn = nil
	l.mu.Unlock()
	if fn != nil {
		fn()
	}
	return nil
}

// newWorld makes a world that is stopped, and verified, when the test ends. Nil edits leave
// the Config as it is: with an OnError that collects, and a silent log.
func newWorld(t testing.TB, edits ...func(*logic.Config)) *world {
	t.Helper()
	return newWorldIn(t, registry.Config{MaxEntities: 1 << 20}, edits...)
}

func newWorldIn(t testing.TB, rc registry.Config, edits ...func(*logic.Config)) *world {
	t.Helper()
	w := &world{t: t}
	r, err := registry.New(rc)
	require.NoError(t, err)
	w.r = r
	w.class, err = registry.RegisterClass[thing](r)
	require.NoError(t, err)
	_, err = registry.RegisterComponent[tag](r)
	require.NoError(t, err)
	c := logic.Config{
		Logger:       slog.New(&w.log),
		WindowBudget: time.Hour, // tests of the budget set their own
		OnError: func(err error) {
			w.mu.Lock()
			w.errors = append(w.errors, err)
			call := w.onError
			w.onError = nil
			w.mu.Unlock()
			if call != nil {
				call()
			}
		},
	}
	for _, edit := range edits {
		edit(&c)
	}
	w.e, err = logic.New(r, c)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = soon(t, "Stop", w.e.Stop)
		assert.NoError(t, r.Verify())
	})
	return w
}

// told gives what OnError has been told since the last call.
func (w *world) told() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.errors
	w.errors = nil
	return told
}

// run starts Run and returns when the first frame has begun. stop ends it and gives Run's answer.
func (w *world) run() (stop func() error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.e.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			_ = w.e.Stop()
			cancel()
			err = <-done
		})
		return err
	}
	w.t.Cleanup(func() { _ = stop() })
	require.NoError(w.t, w.e.Spawn(context.Background(), func(*registry.Window) error { return nil }))
	return stop
}

func (w *world) step() {
	w.t.Helper()
	require.NoError(w.t, w.e.Step())
}

// update changes structure at once, between frames.
func (w *world) update(fn func(*registry.Window) error) {
	w.t.Helper()
	require.NoError(w.t, w.r.Update(fn))
}

// spawn makes an entity at once, between frames.
func (w *world) spawn(n int) (h handles.Local) {
	w.t.Helper()
	w.update(func(win *registry.Window) (err error) {
		h, err = w.class.Spawn(win, thing{value{n}})
		return err
	})
	return h
}

// n reads an entity's value, between frames.
func (w *world) n(h handles.Local) (n int) {
	w.t.Helper()
	w.update(func(win *registry.Window) error {
		v, err := registry.Peek[value](win, h)
		n = v.N
		return err
	})
	return n
}

// queued waits until that many callers wait at the door.
func (w *world) queued(callers int) {
	w.t.Helper()
	deadline := time.Now().Add(hangs)
	for w.e.Stats().Waiting != callers {
		if time.Now().After(deadline) {
			require.FailNow(w.t, "callers do not queue", "%d wait, want %d", w.e.Stats().Waiting, callers)
		}
		yield()
	}
}

// hangs is how long it takes until something counts as hanging: far longer than any load of the machine explains.
const hangs = 30 * time.Second

// soon fails the test if fn hangs.
func soon[T any](t testing.TB, what string, fn func() T) (v T) {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- fn() }()
	select {
	case v = <-done:
	case <-time.After(hangs):
		require.FailNow(t, "hangs", what)
	}
	return v
}

var errTest = errors.New("as the test wants it")

// fast has an engine's frames follow one another almost without a pause.
func fast(c *logic.Config) { c.Rate = 100_000 }

func yield() { runtime.Gosched() }

func background() context.Context { return context.Background() }
