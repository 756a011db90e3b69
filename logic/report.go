package logic

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/registry"
)

// report hands a failure that has no caller to OnError, or without one to the log.
func (e *Engine) report(err error) {
	if e.cfg.OnError == nil {
		attrs := []slog.Attr{slog.Uint64("frame", e.FrameNumber()), slog.Any("err", err)}
		var failure *registry.PanicError
		if errors.As(err, &failure) {
			attrs[0] = slog.Uint64("frame", failure.Frame)
			attrs = append(attrs, slog.String("where", failure.Where))
			if len(failure.Stack) > 0 {
				attrs = append(attrs, slog.String("stack", string(failure.Stack)))
			}
		}
		e.logWatched(slog.LevelError, "operation failed", attrs...)
		return
	}
	e.tell(err)
}

// reportOverrun logs a callback that outlasts the watchdog, with its stack if that is known, and has the flight
// recorder write what led to it.
func (e *Engine) reportOverrun(what string, ran time.Duration, stack string) {
	if f := e.cfg.Flight; f != nil {
		f.Overran(e.FrameNumber(), what, ran)
	}
	attrs := []slog.Attr{
		slog.Uint64("frame", e.FrameNumber()),
		slog.String("cause", what),
		slog.Duration("took", ran),
		slog.Duration("limit", e.cfg.Watchdog),
	}
	if name, ok := strings.CutPrefix(what, system.String()+" "); ok { // see watch.what
		attrs = append(attrs, slog.String("system", name))
	}
	if stack != "" {
		attrs = append(attrs, slog.String("stack", stack))
	}
	e.log(slog.LevelWarn, "callback overran the watchdog", attrs...)
}

// reportHeld logs a published frame that readers have held for many frames, with the stack of one of
// them if that is known.
func (e *Engine) reportHeld(frame uint64, stack string) {
	attrs := []slog.Attr{slog.Uint64("frame", frame), slog.Uint64("age", e.FrameNumber()-frame)}
	if stack != "" {
		attrs = append(attrs, slog.String("stack", stack))
	}
	e.logWatched(slog.LevelWarn, "a published frame is held for long: read, and release", attrs...)
}

// log writes one line. A log handler is a stranger's code: it counts as a callback, and its
// panic ends with it, since there is nowhere left to report that to.
func (e *Engine) log(level slog.Level, message string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	caller.Within(e.id, func() {
		e.cfg.Logger.LogAttrs(context.Background(), level, "airlock: "+message, attrs...)
	})
}

// logWatched is log for the owner. Where nothing else runs the handler itself is watched, so that one that waits for itself is
// found; but not in an engine that stops, where nobody waits.
func (e *Engine) logWatched(level slog.Level, message string, attrs ...slog.Attr) {
	if e.watch.activity() == idleness && !e.stopAsked() {
		e.watch.begin(e.clock.now(), logging)
		defer e.watch.clear()
	}
	e.log(level, message, attrs...)
}

// tell calls the user's OnError as a callback, so that what it calls on the engine is answered
// and not waited for. Its panic goes to the log.
func (e *Engine) tell(err error) {
	was := e.watch.activity()
	e.watch.begin(e.clock.now(), onError)
	defer func() { e.watch.begin(e.clock.now(), was) }()
	defer func() {
		if v := recover(); v != nil {
			e.log(slog.LevelError, "OnError panicked", slog.Uint64("frame", e.FrameNumber()), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	caller.Within(e.id, func() { e.cfg.OnError(err) })
}
