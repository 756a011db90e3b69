package logic

import "time"

const (
	calmReadings = 4                      // see budget.read
	skipReadings = 3                      // see budget.read
	skipMany     = 15                     // likewise
	skipWatchdog = 100 * time.Millisecond // a shorter one could take several callbacks for one
)

// budget is the window's time. It belongs to whoever holds the window.
//
// A reading of the clock costs a tenth of a handshake, and more than a short operation. So once calmReadings in a row
// have found nearly nothing spent, skipReadings callbacks go without one, and skipMany if they are so short that they will
// be nothing to what is left: the window may be that many callbacks longer than its budget, unless the supervisor has
// noticed meanwhile that one takes long.
type budget struct {
	until  int64 // no callback begins after this
	served int   // callbacks in this window
	now    int64 // the last reading of the clock
	unread int   // callbacks since
	skip   int   // callbacks that may go without a reading
	calm   int   // readings in a row that found nearly nothing spent
}

// open begins a window of some length.
func (b *budget) open(now, length int64) { *b = budget{until: now + length, now: now} }

// spent reports whether the window's time is up; never before the first callback.
func (b *budget) spent() bool { return b.served > 0 && b.now >= b.until }

// due counts a callback that has ended and reports whether to read the clock.
func (b *budget) due() bool {
	b.unread++
	return b.unread > b.skip
}

// read takes a reading of the clock.
func (b *budget) read(now int64, watchdog int64) {
	took, left := now-b.now, b.until-now
	if took < left/8 {
		b.calm++
	} else {
		b.calm = 0
	}
	b.skip = 0
	if b.calm >= calmReadings && watchdog >= int64(skipWatchdog) {
		b.skip = skipReadings
		if took*(skipMany+1) < left/64*int64(b.unread) {
			b.skip = skipMany
		}
	}
	b.now, b.unread = now, 0
}
