package handles

import (
	"errors"
	"fmt"
)

// The state of a space is what it needs to go on identically, as plain data for a file: words and
// lists, and nothing of how it came about. Where two spaces behave identically from now on, their
// states are equal: lists hold no name that is out of date, positions are left out, sets are in
// ascending order, and a dead index has no place.
//
// Restore trusts nothing: a file may say anything. What it accepts, State gives back unchanged.

// ErrNotFresh reports that a state was to be restored into a space that is in use.
var ErrNotFresh = errors.New("handles: the space is not fresh")

// ErrState reports a saved state that no space can have been in.
var ErrState = errors.New("handles: impossible state")

func stateError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrState}, args...)...)
}

// stretch is a bit for each index of a state, from its first one on: no larger than the words that
// the state brought with it.
type stretch struct {
	first uint64
	count uint64
	bits  []uint64
}

func newStretch(first uint32, count int) *stretch {
	return &stretch{first: uint64(first), count: uint64(count), bits: make([]uint64, (count+63)/64)}
}

// within says whether an index has a word in the state.
func (s *stretch) within(index uint32) bool {
	return uint64(index) >= s.first && uint64(index)-s.first < s.count
}

// has says whether an index within was marked.
func (s *stretch) has(index uint32) bool {
	i := uint64(index) - s.first
	return s.bits[i/64]>>(i%64)&1 != 0
}

// mark marks an index within.
func (s *stretch) mark(index uint32) {
	i := uint64(index) - s.first
	s.bits[i/64] |= 1 << (i % 64)
}

// markOnce marks an index of a list, and says what is wrong with it.
func (s *stretch) markOnce(list string, index uint32) error {
	if !s.within(index) {
		return stateError("%s: index %d is out of range", list, index)
	}
	if s.has(index) {
		return stateError("%s: index %d is there twice, or in another list too", list, index)
	}
	s.mark(index)
	return nil
}

// checkAscending says whether indices are each above the one before it.
func checkAscending(list string, indices []uint32) error {
	for i := 1; i < len(indices); i++ {
		if indices[i] <= indices[i-1] {
			return stateError("%s: index %d follows %d", list, indices[i], indices[i-1])
		}
	}
	return nil
}

// restore fills a line that was never used: free names first, then pending ones with their frames.
func (r *recycles) restore(free, pending []entry, frames []uint64) {
	for _, name := range free {
		r.add(name, 0)
	}
	r.confirmTo(r.runs.through(0, r.confirmed))
	for i, name := range pending {
		r.add(name, frames[i])
	}
}
