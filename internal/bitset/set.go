package bitset

import (
	"fmt"
	"math/bits"
)

// maxLevels is how many levels of 64-way words cover 32 bits: 64^6 > 2^32.
const maxLevels = 6

// Set is a set of uint32. The zero value is empty and ready for use. A set whose highest
// member ever was n takes about n/8 bytes.
//
// Invariant: bit i of level l+1 is set exactly if word i of level l is not zero; the top level
// is one word; count is the number of set bits of level 0.
//
// Concurrency: none of its own. One goroutine at a time, ordered by whoever owns the set.
type Set struct {
	levels [maxLevels][]uint64 // level 0 has a bit for each number
	depth  int                 // levels in use; 0 until the first Add
	count  int
}

// Has says whether i is in the set.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) Has(i uint32) bool {
	w := int(i >> 6)
	return w < len(s.levels[0]) && s.levels[0][w]>>(i&63)&1 != 0
}

// Len is the number of members.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) Len() int { return s.count }

// Add puts i into the set and says whether it is new there.
//
// Concurrency: the set's owner; never waits. Allocates: when i is beyond every number added before.
func (s *Set) Add(i uint32) bool { return s.TryAdd(i) || s.addSlow(i) }

// TryAdd is Add as long as that changes one word: i is new, and has a neighbour in the set
// already. Else it does nothing and answers false. It is the usual case, small enough to be
// inlined.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) TryAdd(i uint32) bool {
	leaf := s.levels[0]
	if int(i>>6) >= len(leaf) {
		return false
	}
	old := leaf[i>>6]
	if old == 0 || old>>(i&63)&1 != 0 {
		return false
	}
	leaf[i>>6] = old | 1<<(i&63)
	s.count++
	return true
}

// AddWord adds the numbers of one block of 64, those whose bit is set in mask, if none of them is in the set and the
// set reaches so far. Else it does nothing and answers false.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) AddWord(block uint32, mask uint64) bool {
	leaf := s.levels[0]
	if int(block) >= len(leaf) || leaf[block]&mask != 0 || mask == 0 {
		return false
	}
	old := leaf[block]
	leaf[block] = old | mask
	s.count += bits.OnesCount64(mask)
	for l, i := 1, block; old == 0 && l < s.depth; l, i = l+1, i>>6 {
		word := &s.levels[l][i>>6]
		old = *word
		*word = old | 1<<(i&63)
	}
	return true
}

// RemoveWord removes the numbers of one block of 64, those whose bit is set in mask, if all of them are in the set.
// Else it does nothing and answers false.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) RemoveWord(block uint32, mask uint64) bool {
	leaf := s.levels[0]
	if int(block) >= len(leaf) || leaf[block]&mask != mask || mask == 0 {
		return false
	}
	leaf[block] &^= mask
	s.count -= bits.OnesCount64(mask)
	left := leaf[block]
	for l, i := 1, block; left == 0 && l < s.depth; l, i = l+1, i>>6 {
		word := &s.levels[l][i>>6]
		*word &^= 1 << (i & 63)
		left = *word
	}
	return true
}

func (s *Set) addSlow(i uint32) bool {
	if int(i>>6) >= len(s.levels[0]) {
		s.grow(i)
	}
	if s.levels[0][i>>6]>>(i&63)&1 != 0 {
		return false
	}
	s.count++
	for l := 0; l < s.depth; l++ {
		word := &s.levels[l][i>>6]
		old := *word
		*word = old | 1<<(i&63)
		if old != 0 {
			break // the levels above know already
		}
		i >>= 6
	}
	return true
}

// Remove takes i out of the set and says whether it was there.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) Remove(i uint32) bool { return s.TryRemove(i) || s.removeSlow(i) }

// TryRemove is Remove as long as that changes one word: i is in the set, and so is a
// neighbour. Else it does nothing and answers false. See TryAdd.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) TryRemove(i uint32) bool {
	leaf := s.levels[0]
	if int(i>>6) >= len(leaf) {
		return false
	}
	old := leaf[i>>6]
	rest := old &^ (1 << (i & 63))
	if rest == 0 || rest == old {
		return false
	}
	leaf[i>>6] = rest
	s.count--
	return true
}

