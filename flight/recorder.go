package flight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/trace"
	"sync"
	"time"
)

// Config says what is kept and when it is written. All but Dir may be left zero.
type Config struct {
	Dir    string        // where the files go; made if need be
	Budget time.Duration // a frame that takes longer is written; 0: what the rate of its engine leaves to a frame
	Keep   time.Duration // how much of the past is kept, at least if Bytes is enough; 0 means 5 s
	Bytes  int           // memory for it, roughly; 0 means 16 MiB
	Every  time.Duration // at least so long lies between the beginnings of two files; 0 means 5 s
	Files  int           // after so many files, written or failed, no more are; 0 means 20
	Logger *slog.Logger  // told of each file; nil means slog.Default. An engine that ends waits for it, so it must not wait for that
}

const (
	defaultKeep  = 5 * time.Second
	defaultBytes = 16 << 20
	defaultEvery = 5 * time.Second
	defaultFiles = 20
)

// Recorder writes traces of frames that took too long.
type Recorder struct {
	cfg Config // complete; set once

	mu      sync.Mutex            // guards the rest; leaf lock
	trace   *trace.FlightRecorder // nil: nothing is recorded
	engines int                   // that have begun and not ended
	begun   int                   // files, also those that failed
	next    time.Time             // no file begins before
	writing chan struct{}         // closed when the file in progress is done; nil: there is none
}

// New checks c and makes the directory. Nothing is recorded until an engine begins.
//
// Errors: a Config out of range; what keeps the directory from being made.
// Concurrency: any goroutine. Allocates: the recorder.
func New(c Config) (*Recorder, error) {
	switch {
	case c.Dir == "":
		return nil, errors.New("flight: Config.Dir is empty")
	case c.Budget < 0 || c.Keep < 0 || c.Every < 0 || c.Bytes < 0 || c.Files < 0:
		return nil, fmt.Errorf("flight: a negative bound in %+v", c)
	}
	if c.Keep == 0 {
		c.Keep = defaultKeep
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Files == 0 {
		c.Files = defaultFiles
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	f, err := os.CreateTemp(c.Dir, unfinished) // what cannot be written is found out here
	if err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	return &Recorder{cfg: c}, nil
}

// Budget is how long a frame may take at a rate.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Recorder) Budget(rate int) time.Duration {
	if r.cfg.Budget > 0 {
		return r.cfg.Budget
	}
	return time.Second / time.Duration(rate)
}

// Begin counts an engine in; the first one begins to record. Each Begin without an error asks for one End.
//
// Errors: another flight recorder runs in this program.
// Concurrency: any goroutine; waits for moments, or for an End in progress. Allocates: yes.
func (r *Recorder) Begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trace == nil {
		t := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: r.cfg.Keep, MaxBytes: uint64(r.cfg.Bytes)})
		if err := t.Start(); err != nil {
			return fmt.Errorf("flight: %w", err)
		}
		r.trace = t
	}
	r.engines++
	return nil
}

// End counts an engine out. The last one waits for the file in progress and ends the recording.
//
// Concurrency: any goroutine that has begun; waits for a file. Allocates: no.
func (r *Recorder) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engines--
	for r.engines == 0 && r.writing != nil {
		done := r.writing
		r.mu.Unlock()
		<-done
		r.mu.Lock()
	}
	if r.engines == 0 && r.trace != nil {
		r.trace.Stop()
		r.trace = nil
	}
}

// Overran has a file written of a frame in which something took too long: the frame itself, a system, a caller.
// It is dropped while another file is written, if one began less than Config.Every ago, after Config.Files of
// them, and when no engine runs.
//
// Concurrency: any goroutine; never waits for a file. Allocates: when it begins one.
func (r *Recorder) Overran(frame uint64, cause string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trace == nil || r.engines == 0 || r.writing != nil || r.begun >= r.cfg.Files {
		return
	}
	now := time.Now()
	if now.Before(r.next) {
		return
	}
	r.begun++
	r.next = now.Add(r.cfg.Every)
	r.writing = make(chan struct{})
	go r.write(r.trace, r.begun == r.cfg.Files, frame, cause, took)
}

// write writes a file and tells of it. A log handler is a stranger's code: its panic ends with it.
func (r *Recorder) write(t *trace.FlightRecorder, last bool, frame uint64, cause string, took time.Duration) {
	defer func() {
		_ = recover()
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.writing)
		r.writing = nil
	}()
	attrs := []slog.Attr{slog.Uint64("frame", frame), slog.String("cause", cause), slog.Duration("took", took)}
	name, err := r.file(t, frame)
	if err != nil {
		r.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "airlock: a trace could not be written", append(attrs, slog.Any("err", err))...)
		return
	}
	attrs = append(attrs, slog.String("file", name), slog.Bool("last", last))
	r.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "airlock: a trace of an overrun was written", attrs...)
}

// unfinished is the pattern of files that are being written.
const unfinished = ".flight-*"

// file writes what is kept to a file that gets its name when it is complete. A frame of an earlier engine, or program, may have
// left one of the same name, which stays.
func (r *Recorder) file(t *trace.FlightRecorder, frame uint64) (name string, err error) {
	f, err := os.CreateTemp(r.cfg.Dir, unfinished)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = t.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name = filepath.Join(r.cfg.Dir, fmt.Sprintf("frame-%010d.trace", frame))
		if n > 1 {
			name = filepath.Join(r.cfg.Dir, fmt.Sprintf("frame-%010d-%d.trace", frame, n))
		}
		switch _, err := os.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return name, os.Rename(f.Name(), name)
		case err != nil:
			return "", err
		}
	}
}
