package logic

import "sync/atomic"

// watch is the watchdog's view of the callback in progress. Logic and whoever holds the
// window write it, one after the other; the supervising goroutine reads it now and then.
//
// Two callbacks that begin at the same instant share a stamp; the first then took no time,
// so the stamp names only one that can overrun.
type watch struct {
	since atomic.Int64           // when it began, plus 1; 0: nothing runs
	what  atomic.Pointer[string] // its name
	told  atomic.Int64           // the since whose overrun has been counted

	limit    int64 // nanoseconds; set once
	overruns atomic.Uint64
}

func (w *watch) begin(now int64, what *string) {
	if w.what.Load() != what { // a load is far cheaper than a store here
		w.what.Store(what)
	}
	w.since.Store(now + 1)
}

// late answers how long the callback has run if it overran and nobody has reported it yet,
// else 0. Its own side calls it, at the end.
func (w *watch) late(now int64) int64 {
	since := w.since.Load()
	if !w.overran(now, since) {
		return 0
	}
	return now - (since - 1)
}

// clear says that nothing runs.
func (w *watch) clear() { w.since.Store(0) }

// look is late from outside, while the callback runs: its name, how long it has run, and
// whether to report it.
func (w *watch) look(now int64) (what string, ran int64, report bool) {
	since := w.since.Load()
	if since == 0 {
		return "", 0, false
	}
	if p := w.what.Load(); p != nil {
		what = *p
	}
	if w.since.Load() != since { // another one began: its turn comes with the next look
		return "", 0, false
	}
	return what, now - (since - 1), w.overran(now, since)
}

// overran counts an overrun once, whoever notices it first.
func (w *watch) overran(now, since int64) bool {
	if since == 0 || now-(since-1) <= w.limit {
		return false
	}
	told := w.told.Load()
	if told == since || !w.told.CompareAndSwap(told, since) {
		return false
	}
	w.overruns.Add(1)
	return true
}