func (s *Set) removeSlow(i uint32) bool {
	if !s.Has(i) {
		return false
	}
	s.count--
	for l := 0; l < s.depth; l++ {
		word := &s.levels[l][i>>6]
		*word &^= 1 << (i & 63)
		if *word != 0 {
			break // the levels above still speak the truth
		}
		i >>= 6
	}
	return true
}

// First is the lowest member; false if the set is empty.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) First() (uint32, bool) {
	if s.count == 0 {
		return 0, false
	}
	return s.descend(s.depth, 0), true
}

// Next is the lowest member that is not below from; false if there is none.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) Next(from uint32) (uint32, bool) {
	i := from
	for l := 0; l < s.depth; l++ {
		w := i >> 6
		if int(w) >= len(s.levels[l]) {
			return 0, false
		}
		if m := s.levels[l][w] & (^uint64(0) << (i & 63)); m != 0 {
			return s.descend(l, w<<6|uint32(bits.TrailingZeros64(m))), true
		}
		i = w + 1 // this word is done: look for a later one in the level above
	}
	return 0, false
}

// TryTake takes the lowest member out of a word of 64, as long as it is not the only one there. Else it does nothing and
// answers false. See TryAdd.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) TryTake(word uint32) (uint32, bool) {
	leaf := s.levels[0]
	if int(word) >= len(leaf) {
		return 0, false
	}
	m := leaf[word]
	rest := m & (m - 1)
	if rest == 0 {
		return 0, false
	}
	leaf[word] = rest
	s.count--
	return word<<6 | uint32(bits.TrailingZeros64(m)), true
}

// Clear empties the set and keeps its memory.
//
// Concurrency: the set's owner; never waits. Allocates: no.
func (s *Set) Clear() {
	for l := range s.depth {
		clear(s.levels[l])
	}
	s.count = 0
}

// Verify checks the invariant of the whole set.
//
// Concurrency: the set's owner; never waits. Allocates: only for an error.
func (s *Set) Verify() error {
	n := 0
	for _, w := range s.level(0) {
		n += bits.OnesCount64(w)
	}
	if n != s.count {
		return fmt.Errorf("bitset: %d members counted, %d recorded", n, s.count)
	}
	for l := 0; l+1 < s.depth; l++ {
		for i, w := range s.levels[l] {
			has := s.levels[l+1][i>>6]>>(i&63)&1 != 0
			if has != (w != 0) {
				return fmt.Errorf("bitset: level %d word %d is %#x, its summary says %t", l, i, w, has)
			}
		}
	}
	if s.depth > 0 && len(s.levels[s.depth-1]) != 1 {
		return fmt.Errorf("bitset: the top level has %d words", len(s.levels[s.depth-1]))
	}
	return nil
}

// level is level l, nil if it is not in use.
func (s *Set) level(l int) []uint64 {
	if l >= s.depth {
		return nil
	}
	return s.levels[l]
}

// descend goes from a word i of level l (one that is not empty) down to its lowest member.
func (s *Set) descend(l int, i uint32) uint32 {
	for l--; l >= 0; l-- {
		i = i<<6 | uint32(bits.TrailingZeros64(s.levels[l][i]))
	}
	return i
}

// grow makes every level long enough for i. Levels are filled from below, so the summary of
// a level that was the top until now is known: its one word was word 0.
func (s *Set) grow(i uint32) {
	words := int(i>>6) + 1
	for l := 0; ; l++ {
		fresh := l >= s.depth
		s.levels[l] = lengthen(s.levels[l], words)
		if fresh {
			s.depth = l + 1
			if l > 0 && s.levels[l-1][0] != 0 {
				s.levels[l][0] |= 1
			}
		}
		if words == 1 && l+1 >= s.depth {
			return
		}
		words = (words + 63) / 64
	}
}

// lengthen makes words at least n long, with zeros, and at least doubles what it allocates.
func lengthen(words []uint64, n int) []uint64 {
	if n <= len(words) {
		return words
	}
	if n <= cap(words) {
		return words[:n] // beyond len nothing was ever written
	}
	longer := make([]uint64, n, max(n, 2*cap(words)))
	copy(longer, words)
	return longer
}
