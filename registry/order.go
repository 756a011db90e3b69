package registry

import (
	"math"
	"math/bits"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What depends on nothing but the operations of frames must not depend on cache indices: which chunk gets
// which of them, and so whether the chunks of one archetype lie before those of another, depends on how large
// chunks are. Where deaths are put in order, and it shows in the names that are free afterwards, it is the
// order in which loops meet the dead: by the archetypes' age, by chunk, by slot.

// turnOf is a number that rises in that order. A chunk has at most 1<<12 slots, and there are fewer than 1<<24 chunks.
func turnOf(ch *archetype.Chunk, slot uint32) uint64 {
	return uint64(ch.Archetype().Ordinal())<<36 | uint64(ch.Index())<<12 | uint64(slot)
}

// lastTurn is above all turns.
const lastTurn = math.MaxUint64

const (
	// sortDeaths is how many deaths have to wait before they are sorted. Fewer are in the
	// cache anyway.
	sortDeaths = 1 << 12
	digitBits  = 11
	digits     = 1 << digitBits
)

// sortByPlace brings many deaths into the order of their slots. After a random massacre of
// half a million entities every slot, word and bit would be a cache miss of its own, at
// reclaim and again when the indices are issued: sorting costs a tenth of that
// (BenchmarkHoles). Indices are still reused in the order of the frames they were freed in;
// among those of one frame the order is the registry's to choose, and the same on every
// machine. Where deaths are late it is the order of loops, which chunks do not decide.
//
// It is a radix sort, least digit first, hence stable (Knuth, The Art of Computer
// Programming, vol. 3, 5.2.5). Owner only.
func (r *Registry) sortByPlace() {
	n := len(r.dying)
	if n < sortDeaths {
		return
	}
	if r.late() {
		r.rankGraves()
		defer r.unrankGraves()
	}
	highest, sorted := uint32(0), 0
	for sorted < n && r.graves[sorted].place >= highest {
		highest = r.graves[sorted].place
		sorted++
	}
	if sorted == n {
		return
	}
	for _, g := range r.graves[sorted:] {
		highest = max(highest, g.place)
	}
	if cap(r.spareDying) < n {
		r.spareDying = make([]handles.Local, n, cap(r.dying))
		r.spareGraves = make([]grave, n, cap(r.graves))
	}
	from, fromG := r.dying, r.graves
	to, toG := r.spareDying[:n], r.spareGraves[:n]
	for shift := 0; shift < bits.Len32(highest); shift += digitBits {
		var at [digits]uint32 // where the next one with that digit goes
		for _, g := range fromG {
			at[g.place>>shift%digits]++
		}
		sum := uint32(0)
		for d := range at {
			at[d], sum = sum, sum+at[d]
		}
		for i, g := range fromG {
			d := g.place >> shift % digits
			to[at[d]], toG[at[d]] = from[i], g
			at[d]++
		}
		from, fromG, to, toG = to, toG, from, fromG
	}
	r.dying, r.graves = from, fromG
	r.spareDying, r.spareGraves = to, toG
}

// rankGraves puts into each grave, instead of its place, the one that its slot would have if the chunks had their
// cache indices in the order of loops. Owner only.
func (r *Registry) rankGraves() {
	words := int(r.store.CacheCap()+63) / 64
	r.ranks = slices.Grow(r.ranks[:0], words)[:words]
	r.ranked = r.ranked[:0]
	for _, a := range r.store.Archetypes() {
		for _, c := range a.Chunks() {
			first := c.Base() >> 6
			for word := first; word < first+uint32(c.Slots()>>6); word++ {
				r.ranks[word] = uint32(len(r.ranked))
				r.ranked = append(r.ranked, word)
			}
		}
	}
	r.swapPlaces(r.ranks)
}

// unrankGraves takes rankGraves back. Owner only.
func (r *Registry) unrankGraves() { r.swapPlaces(r.ranked) }

// swapPlaces gives all graves that have a place that of another word of 64 slots.
func (r *Registry) swapPlaces(to []uint32) {
	for i := range r.graves {
		if g := &r.graves[i]; g.place != handles.NoPlace {
			g.place = to[g.place>>6]<<6 | g.place&63
		}
	}
}
