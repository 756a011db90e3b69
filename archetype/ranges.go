package archetype

import (
	"fmt"
	"slices"
	"sort"
)

// span is the numbers from lo up to hi, without hi.
type span struct{ lo, hi uint64 }

// ranges hands out ranges of numbers, always at the lowest place where one fits, and joins
// what comes back with its free neighbours. Slab offsets and cache indices are both numbers
// of this kind: low ranges keep external arrays short, and joined ones serve larger chunks.
//
// The search walks the free ranges, which are few: chunks of an archetype have one size, so
// nearly always the first range fits.
//
// Invariant: free is sorted, and between two free ranges there is a gap of taken numbers.
type ranges struct {
	free []span
	end  uint64 // one past the highest number ever given
}

// fit is where take would take n numbers.
func (r *ranges) fit(n uint64) (uint64, bool) {
	for _, f := range r.free {
		if f.hi-f.lo >= n {
			return f.lo, true
		}
	}
	return 0, false
}

// take is the lowest n numbers in a row; false if there are none.
func (r *ranges) take(n uint64) (uint64, bool) {
	for i := range r.free {
		f := &r.free[i]
		if f.hi-f.lo < n {
			continue
		}
		lo := f.lo
		f.lo += n
		if f.lo == f.hi {
			r.free = slices.Delete(r.free, i, i+1)
		}
		return lo, true
	}
	return 0, false
}

// takeAt takes n numbers from lo on, all of which are free.
func (r *ranges) takeAt(lo, n uint64) {
	i := sort.Search(len(r.free), func(i int) bool { return r.free[i].hi > lo })
	f := r.free[i]
	rest := make([]span, 0, 2)
	if f.lo < lo {
		rest = append(rest, span{f.lo, lo})
	}
	if lo+n < f.hi {
		rest = append(rest, span{lo + n, f.hi})
	}
	r.free = slices.Replace(r.free, i, i+1, rest...)
}

// give puts n numbers from lo (back) into the free ranges. None of them is free already.
func (r *ranges) give(lo, n uint64) {
	hi := lo + n
	r.end = max(r.end, hi)
	i := sort.Search(len(r.free), func(i int) bool { return r.free[i].lo >= lo })
	before := i > 0 && r.free[i-1].hi == lo
	after := i < len(r.free) && r.free[i].lo == hi
	switch {
	case before && after:
		r.free[i-1].hi = r.free[i].hi
		r.free = slices.Delete(r.free, i, i+1)
	case before:
		r.free[i-1].hi = hi
	case after:
		r.free[i].lo = lo
	default:
		r.free = slices.Insert(r.free, i, span{lo, hi})
	}
}

// high is one past the highest number that is taken.
func (r *ranges) high() uint64 {
	if last := len(r.free) - 1; last >= 0 && r.free[last].hi == r.end {
		return r.free[last].lo
	}
	return r.end
}

// count is how many numbers are free.
func (r *ranges) count() uint64 {
	var n uint64
	for _, f := range r.free {
		n += f.hi - f.lo
	}
	return n
}

func (r *ranges) verify() error {
	for i, f := range r.free {
		if f.lo >= f.hi || f.hi > r.end {
			return fmt.Errorf("archetype: free range %d-%d is empty or beyond %d", f.lo, f.hi, r.end)
		}
		if i > 0 && r.free[i-1].hi >= f.lo {
			return fmt.Errorf("archetype: free ranges %d-%d and %d-%d are not in order or not joined",
				r.free[i-1].lo, r.free[i-1].hi, f.lo, f.hi)
		}
	}
	return nil
}
