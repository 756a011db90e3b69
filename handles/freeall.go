package handles

import "github.com/airlock-ecs/airlock/internal/check"

// FreeAll is Free for many dying handles, in their order.
//
// Concurrency: the owner only; never waits; the caller keeps hs. Allocates: as Free.
func (l *Locals) FreeAll(hs []Local, frame uint64) {
	for len(hs) > 0 {
		l.Free(hs[0], frame) // begins a segment or a run, if that is due
		hs = hs[1:]
		n := l.freeUsual(hs, frame)
		hs = hs[n:]
	}
}

// freeUsual frees handles from the front of hs while that only means to write names behind
// each other, and says how many. The last run of pending names is of frame.
func (l *Locals) freeUsual(hs []Local, frame uint64) int {
	r := &l.recycles
	at := int(r.tail & segmentMask)
	if at == 0 || l.burnt.count > 0 || check.Enabled || !r.runs.extend(frame, r.tail) {
		return 0
	}
	hs = hs[:min(len(hs), segmentSize-at)]
	names, last, n := r.tailSeg.names[at:], l.generation.last, 0
	for n < len(hs) && n < len(names) && hs[n].Generation() < last {
		names[n] = entry(hs[n] + 1) // the generation is in the low bits, and not at its end
		n++
	}
	l.counts.ended += n
	r.tail += uint64(n)
	r.runs.extend(frame, r.tail)
	return n
}
