package logic

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/fault"
)

// activity is a kind of user code that the watchdog watches.
type activity uint8

const (
	idleness   activity = iota // none
	callers                    // goroutines in the window, one after the other
	queuedOp                   // a deferred or enqueued operation
	wishes                     // what systems and observers put off
	observers                  // all of one delivery
	system                     // the one in watch.system
	onError                    // Config.OnError
	compaction                 // subscribers to its moves
	journaling                 // the journal, and codecs of components
	logging                    // the log handler, where nothing else runs
)

// String is what reports call it.
func (a activity) String() string {
	return [...]string{
		"nothing", "Spawn callback", "deferred operation", "deferred operations of systems and observers",
		"observers", "system", "OnError", "compaction", "journal", "log handler",
	}[a]
}

// watch is the watchdog's view of the user code in progress. Logic and whoever holds the
// window write it, one after the other; the supervising goroutine reads it now and then.
//
// Two callbacks that begin at the same instant share a stamp; the first then took no time,
// so the stamp names only one that can overrun.
type watch struct {
	// stamp is the time when it began, in the high 60 bits, and the activity: one word, for
	// storing it is a noticeable part of a handshake. 0: nothing runs.
	stamp  atomic.Uint64
	system atomic.Pointer[System] // the last one that ran
	told   atomic.Uint64          // the stamp whose overrun has been counted
	stacks atomic.Pointer[stacks] // of the last callback that was noticed while it overran

	limit    int64 // nanoseconds; set once
	overruns atomic.Uint64
}

func (w *watch) begin(now int64, what activity) {
	if what == idleness {
		w.clear()
		return
	}
	w.stamp.Store(uint64(now)<<4 | uint64(what))
}

func (w *watch) beginSystem(now int64, s *System) {
	if w.system.Load() != s { // a load is far cheaper than a store
		w.system.Store(s)
	}
	w.begin(now, system)
}

// late answers how long the callback has run if it overran and nobody has reported it yet,
// else 0. Its own side calls it, at the end.
func (w *watch) late(now int64) int64 {
	stamp := w.stamp.Load()
	ran := now - int64(stamp>>4)
	if stamp == 0 || !w.overran(stamp, ran) {
		return 0
	}
	return ran
}

// clear says that nothing runs.
func (w *watch) clear() { w.stamp.Store(0) }

func (w *watch) activity() activity { return activity(w.stamp.Load() & 15) }

// what names the activity in progress.
func (w *watch) what() string {
	a := w.activity()
	if s := w.system.Load(); a == system && s != nil {
		return a.String() + " " + s.name
	}
	return a.String()
}

// look is late from outside, while the callback runs: its name, how long it has run, and
// whether to report it. Nothing if nothing runs.
func (w *watch) look(now int64) (what string, ran int64, report bool) {
	stamp, what := w.current()
	if stamp == 0 {
		return "", 0, false
	}
	ran = now - int64(stamp>>4)
	return what, ran, w.overran(stamp, ran)
}

// current is the stamp and the name of the activity in progress. 0 if there is none, or if another
// one began just now: its turn comes with the next look.
func (w *watch) current() (stamp uint64, what string) {
	stamp = w.stamp.Load()
	if stamp == 0 {
		return 0, ""
	}
	what = w.what()
	if fault.Enabled {
		fault.At(fault.Looking)
	}
	if w.stamp.Load() != stamp {
		return 0, ""
	}
	return stamp, what
}

// overran counts an overrun once, whoever notices it first.
func (w *watch) overran(stamp uint64, ran int64) bool {
	if ran <= w.limit {
		return false
	}
	told := w.told.Load()
	if told == stamp || !w.told.CompareAndSwap(told, stamp) {
		return false
	}
	w.overruns.Add(1)
	return true
}
