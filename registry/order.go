package registry

import (
	"math/bits"

	"github.com/airlock-ecs/airlock/handles"
)

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
// machine.
//
// It is a radix sort, least digit first, hence stable (Knuth, The Art of Computer
// Programming, vol. 3, 5.2.5). Owner only.
func (r *Registry) sortByPlace() {
	n := len(r.dying)
	if n < sortDeaths {
		return
	}
	highest, sorted := uint32(0), true
	for i := 1; i < n; i++ {
		sorted = sorted && r.graves[i-1].place <= r.graves[i].place
	}
	if sorted {
		return
	}
	for _, g := range r.graves {
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
