package handles

import (
	"iter"
	"math/bits"
)

// indexSet is a plain set of indices, in pages, for few or many of them anywhere. Owner only.
type indexSet struct {
	pages []*[pageSize / 64]uint64
	count int
}

func (s *indexSet) has(i uint32) bool {
	if n := int(i >> pageBits); n < len(s.pages) {
		if p := s.pages[n]; p != nil {
			return p[i%pageSize/64]>>(i%64)&1 != 0
		}
	}
	return false
}

// hasAll says whether the indices of one block of 64 are in the set whose bit is set in mask.
func (s *indexSet) hasAll(block uint32, mask uint64) bool {
	if n := int(block >> (pageBits - 6)); n < len(s.pages) {
		if p := s.pages[n]; p != nil {
			return p[block%(pageSize/64)]&mask == mask
		}
	}
	return false
}

func (s *indexSet) add(i uint32) {
	n := int(i >> pageBits)
	if n >= len(s.pages) {
		s.pages = append(s.pages, make([]*[pageSize / 64]uint64, n+1-len(s.pages))...)
	}
	if s.pages[n] == nil {
		s.pages[n] = new([pageSize / 64]uint64)
	}
	if !s.has(i) {
		s.pages[n][i%pageSize/64] |= 1 << (i % 64)
		s.count++
	}
}

func (s *indexSet) remove(i uint32) {
	if s.has(i) {
		s.pages[i>>pageBits][i%pageSize/64] &^= 1 << (i % 64)
		s.count--
	}
}

// clear takes all out, and keeps the memory.
func (s *indexSet) clear() {
	if s.count == 0 {
		return
	}
	for _, p := range s.pages {
		if p != nil {
			clear(p[:])
		}
	}
	s.count = 0
}

// appendTo appends the members to a slice, ascending.
func (s *indexSet) appendTo(members []uint32) []uint32 {
	if s.count == 0 {
		return members
	}
	for i := range s.all() {
		members = append(members, i)
	}
	return members
}

// all yields the members, ascending.
func (s *indexSet) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for n, p := range s.pages {
			if p == nil {
				continue
			}
			for w, word := range p {
				for ; word != 0; word &= word - 1 {
					if !yield(uint32(n<<pageBits + w*64 + bits.TrailingZeros64(word))) {
						return
					}
				}
			}
		}
	}
}
