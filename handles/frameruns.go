package handles

import "fmt"

// frameRuns says in which frame each pending name was freed: a queue of runs, for names that
// are freed one after another mostly share their frame. Owner only.
//
// Invariant: ends rise; the last one is the end of the pending names, and each is above the
// confirmed position.
type frameRuns struct {
	runs []frameRun
	from int // runs before it are confirmed
}

type frameRun struct {
	frame uint64
	end   uint64 // position after the run's last name
}

// add says that the name before position end was freed in frame.
func (q *frameRuns) add(frame, end uint64) {
	if !q.extend(frame, end) {
		q.addRun(frameRun{frame: frame, end: end})
	}
}

// extend is add, if the last run is of that frame.
func (q *frameRuns) extend(frame, end uint64) bool {
	n := len(q.runs)
	if n <= q.from || q.runs[n-1].frame != frame {
		return false
	}
	q.runs[n-1].end = end
	return true
}

func (q *frameRuns) addRun(r frameRun) {
	if len(q.runs) == cap(q.runs) && q.from > len(q.runs)/2 {
		q.runs = q.runs[:copy(q.runs, q.runs[q.from:])]
		q.from = 0
	}
	q.runs = append(q.runs, r)
}

// through drops the runs of frames up to frame, oldest first, and is the position they end at.
// It stops at the first younger one: names are confirmed in the order in which they were freed.
func (q *frameRuns) through(frame, confirmed uint64) uint64 {
	for q.from < len(q.runs) && q.runs[q.from].frame <= frame {
		confirmed = q.runs[q.from].end
		q.from++
	}
	q.reset()
	return confirmed
}

// while drops what ok says yes to, name by name and oldest first, and is the position it ends at.
// Nothing is dropped if ok panics.
func (q *frameRuns) while(ok func(seq, frame uint64) bool, position uint64) uint64 {
	from := q.from
	for from < len(q.runs) && ok(position, q.runs[from].frame) {
		position++
		if position == q.runs[from].end {
			from++
		}
	}
	q.from = from
	q.reset()
	return position
}

// oldest is the frame of the oldest pending name; 0 if none is pending.
func (q *frameRuns) oldest() uint64 {
	if q.from == len(q.runs) {
		return 0
	}
	return q.runs[q.from].frame
}

// at is the frame of the pending name at a position; there has to be one.
func (q *frameRuns) at(position uint64) uint64 {
	i := q.from
	for q.runs[i].end <= position {
		i++
	}
	return q.runs[i].frame
}

// reset uses the memory again from its start when nothing is left.
func (q *frameRuns) reset() {
	if q.from == len(q.runs) {
		q.runs, q.from = q.runs[:0], 0
	}
}

func (q *frameRuns) verify(confirmed, tail uint64) error {
	last := confirmed
	for _, r := range q.runs[q.from:] {
		if r.end <= last {
			return fmt.Errorf("recycles: run of frame %d ends at %d, not above %d", r.frame, r.end, last)
		}
		last = r.end
	}
	if last != tail {
		return fmt.Errorf("recycles: runs end at %d, the line at %d", last, tail)
	}
	return nil
}
