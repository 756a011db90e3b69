package logic

import "time"

// catchUpFrames is how many frames a late engine runs back to back; what it owes beyond
// that is dropped and counted.
const catchUpFrames = 5

// schedule says when the frames of a fixed rate are due. It is plain arithmetic on the
// times it is given.
//
// Invariant: frames run + frames dropped = frames due since start.
type schedule struct {
	rate int64 // frames a second
	base int64 // when frame 0 of the current second was due
	next int64 // the next frame's number in that second, < rate
}

func newSchedule(rate int, now int64) schedule {
	return schedule{rate: int64(rate), base: now}
}

// due takes the next frame off the schedule: how long to wait for it, and how many frames
// were given up because more than catchUpFrames are owed. A wait of 0 or less means late.
func (s *schedule) due(now int64) (wait int64, dropped uint64) {
	at := s.base + s.next*int64(time.Second)/s.rate
	if late := now - at; late > 0 {
		// The product fits: an engine asleep for 9 s at the highest rate already owes 5 frames.
		owed := late / int64(time.Second) * s.rate
		owed += late % int64(time.Second) * s.rate / int64(time.Second)
		if owed > catchUpFrames {
			dropped = uint64(owed - catchUpFrames)
			s.advance(owed - catchUpFrames)
		}
	}
	s.advance(1)
	return at - now, dropped
}

// advance moves on by whole frames, carrying full seconds so that nothing ever drifts or
// overflows.
func (s *schedule) advance(frames int64) {
	s.next += frames
	s.base += s.next / s.rate * int64(time.Second)
	s.next %= s.rate
}
