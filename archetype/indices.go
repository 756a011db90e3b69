package archetype

import "fmt"

// Indices is a table of the cache indices themselves, at least up to n: element i is i. A part of
// it is what a loop shows as the column of cache indices of neighbouring slots, without a column to be
// stored or filled. It is made when it is first needed, and lengthened by making a longer one, so
// that parts handed out stay good. Nobody writes to it.
//
// Concurrency: any goroutine, several at once; never waits. Allocates: when
// the table is too short.
func (s *Store) Indices(n uint32) []uint32 {
	// Those that find it too short at the same time each make one. All are alike, so it does not
	// matter which is kept.
	if t := s.indices.Load(); t != nil && uint32(len(*t)) >= n {
		return *t
	}
	t := make([]uint32, max(n, 2*s.CacheCap()))
	for i := range t {
		t[i] = uint32(i)
	}
	s.indices.Store(&t)
	return t
}

// verifyIndices checks that nobody has written to the table.
func (s *Store) verifyIndices() error {
	if t := s.indices.Load(); t != nil {
		for i, index := range *t {
			if index != uint32(i) {
				return fmt.Errorf("archetype: a column of cache indices was written to: %d at %d", index, i)
			}
		}
	}
	return nil
}
