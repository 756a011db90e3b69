package flight_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/airlock-ecs/airlock/flight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a log handler that keeps what it is told, and can be kept waiting.
type lines struct {
	mu   sync.Mutex // guards list
	list []map[string]string
	hold chan struct{} // nil: it does not wait
	told chan struct{} // a token for each line; set with hold
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := map[string]string{"level": r.Level.String()}
	r.Attrs(func(a slog.Attr) bool { line[a.Key] = a.Value.String(); return true })
	l.mu.Lock()
	l.list = append(l.list, line)
	l.mu.Unlock()
	if l.hold != nil {
		l.told <- struct{}{}
		<-l.hold
	}
	return nil
}

func begun(t *testing.T, c flight.Config) *flight.Recorder {
	t.Helper()
	r, err := flight.New(c)
	require.NoError(t, err)
	require.NoError(t, r.Begin())
	return r
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAnOverrunIsWrittenAndNamedByItsFrame(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "new", "dir"), &lines{}
	r := begun(t, flight.Config{Dir: dir, Logger: slog.New(log)})
	trace.WithRegion(t.Context(), "flight.seen", func() {})
	r.Overran(17, "system slow", 40*time.Millisecond)
	r.Overran(18, "frame", time.Second) // too soon
	r.End()
	r.Overran(19, "frame", time.Second) // no engine runs
	require.Equal(t, []string{"frame-0000000017.trace"}, names(t, dir))
	file := filepath.Join(dir, "frame-0000000017.trace")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(text, []byte("go 1.")), "a trace")
	assert.True(t, bytes.Contains(text, []byte("flight.seen")))
	assert.Equal(t, []map[string]string{{"level": "WARN", "frame": "17", "cause": "system slow", "took": "40ms", "file": file, "last": "false"}}, log.list)

	other := begun(t, flight.Config{Dir: dir, Logger: slog.New(log)})
	other.Overran(17, "frame", time.Second) // of another world
	other.End()
	assert.Equal(t, []string{"frame-0000000017-2.trace", "frame-0000000017.trace"}, names(t, dir))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, again, "the first one stays")
}

func TestTheNumberOfFilesIsBounded(t *testing.T) {
	dir, log := t.TempDir(), &lines{hold: make(chan struct{}), told: make(chan struct{})}
	r := begun(t, flight.Config{Dir: dir, Every: 1, Files: 2, Logger: slog.New(log)})
	for frame := range uint64(3) {
		r.Overran(frame, "frame", time.Second)
		if frame < 2 {
			<-log.told
			r.Overran(100, "frame", time.Second) // returns, while another one is written
			log.hold <- struct{}{}
			r.End() // waits for it
			require.NoError(t, r.Begin())
		}
	}
	r.End()
	assert.Equal(t, []string{"frame-0000000000.trace", "frame-0000000001.trace"}, names(t, dir))
	assert.Equal(t, "true", log.list[1]["last"])
}

func TestAFileThatCannotBeWrittenIsToldAndCounts(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "dir"), &lines{}
	r := begun(t, flight.Config{Dir: dir, Every: 1, Files: 1, Logger: slog.New(log)})
	require.NoError(t, os.RemoveAll(dir))
	for range 2 {
		r.Overran(1, "frame", time.Second)
		r.End()
		require.NoError(t, r.Begin())
	}
	r.End()
	require.Len(t, log.list, 1)
	assert.Contains(t, log.list[0]["err"], "no such file")
	assert.NoDirExists(t, dir)
}

func TestOneRecorderInAProgramAndConfigsThatMakeNoSense(t *testing.T) {
	r := begun(t, flight.Config{Dir: t.TempDir()})
	other, err := flight.New(flight.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	assert.ErrorContains(t, other.Begin(), "already")
	require.NoError(t, r.Begin(), "of another engine")
	r.End()
	assert.True(t, trace.IsEnabled())
	r.End()
	assert.False(t, trace.IsEnabled())
	require.NoError(t, other.Begin())
	other.End()

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, c := range map[string]flight.Config{
		"Dir is empty":    {},
		"not a directory": {Dir: filepath.Join(file, "below")},
		"negative":        {Dir: t.TempDir(), Every: -1},
	} {
		_, err := flight.New(c)
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, time.Second/50, r.Budget(50))
	own, err := flight.New(flight.Config{Dir: t.TempDir(), Budget: time.Hour})
	require.NoError(t, err)
	assert.Equal(t, time.Hour, own.Budget(50))
}

func TestEnginesBeginAndEndAndOverrunAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	r, err := flight.New(flight.Config{Dir: dir, Every: 1, Files: 5, Bytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range uint64(4) {
		all.Go(func() {
			for n := range uint64(5) {
				assert.NoError(t, r.Begin())
				for range 20 {
					r.Overran(i<<8+n, "frame", time.Second)
				}
				r.End()
			}
		})
	}
	all.Wait()
	assert.False(t, trace.IsEnabled())
	files := names(t, dir)
	assert.NotEmpty(t, files)
	assert.LessOrEqual(t, len(files), 5)
	for _, name := range files {
		assert.Regexp(t, `^frame-\d{10}(-\d+)?\.trace$`, name)
	}
}

func TestAnOverrunThatIsNotWrittenAllocatesNothing(t *testing.T) {
	r, err := flight.New(flight.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Overran(1, "frame", time.Second) }))
}
