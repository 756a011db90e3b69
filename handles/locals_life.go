package handles

import (
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Kill ends h, which is alive or reserved. Of several killers exactly one wins, by one
// compare-and-swap, and gets the word as it was: state and place. From its return h is dead for
// everybody, but its index is not free before the owner calls Free.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Kill(h Local) (Word, bool) {
	word := l.words.At(h.Index())
	if word == nil {
		return 0, false
	}
	for {
		old := Word(word.Load())
		if planted.Enabled && planted.Is(planted.StaleKill) && old.Generation() > h.Generation() {
			h = NewLocal(h.Index(), old.Generation())
		}
		if old.Generation() != h.Generation() || old.State() != Alive && old.State() != Reserved {
			return 0, false
		}
		// Fails when the entity was moved, spawned, or killed meanwhile: look again.
		if word.CompareAndSwap(uint64(old), uint64(MakeWord(h.Generation(), Dying, old.Place()))) {
			return old, true
		}
	}
}

// change takes h from one state to another, and to a place. False if it is not in that state, or
// no longer. It retries when only the place changed meanwhile.
func (l *Locals) change(h Local, from, to State, place uint32) bool {
	word := l.words.At(h.Index())
	if word == nil {
		return false
	}
	for {
		old := word.Load()
		if old>>placeBits != life(h.Generation(), from) || h.Generation() == 0 {
			return false
		}
		if word.CompareAndSwap(old, uint64(MakeWord(h.Generation(), to, place))) {
			return true
		}
	}
}

// Spawned gives a reserved handle its entity. False if it is not reserved, or was killed meanwhile.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Spawned(h Local, place uint32) bool { return l.change(h, Reserved, Alive, place) }

// Unspawned takes Spawned back. False if the entity was killed meanwhile.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Unspawned(h Local) bool { return l.change(h, Alive, Reserved, NoPlace) }

// Revive takes a kill of an entity back: h names it again. h must not have been freed; false if
// it is not dying. A reserved handle that was killed is revived as an entity, for a word does
// not remember; ReviveReserved is for those.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Revive(h Local, place uint32) bool { return l.change(h, Dying, Alive, place) }

// ReviveReserved takes a kill of a reserved handle back. h must not have been freed; false if it
// is not dying.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) ReviveReserved(h Local) bool { return l.change(h, Dying, Reserved, NoPlace) }

// Move gives a living entity another place. False if it was killed meanwhile: a move yields to
// a destroyer, who has seen the old place.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Move(h Local, place uint32) bool { return l.change(h, Alive, Alive, place) }

// SetPlace gives h another place, whatever its state is, dying as well. It does nothing if h is
// not the current name of its index.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) SetPlace(h Local, place uint32) {
	word := l.words.At(h.Index())
	if word == nil {
		return
	}
	for {
		old := Word(word.Load())
		if old.Generation() != h.Generation() || old.State() == Free {
			return
		}
		if word.CompareAndSwap(uint64(old), uint64(MakeWord(h.Generation(), old.State(), place))) {
			return
		}
	}
}

// Free puts the index of a dying handle to pending, stamped with the frame of the call. An
// index whose last generation this was is retired instead. Each dead handle is freed once, in the
// space that owns its index.
//
// Concurrency: the owner only; never waits. Allocates: a segment, once for 1024 deaths, while more are pending than ever before.
func (l *Locals) Free(h Local, frame uint64) {
	// Written out for the usual death: calls less save a tenth of it.
	r := &l.recycles
	if at := r.tail & segmentMask; !check.Enabled && at != 0 && l.burnt.count == 0 && h.Generation() < l.generation.last && r.runs.extend(frame, r.tail+1) {
		l.counts.ended++
		r.tailSeg.names[at] = entry(h + 1) // the generation is in the low bits, and not at its end
		r.tail++
		return
	}
	l.freeSlow(h, frame)
}

func (l *Locals) freeSlow(h Local, frame uint64) {
	if check.Enabled && (l.Word(h.Index()).life() != life(h.Generation(), Dying) || !l.Owns(h.Index())) {
		check.Failf("handles: %v is freed, its word is %v %d, in its space %t",
			h, l.Word(h.Index()).State(), l.Word(h.Index()).Generation(), l.Owns(h.Index()))
	}
	if l.burnt.count > 0 {
		l.burnt.remove(h.Index())
	}
	l.counts.ended++
	if planted.Enabled && planted.Is(planted.WrapNotRetired) {
		l.recycles.add(entry(h+1), frame)
		return
	}
	if h.Generation() >= l.generation.last {
		l.counts.retired++
		l.change(h, Dying, Dying, NoPlace) // no later life does away with the place, and State shows it
		return
	}
	l.recycles.add(entry(h+1), frame) // the generation is in the low bits, and not at its end
}

// Unissue takes a claim back, the owner's Issue or Reserve: h is dead at once, its generation
// burned, and its index is the next to be claimed again, so that claims taken back in reverse
// order are claimed again in the same order. Stats are as before the claim, unless h had the
// last generation of its index, which is then retired. False if h was killed meanwhile: then
// the caller leaves it to whoever frees it. The space must own the index.
//
// Concurrency: the owner only; never waits. Allocates: when more claims are taken back than ever before.
func (l *Locals) Unissue(h Local) bool {
	if !l.change(h, Alive, Dying, NoPlace) && !l.change(h, Reserved, Dying, NoPlace) {
		return false
	}
	l.UnissueKilled(h)
	return true
}

// UnissueKilled is the rest of Unissue for h that the caller has killed, and that has no place: others may claim its index from
// now on. What they must not find of h any more goes before.
//
// Concurrency: the owner only; never waits. Allocates: as Unissue.
func (l *Locals) UnissueKilled(h Local) {
	if check.Enabled && (l.Word(h.Index()) != MakeWord(h.Generation(), Dying, NoPlace) || !l.Owns(h.Index())) {
		check.Failf("handles: %v is taken back, its word is %v %d, in its space %t",
			h, l.Word(h.Index()).State(), l.Word(h.Index()).Generation(), l.Owns(h.Index()))
	}
	l.counts.ended++
	switch unused := h.Generation() == l.generation.first || l.burnt.has(h.Index()); {
	case h.Generation() >= l.generation.last:
		l.burnt.remove(h.Index())
		l.counts.retired++
	case unused:
		l.burnt.add(h.Index())
		l.burned.push(entry(h + 1))
	default:
		l.counts.freed++
		l.comeback = true
		l.recycles.slowNext()
		l.returned.push(entry(h + 1))
	}
}
