package registry

import (
	"maps"
	"runtime"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// While frames are simulated again, the words of those who have died since are what they were: alive. Their deaths come once
// more by themselves. So nobody else may destroy them meanwhile, or two callers would have destroyed one entity, and the second
// death would come where the first one did not.
//
// Before the registry goes back it notes who is dead. Who destroys looks there first; and since it could have looked before
// the note and destroy after the revival, the owner waits between the two for those who are inside. They are inside for some
// dozen instructions, and wait for nobody. With a journal, too, they count themselves in, see unseen.

// fates says who is dead in the present, while the registry is in the past. The owner writes.
type fates struct {
	noted *handles.LazyWords                     // of an index: the highest generation that is dead in the present, and the round that noted it
	burnt atomic.Pointer[map[handles.Local]bool] // dead as well, though an older generation may live; not written any more
	last  uint32                                 // round there was; owner only
	round atomic.Uint32                          // of the going back that is going on; 0 in the present
	epoch atomic.Uint32                          // which of inside those count that come in

	_      [64]byte
	inside [2]struct {
		n atomic.Int64
		_ [56]byte
	}
}

// enter counts a goroutine among those that look and destroy. It leaves by counting down what it gets.
//
// Happens-before: the owner raises epoch between the note and the revival. Who finds epoch as it was, after counting itself,
// is seen by the owner's wait; who does not, sees the note.
func (f *fates) enter() *atomic.Int64 {
	for {
		now := f.epoch.Load()
		n := &f.inside[now&1].n
		n.Add(1)
		if f.epoch.Load() == now {
			return n
		}
		n.Add(-1)
	}
}

// sealed says whether h is dead in the present. Any goroutine, inside.
func (f *fates) sealed(h handles.Local) bool {
	round := f.round.Load()
	if round == 0 || planted.Enabled && planted.Is(planted.PastForgetsTheDead) {
		return false
	}
	w := f.noted.Get(h.Index())
	if uint32(w) == round && h.Generation() <= uint32(w>>32) {
		return true
	}
	burnt := f.burnt.Load()
	return burnt != nil && (*burnt)[h]
}

// begin begins a round, if none is going on. Owner only.
func (f *fates) begin() {
	if f.round.Load() != 0 {
		return
	}
	if f.last++; f.last == 0 {
		f.last++
	}
	f.round.Store(f.last)
}

// note notes that h is dead in the present: wait comes between that and its revival. Owner only.
func (f *fates) note(h handles.Local) {
	word, round := f.noted.Ensure(h.Index()), f.round.Load()
	if w := word.Load(); uint32(w) != round || uint32(w>>32) < h.Generation() {
		word.Store(uint64(h.Generation())<<32 | uint64(round))
	}
}

// noteBurnt notes, of steps that are about to be undone, the names that callbacks which failed have given to somebody: those
// callbacks may run again, and give them again. Owner only.
func (f *fates) noteBurnt(steps []undoOp) {
	var burnt map[handles.Local]bool
	for i := range steps {
		if steps[i].kind != undoBurnt {
			continue
		}
		if burnt == nil {
			burnt = map[handles.Local]bool{}
			if had := f.burnt.Load(); had != nil {
				maps.Copy(burnt, *had)
			}
		}
		burnt[steps[i].h] = true
	}
	if burnt != nil {
		f.burnt.Store(&burnt)
	}
}

// wait returns when all have left who may not have seen what was noted. Owner only.
func (f *fates) wait() {
	n := &f.inside[(f.epoch.Add(1)-1)&1].n
	for n.Load() != 0 {
		runtime.Gosched()
	}
}

// end ends the round: the words tell the present again. Owner only.
func (f *fates) end() {
	f.round.Store(0)
	f.burnt.Store(nil)
}
