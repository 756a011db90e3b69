package handles

import (
	"fmt"

	"github.com/airlock-ecs/airlock/internal/bitset"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Globals is the space of record indices. A freed index is ready at once: its generation rises
// with the death, so whoever holds the old name finds out by comparing. The owner issues and
// frees, any goroutine asks for generations.
//
// Invariant: each index that was ever issued is in exactly one of these: issued, free, retired,
// or burned (never used but by claims that were taken back).
type Globals struct {
	// How often the generation of an index was ended: an index that was never freed needs no
	// word, so issuing a fresh one costs no locked operation. retiredMark when there is no next
	// generation. Stored by the owner; that store is what makes an old handle stale.
	ended      *LazyWords
	generation generations

	// Owner only.
	limit   uint32
	fresh   uint64     // cursor: all indices below it are in used
	used    indexSet   // issued at least once
	settled indexSet   // freed at least once: else only claims that were taken back have used it
	free    bitset.Set // settled, ready for reuse
	burned  bitset.Set // used and ready, but never settled
	issued  int
	retired int
}

// retiredMark is the word of an index past its last generation: its generation reads 0, which no
// handle has.
const retiredMark = 1 << 32

// NewGlobals makes an empty space with indices up to limit. generationBits is a knob of the
// tests: the width of a generation, 0 for 32.
//
// Panics: if generationBits is out of range.
// Concurrency: any goroutine; never waits. Allocates: the directory of the words.
func NewGlobals(limit uint32, generationBits uint8) *Globals {
	return newGlobals(limit, newGenerations(generationBits, 0))
}

func newGlobals(limit uint32, g generations) *Globals {
	return &Globals{ended: NewLazyWords(limit), generation: g, limit: limit, fresh: 1}
}

// Generation is the generation of an index's name: of the current one if the index is issued, of
// the next one if not; 0 if it will have none.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (g *Globals) Generation(index uint32) uint32 {
	ended := g.ended.Get(index)
	if ended == retiredMark {
		return 0
	}
	return g.generation.first + uint32(ended)
}

// Handle is the current name of an index that is issued.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (g *Globals) Handle(index uint32) Global { return NewGlobal(index, g.Generation(index)) }

// Issue claims an index: prefer, if it is free, or if it was never used while no used one is
// free; else the lowest free used one; else the lowest one never used. 0 if there is none.
//
// Concurrency: the owner only; never waits. Allocates: while an index is beyond all used before.
func (g *Globals) Issue(prefer uint32) uint32 {
	if g.free.Remove(prefer) {
		g.issued++
		return prefer
	}
	return g.issueOther(prefer)
}

// TryIssue is Issue of an index that is free, in the usual case and small enough to be inlined;
// false says to call Issue.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (g *Globals) TryIssue(prefer uint32) bool {
	if !g.free.TryRemove(prefer) {
		return false
	}
	g.issued++
	return true
}

func (g *Globals) issueOther(prefer uint32) uint32 {
	index, ok := g.free.First()
	switch {
	case ok:
		g.free.Remove(index)
	case prefer != 0 && prefer <= g.limit && (!g.used.has(prefer) || g.burned.Has(prefer)):
		index = prefer
	default:
		if index = g.lowestUnused(); index == 0 {
			return 0
		}
	}
	if !ok {
		g.used.add(index)
		g.burned.Remove(index)
	}
	g.issued++
	return index
}

// lowestUnused is the lowest index that was never used, or only by claims taken back; 0 if there is none.
func (g *Globals) lowestUnused() uint32 {
	for g.fresh <= uint64(g.limit) && g.used.has(uint32(g.fresh)) {
		g.fresh++
	}
	if b, ok := g.burned.First(); ok && uint64(b) < g.fresh {
		return b
	}
	if g.fresh > uint64(g.limit) {
		return 0
	}
	return uint32(g.fresh)
}

// Free ends the name of an issued index. The index is free at once, with the next generation, or
// retired if there is none.
//
// Concurrency: the owner only; never waits. Allocates: a page of words, once for 4096 indices.
func (g *Globals) Free(index uint32) {
	g.settled.add(index)
	if g.end(index) {
		g.free.Add(index)
	}
}

// FreeOwn is Free for an index whose name nobody gets from Generation, because the index has its
// generation from elsewhere: it was given to the same local index in all its lives, and that
// index's generation names it. generation is the one that ends. This spares the locked operation
// that ends a generation here. Raise is for when the index is given to another one.
//
// Concurrency: the owner only; never waits. Allocates: a page of marks, once for 4096 indices.
func (g *Globals) FreeOwn(index, generation uint32) {
	if check.Enabled && (!g.used.has(index) || g.free.Has(index) || g.burned.Has(index)) {
		check.Failf("handles: global index %d is freed, and not issued", index)
	}
	if generation >= g.generation.last {
		g.Raise(index, generation)
		g.Free(index)
		return
	}
	if !g.settled.has(index) {
		g.settled.add(index)
	}
	g.issued--
	g.free.Add(index)
}

// FreeOwnAll is FreeOwn for the indices and generations of many local handles.
//
// Concurrency: the owner only; never waits; the caller keeps hs. Allocates: as FreeOwn.
func (g *Globals) FreeOwnAll(hs []Local) {
	for len(hs) > 0 {
		block, mask, n := ofBlock(hs, uint64(g.generation.last))
		if !check.Enabled && n > 1 && g.settled.hasAll(block, mask) && g.free.AddWord(block, mask) {
			g.issued -= n
			hs = hs[n:]
			continue
		}
		g.FreeOwn(hs[0].Index(), hs[0].Generation())
		hs = hs[1:]
	}
}

