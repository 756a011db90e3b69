package views

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// spot is a slot in the order in which Advance goes: by archetype, chunk, slot. What has happened
// to the chunk since is looked up when it is used, so that an old spot is at worst a wrong place
// to go on from.
type spot struct {
	chunk *archetype.Chunk // nil: not known
	arch  int              // place of its archetype in the store's list, -1 if not known
	index int              // the chunk's place in the archetype's list, should it be gone
	slot  int
	stood bool // Advance stood there, whatever has become of the entity
}

func (s spot) known() bool { return s.chunk != nil }

func spotOf(ch *archetype.Chunk, slot uint32) spot {
	return spot{chunk: ch, arch: -1, index: ch.Index(), slot: int(slot)}
}

// Advance binds the cursor to the next living, active entity that has the component: in slot order
// within a chunk, then in the next chunks, then in the next archetypes in order of creation. At
// the end it answers false and the cursor stays where it was. One that is bound to no entity
// begins with the first, so Bind(0) starts anew.
//
// It goes on from the slot where the last Advance stood, so a loop's body may destroy the entity
// or have it move to another archetype, where it is met again if that comes later. After Bind it
// goes on from where the entity is. What is spawned into slots ahead is met, too. Between two
// calls, compaction may fill slots behind the cursor from slots ahead of it: those entities are
// passed over.
//
// Panics: with registry.ErrExpired if a is used after its callback, with registry.ErrReadOnly
// on a snapshot, with ErrForeign if a belongs to another registry.
//
// Concurrency: whoever holds a and the cursor. Allocates: no.
func (f *Field[V]) Advance(a registry.Access) bool {
	// Most often the next one is in the same chunk, and all there is to know of it is known.
	if ch := f.former.chunk; ch != nil && f.chunk == ch && f.former.stood && f.lease.Holds(a) {
		for slot := f.former.slot + 1; ; slot++ {
			if slot = nextLive(ch.Active(), slot, ch.Allocated()); slot < 0 {
				break
			}
			if h := ch.Entities()[slot]; f.lease.Shift(h) {
				f.h, f.former.slot = h, slot
				f.point(ch, uint32(slot))
				return true
			}
		}
	}
	return f.advanceFar(a)
}

// advanceFar is Advance with nothing known.
func (f *Field[V]) advanceFar(a registry.Access) bool {
	store := registry.Iterate(a)
	if store == nil {
		panic(fmt.Errorf("views: cursor on %v: %w", f.h, registry.ErrReadOnly))
	}
	defer registry.Finish(a)
	if a.Registry() != f.reg {
		panic(fmt.Errorf("%w: cursor on %v", ErrForeign, f.h))
	}
	list := store.Archetypes()
	arch, chunk, slot := f.next(a, list)
	for ; arch < len(list); arch, chunk, slot = arch+1, 0, 0 {
		if list[arch].Column(f.what.id) < 0 {
			continue
		}
		chunks := list[arch].Chunks()
		for ; chunk < len(chunks); chunk, slot = chunk+1, 0 {
			if slot = f.advanceIn(a, chunks[chunk], slot); slot >= 0 {
				f.former = spot{chunks[chunk], arch, chunk, slot, true}
				return true
			}
		}
	}
	return false
}

// advanceIn binds the cursor to the first entity of a chunk from a slot on and gives its slot, -1
// if there is none. The chunk's archetype has the component.
func (f *Field[V]) advanceIn(a registry.Access, ch *archetype.Chunk, slot int) int {
	for {
		if slot = nextLive(ch.Active(), slot, ch.Allocated()); slot < 0 {
			return -1
		}
		h := ch.Entities()[slot]
		if _, _, err := f.lease.Take(a, h); err == nil {
			f.h = h
			f.point(ch, uint32(slot))
			return slot
		}
		// Another goroutine has destroyed it, and its bit is not cleared yet. The lease that the
		// cursor had is gone; follow takes it again if this was the last.
		slot++
	}
}

// next is where Advance begins to look.
func (f *Field[V]) next(a registry.Access, list []*archetype.Archetype) (arch, chunk, slot int) {
	s := f.former
	if !s.stood && f.h != 0 {
		if ch, at, err := registry.Locate(a, f.h); err == nil {
			s = spotOf(ch, at)
		}
	}
	if !s.known() {
		return 0, 0, 0
	}
	if s.arch < 0 {
		s.arch = slices.Index(list, s.chunk.Archetype())
	}
	if s.arch < 0 || s.arch >= len(list) { // an archetype that was undone was the last
		return len(list), 0, 0
	}
	// A chunk keeps its slots, but its number changes when others are given back.
	if chunks, i := list[s.arch].Chunks(), s.chunk.Index(); i < len(chunks) && chunks[i] == s.chunk {
		s.index = i
	}
	return s.arch, s.index, s.slot + 1
}

// nextLive finds the first set bit from a slot on and below n, -1 if there is none.
func nextLive(words []uint64, from, n int) int {
	if from >= n {
		return -1
	}
	w := from >> 6
	word := atomic.LoadUint64(&words[w]) &^ (1<<(uint(from)&63) - 1)
	for word == 0 {
		if w++; w<<6 >= n || planted.Enabled && planted.Is(planted.CursorStopsAtWord) {
			return -1
		}
		word = atomic.LoadUint64(&words[w])
	}
	if slot := w<<6 + bits.TrailingZeros64(word); slot < n {
		return slot
	}
	return -1
}
