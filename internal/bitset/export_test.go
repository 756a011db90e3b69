package bitset

// Reaches says whether the set has a word for i.
func (s *Set) Reaches(i uint32) bool { return int(i>>6) < len(s.levels[0]) }