// IssueRun issues the indices of neighbouring local handles, each for its own. It says how many, from the front: it
// ends at the first that Issue has to be asked for.
//
// Concurrency: the owner only; never waits; the caller keeps hs. Allocates: no.
func (g *Globals) IssueRun(hs []Local) int {
	done := 0
	for done < len(hs) {
		block, mask, n := ofBlock(hs[done:], 1<<32)
		if !g.free.RemoveWord(block, mask) {
			break
		}
		g.issued += n
		done += n
	}
	return done
}

// ofBlock is how many handles, from the front of hs, have different indices of one block of 64 and generations below a bound;
// mask has those indices. Most are consecutive.
func ofBlock(hs []Local, below uint64) (block uint32, mask uint64, n int) {
	block = hs[0].Index() >> 6
	for n < len(hs) && hs[n].Index()>>6 == block && uint64(hs[n].Generation()) < below {
		bit := hs[n].Index() & 63
		k := sequence(hs[n:], int(64-bit))
		more := ^uint64(0) >> (64 - k) << bit
		if mask&more != 0 {
			break
		}
		mask |= more
		n += k
	}
	return block, mask, n
}

// Raise makes the generation of an issued index at least so high. False if there is none so high:
// then the index is retired, and issued to nobody.
//
// Concurrency: the owner only; never waits. Allocates: a page of words, once for 4096 indices.
func (g *Globals) Raise(index, generation uint32) bool {
	word := g.ended.Ensure(index)
	switch {
	case generation > g.generation.last || generation == 0:
		g.settled.add(index)
		word.Store(retiredMark)
		g.issued--
		g.retired++
		return false
	case g.generation.first+uint32(word.Load()) < generation:
		word.Store(uint64(generation - g.generation.first))
	}
	return true
}

// Unissue takes Issue back: the name is dead, its generation burned, and the index where Issue
// found it.
//
// Concurrency: the owner only; never waits. Allocates: while an index is beyond all taken back before.
func (g *Globals) Unissue(index uint32) {
	switch more := g.end(index); {
	case !more:
		g.settled.add(index)
	case g.settled.has(index):
		g.free.Add(index)
	default:
		g.burned.Add(index)
	}
}

// end ends the current generation, and says whether there is another one.
func (g *Globals) end(index uint32) bool {
	if check.Enabled && (!g.used.has(index) || g.free.Has(index) || g.burned.Has(index) || g.Generation(index) == 0) {
		check.Failf("handles: global index %d is freed, and not issued", index)
	}
	g.issued--
	word := g.ended.Ensure(index)
	ended := word.Load()
	if g.generation.first+uint32(ended) >= g.generation.last {
		word.Store(retiredMark)
		g.retired++
		return false
	}
	if planted.Enabled && planted.Is(planted.RecordGenerationKept) {
		return true
	}
	word.Store(ended + 1)
	return true
}

// Stats counts the indices. Nothing is ever pending here.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (g *Globals) Stats() SpaceStats {
	return SpaceStats{Issued: g.issued, Free: g.free.Len(), Retired: g.retired}
}

// Verify walks the whole space and says what contradicts its invariants.
//
// Concurrency: the owner only; never waits. Allocates: only for an error.
func (g *Globals) Verify() error {
	if err := g.free.Verify(); err != nil {
		return fmt.Errorf("globals: free: %w", err)
	}
	if err := g.burned.Verify(); err != nil {
		return fmt.Errorf("globals: burned: %w", err)
	}
	issued, retired, below := 0, 0, uint64(0)
	for index := range g.used.all() {
		free, burned, gone := g.free.Has(index), g.burned.Has(index), g.ended.Get(index) == retiredMark
		switch {
		case index == 0 || index > g.limit:
			return fmt.Errorf("globals: index %d was issued, the limit is %d", index, g.limit)
		case free && burned, gone && (free || burned):
			return fmt.Errorf("globals: index %d: free %t, burned %t, retired %t", index, free, burned, gone)
		case burned && g.settled.has(index), free && !g.settled.has(index):
			return fmt.Errorf("globals: index %d: free %t, burned %t, settled %t", index, free, burned, g.settled.has(index))
		case gone:
			retired++
		case !free && !burned:
			issued++
		}
		if uint64(index) < g.fresh {
			below++
		}
	}
	if below != g.fresh-1 {
		return fmt.Errorf("globals: %d indices below %d were issued", below, g.fresh)
	}
	if i, ok := g.ended.firstOutside(&g.used); ok {
		return fmt.Errorf("globals: index %d has a past, and was never issued", i)
	}
	for _, set := range []*bitset.Set{&g.free, &g.burned} {
		for i, ok := set.First(); ok; i, ok = set.Next(i + 1) {
			if !g.used.has(i) {
				return fmt.Errorf("globals: index %d is free again, and was never issued", i)
			}
		}
	}
	if issued != g.issued || retired != g.retired {
		return fmt.Errorf("globals: %d issued and %d retired found, %d and %d counted", issued, retired, g.issued, g.retired)
	}
	return nil
}
