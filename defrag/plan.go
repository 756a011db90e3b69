package defrag

import (
	"cmp"
	"math/bits"
	"slices"
)

// occupancy is what the plan for an archetype looks at: one of its chunks.
type occupancy struct {
	base  uint32   // lowest cache index
	slots int      // of the chunk
	taken []uint64 // slots in use, a bit each
	stuck []uint64 // of these, the ones that may not move; nil if none
	fresh int      // slots from here on were never taken
	last  bool     // of the archetype: only the last chunk gives out fresh slots
	count int      // of taken
	keep  bool     // the plan's answer: entities stay in this chunk or come to it
}

func (o *occupancy) isStuck(slot int) bool {
	return o.stuck != nil && o.stuck[slot>>6]>>(slot&63)&1 != 0
}

// step is one move: from a slot of a chunk to one of another, or lower in the same.
type step struct {
	from, to         int32 // chunks
	fromSlot, toSlot uint32
}

// plan is the slot compaction of one archetype: a pure function of occupancy.
//
// It keeps the fewest chunks that hold all, and of these the ones with the lowest cache indices, as
// all others would have to move in the end anyway. Then the last slots in use, those of chunks
// that are not kept first, fill the lowest free ones of the kept chunks, until there is no free slot
// below a slot in use. So each entity moves at most once, and only those move that have to.
type plan struct {
	chunks []occupancy
	order  []int // of chunks, to choose from
	source cursor
	target cursor
}

// cursor walks over the slots of the kept or the other chunks: up for targets, down for sources.
type cursor struct{ chunk, slot int }

// choose says which chunks are kept, and answers how many slots are in use.
func (p *plan) choose() (need int) {
	p.order = p.order[:0]
	for i := range p.chunks {
		need += p.chunks[i].count
		p.order = append(p.order, i)
	}
	slices.SortStableFunc(p.order, func(i, k int) int {
		a, b := &p.chunks[i], &p.chunks[k]
		return cmp.Or(cmp.Compare(b.slots, a.slots), cmp.Compare(a.base, b.base))
	})
	room, n := 0, 0
	for ; room < need; n++ {
		room += p.chunks[p.order[n]].slots
		p.chunks[p.order[n]].keep = true
	}
	if n == 0 {
		return need
	}
	// A smaller chunk in place of the last one, if that is enough: the smallest.
	last := &p.chunks[p.order[n-1]]
	for i := len(p.order) - 1; i >= n; i-- {
		if c := &p.chunks[p.order[i]]; c.slots < last.slots && room-last.slots+c.slots >= need {
			c.keep, last.keep = true, false
			break
		}
	}
	return need
}

// begin chooses and says how many steps there are at most: as many as there are free slots among the
// first of the kept chunks, as many of them as there are slots in use.
func (p *plan) begin() int {
	need := p.choose()
	p.source, p.target = cursor{chunk: len(p.chunks)}, cursor{chunk: p.nextKept(-1)}
	p.previousSource(false)
	free := 0
	for i := range p.chunks {
		c := &p.chunks[i]
		if !c.keep || need == 0 {
			continue
		}
		n := min(need, c.slots)
		need -= n
		free += n - c.takenBelow(n)
	}
	return free
}

// takenBelow is how many of the lowest n slots are in use.
func (o *occupancy) takenBelow(n int) (taken int) {
	for k, word := range o.taken {
		taken += bits.OnesCount64(word & lowest(n-k<<6))
	}
	return taken
}

// lowest has the lowest n bits set, of 64.
func lowest(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<max(n, 0) - 1
}

// next gives the next step, in the order in which they are to be taken; false if there is none. The
// steps before need not have been taken.
func (p *plan) next() (step, bool) {
	if !p.findSource() || !p.findTarget() || !p.below() {
		return step{}, false
	}
	s := step{
		from: int32(p.source.chunk), fromSlot: uint32(p.source.slot),
		to: int32(p.target.chunk), toSlot: uint32(p.target.slot),
	}
	p.source.slot--
	p.target.slot++
	return s, true
}

// below says whether the target comes before the source, in a kept chunk.
func (p *plan) below() bool {
	s, t := p.source, p.target
	return !p.chunks[s.chunk].keep || t.chunk < s.chunk || t.chunk == s.chunk && t.slot < s.slot
}

func (p *plan) nextKept(i int) int {
	for i++; i < len(p.chunks) && !p.chunks[i].keep; i++ {
	}
	return i
}

// findTarget moves the target up to a free slot; false if there is none.
func (p *plan) findTarget() bool {
	t := &p.target
	for t.chunk < len(p.chunks) {
		c := &p.chunks[t.chunk]
		end := c.fresh
		if c.last {
			end = c.slots
		}
		for t.slot < end {
			free := ^c.taken[t.slot>>6] >> (t.slot & 63)
			if free == 0 {
				t.slot = t.slot&^63 + 64
				continue
			}
			if t.slot += bits.TrailingZeros64(free); t.slot < end {
				return true
			}
		}
		*t = cursor{chunk: p.nextKept(t.chunk)}
	}
	return false
}

// previousSource goes to the chunk before that is kept, or is not; from the first one that is not kept
// to the last one that is.
func (p *plan) previousSource(kept bool) {
	i := p.source.chunk - 1
	for ; i >= 0 && p.chunks[i].keep != kept; i-- {
	}
	if i < 0 && !kept {
		p.source.chunk = len(p.chunks)
		p.previousSource(true)
		return
	}
	p.source.chunk = i
	if i >= 0 {
		p.source.slot = p.chunks[i].slots - 1
	}
}

// findSource moves the source down to a slot in use that may move; false if there is none.
func (p *plan) findSource() bool {
	s := &p.source
	for s.chunk >= 0 {
		c := &p.chunks[s.chunk]
		for s.slot >= 0 {
			used := c.taken[s.slot>>6] << (63 - s.slot&63)
			if used == 0 {
				s.slot = s.slot&^63 - 1
				continue
			}
			if s.slot -= bits.LeadingZeros64(used); !c.isStuck(s.slot) {
				return true
			}
			s.slot--
		}
		p.previousSource(c.keep)
	}
	return false
}
