package logic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// ErrDiverged reports a replay that came out otherwise than what was recorded.
var ErrDiverged = errors.New("logic: a replay came out otherwise")

// DivergedError is an ErrDiverged that says where: what decides about the frame is not all in the registry and its
// inputs, or the systems are not those of the recorded run.
type DivergedError struct {
	Frame    uint64 // the first that differs
	Recorded uint64 // hash of the state after it, see snapshot.Hash
	Replayed uint64
}

// Error names the frame and both hashes.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("logic: frame %d has the hash %016x in the journal, and %016x when it is done again", e.Frame, e.Recorded, e.Replayed)
}

// Unwrap is ErrDiverged.
func (e *DivergedError) Unwrap() error { return ErrDiverged }

// ReplayOption says how a replay is done.
type ReplayOption func(*replay)

// WithSystems has systems and observers registered before the first frame. They are those of the recorded run, in
// the same order, and fn does nothing else: what came from outside comes from the journal.
//
// Concurrency: any goroutine. Allocates: yes.
func WithSystems(fn func(*Engine) error) ReplayOption { return func(r *replay) { r.systems = fn } }

// WithProgress calls fn after every frame with its number and that of the last one in the journal, which is read
// once more for that.
//
// Concurrency: any goroutine. Allocates: yes.
func WithProgress(fn func(frame, of uint64)) ReplayOption {
	return func(r *replay) { r.progress = fn }
}

// WithHashes calls fn after every frame that agrees, with its number and the hash of the state: snapshot.Hash.
//
// Concurrency: any goroutine. Allocates: yes.
func WithHashes(fn func(frame, hash uint64)) ReplayOption {
	return func(r *replay) { r.hashes = fn }
}

// WithLoss calls fn at the end if the journal is cut off or damaged there: with the bytes that could not be read, and why.
//
// Concurrency: any goroutine. Allocates: yes.
func WithLoss(fn func(bytes int64, reason error)) ReplayOption {
	return func(r *replay) { r.loss = fn }
}

// WithWorkers is Config.Workers of the replay, which decides nothing but how long it takes.
//
// Concurrency: any goroutine. Allocates: yes.
func WithWorkers(n int) ReplayOption { return func(r *replay) { r.workers = n } }

// WithErrors calls fn with the panics of systems and observers, and what else the engine would report. Without it nobody hears of
// them: they were reported when it was recorded.
//
// Concurrency: any goroutine. Allocates: yes.
func WithErrors(fn func(error)) ReplayOption { return func(r *replay) { r.errors = fn } }

// WithContext ends the replay with the context.
//
// Concurrency: any goroutine. Allocates: yes.
func WithContext(ctx context.Context) ReplayOption { return func(r *replay) { r.ctx = ctx } }

type replay struct {
	ctx      context.Context
	systems  func(*Engine) error
	progress func(frame, of uint64)
	hashes   func(frame, hash uint64)
	loss     func(bytes int64, reason error)
	errors   func(error)
	workers  int
}

// Replay does a journal again, in a registry that has the Config, the components and the classes of the one that was recorded
// and in which nothing has happened yet, and compares the hash after every frame. It gives the last frame up to which
// all agree. The registry stays as that frame has left it, and is free for an engine.
//
// A journal that is cut off or damaged is done up to its last whole frame, which is no error: see WithLoss.
//
// Errors: a *DivergedError, which is ErrDiverged, at the first frame that differs; those of snapshot.ReadJournal; registry.ErrDeterministic;
// registry.ErrRunning if the registry has an engine; that of WithSystems; the context's; ErrStopped if a system, or one of the functions of the options, has stopped the engine.
// Concurrency: any goroutine. Allocates: yes.
func Replay(r *registry.Registry, fsys fs.FS, opts ...ReplayOption) (uint64, error) {
	o := replay{
		ctx:      context.Background(),
		systems:  func(*Engine) error { return nil },
		progress: nil,
		hashes:   func(uint64, uint64) {},
		loss:     func(int64, error) {},
		errors:   func(error) {},
	}
	for _, opt := range opts {
		opt(&o)
	}
	if r == nil {
		return 0, errors.New("logic: replay in a nil registry")
	}
	frame, err := o.run(r, fsys)
	if err != nil {
		return frame, ofReplay(err)
	}
	return frame, nil
}

