package pool

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"weak"

	"github.com/airlock-ecs/airlock/internal/check"
)

// Leak tells of an instance that was lost: its guard and all pointers to it are gone, and nobody gave
// it back.
type Leak struct {
	Pool  string // the name of the pool
	Taken string // where it was taken, in a debug build; else ""
}

// String says it in a line.
//
// Concurrency: any goroutine. Allocates: yes.
func (l Leak) String() string {
	if l.Taken == "" {
		return fmt.Sprintf("pool %s: an instance was lost", l.Pool)
	}
	return fmt.Sprintf("pool %s: an instance was lost that %s had taken", l.Pool, l.Taken)
}

// objectLost is what the collector keeps for the day an instance is lost. It must lead neither to the
// instance nor to what might hold it: hence a weak pointer and a number.
type objectLost[T any] struct {
	pool  weak.Pointer[Pool[T]]
	index uint32
}

// watch has the collector tell when v, of place s, is lost. It runs once for an instance: that it
// was given back and taken again meanwhile makes no difference.
func (p *Pool[T]) watch(s *objectPlace[T], v *T) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("pool %s: new: not an instance the collector looks after: %v", p.name, cause)
		}
	}()
	s.cleanup = runtime.AddCleanup(v, objectWasLost[T], objectLost[T]{weak.Make(p), s.index})
	return nil
}

func objectWasLost[T any](l objectLost[T]) {
	if p := l.pool.Value(); p != nil { // else the instance went with its pool
		p.lost(p.free.at(l.index))
	}
}

// lost frees the place of an instance that does not exist any more. Who gives back has the instance
// in his hand, and so has who builds or resets it, and whoever kept a guard, void or not: nobody else
// can be at this place now, nor come back to it. The instance can't be reset. It is not
// replaced here: New may take its time, and the collector has only so many goroutines for this.
func (p *Pool[T]) lost(s *objectPlace[T]) {
	leak := Leak{Pool: p.name, Taken: s.life.taken()}
	p.mu.Lock()
	p.leaked++ // together with the count of those in use, as Stats sees it
	p.free.push(s, objectTaken)
	p.mu.Unlock()
	if p.onLeak != nil || check.Enabled {
		go p.tell(leak)
	}
}

// tell reports a leak. A stranger's function may wait, and its panic has no caller to go to.
func (p *Pool[T]) tell(l Leak) {
	defer func() {
		if v := recover(); v != nil {
			log(slog.LevelError, "OnLeak panicked", slog.String("pool", p.name), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	if p.onLeak == nil {
		attrs := []slog.Attr{slog.String("pool", l.Pool)}
		if l.Taken != "" {
			attrs = append(attrs, slog.String("taken", l.Taken))
		}
		log(slog.LevelWarn, "an instance was lost", attrs...)
		return
	}
	p.onLeak(l)
}

// log writes one line. A log handler is a stranger's code, too, and its panic ends with it: there is nowhere left to
// report that to.
func log(level slog.Level, message string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	slog.LogAttrs(context.Background(), level, "airlock: "+message, attrs...)
}