// ofReplay says that it was a replay which failed, unless that is an error of this package, which begins with its name.
func ofReplay(err error) error {
	if strings.HasPrefix(err.Error(), "logic: ") {
		return err
	}
	return fmt.Errorf("logic: replay: %w", err)
}

func (o *replay) run(r *registry.Registry, fsys fs.FS) (uint64, error) {
	j, err := snapshot.ReadJournal(fsys, r)
	if err != nil {
		return 0, err
	}
	defer j.Close()
	last := uint64(0)
	if o.progress != nil {
		if last, err = j.Last(); err != nil {
			return 0, err
		}
	}
	t := j.Terms()
	e, err := New(r, Config{
		Rate: t.Rate, LocalWindow: t.LocalWindow, NetWindow: t.NetWindow,
		Workers: o.workers, OnError: o.errors, Watchdog: math.MaxInt64 / 4 * time.Nanosecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	defer e.Stop()
	return e.replay(j, o, last)
}

// replay runs the frames of a journal, as one long step: nobody else gets in.
func (e *Engine) replay(j *snapshot.JournalReader, o *replay, last uint64) (uint64, error) {
	if err := e.begin(modeStepping); err != nil {
		return 0, err
	}
	defer e.release()
	if err := e.core.Enter(true); err != nil {
		return 0, err
	}
	defer e.core.Leave()
	if err := e.beginReplay(j, o); err != nil {
		return 0, err
	}
	t := &e.stepper.tape
	t.fed = true
	defer func() {
		t.fed = false
		e.core.Feed(nil)
	}()
	done := j.Terms().Frame
	for {
		f, err := j.Next()
		if err == io.EOF {
			if bytes, reason := j.Loss(); reason != nil {
				caller.Within(e.id, func() { o.loss(bytes, reason) })
			}
			return done, nil
		}
		if err == nil {
			err = o.ctx.Err()
		}
		if err == nil && e.stopAsked() {
			err = ErrStopped
		}
		if err == nil {
			err = e.feed(f)
		}
		if err != nil {
			return done, err
		}
		done = f.Number
		caller.Within(e.id, func() { // as a callback, so that who stops the engine there does not wait for himself
			o.hashes(done, t.frame.Hash)
			if o.progress != nil {
				o.progress(done, last)
			}
		})
	}
}

// beginReplay gets everything ready for the first frame.
func (e *Engine) beginReplay(j *snapshot.JournalReader, o *replay) error {
	if !e.core.Untouched() {
		return errors.New("something has happened in the registry already")
	}
	if terms := j.Terms(); j.HasState() {
		if err := e.core.Update(j.LoadState); err != nil {
			return err
		}
		hash := uint64(0)
		if err := e.core.Update(func(w *registry.Window) (err error) {
			hash, err = snapshot.Hash(w)
			return err
		}); err != nil {
			return err
		}
		if hash != terms.Hash || e.core.FrameNumber() != terms.Frame {
			return &DivergedError{Frame: terms.Frame, Recorded: terms.Hash, Replayed: hash}
		}
	}
	lives := e.core.Lives()
	if err := o.systems(e); err != nil {
		return err
	}
	if e.core.Lives() != lives {
		return errors.New("WithSystems has changed the registry: what came from outside is in the journal")
	}
	return nil
}

// feed runs a frame.
func (e *Engine) feed(f *snapshot.JournalFrame) error {
	rec, t := e.core.NewRecord(), &e.stepper.tape
	if err := f.Fill(rec); err != nil {
		return err
	}
	if err := e.core.Feed(rec); err != nil {
		return err
	}
	t.frame = snapshot.JournalFrame{Number: f.Number, Inputs: f.Inputs, Nets: f.Nets}
	e.supervise(context.Background(), workStep)
	if t.err != nil {
		return t.err
	}
	if t.frame.Hash != f.Hash {
		return &DivergedError{Frame: f.Number, Recorded: f.Hash, Replayed: t.frame.Hash}
	}
	return nil
}
