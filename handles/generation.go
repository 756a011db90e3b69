package handles

import "math"

// generations is the range of generations of a space. The width is a knob of the tests, so
// that the end of a generation is met within a few lives.
type generations struct {
	first uint32 // of an index that was never claimed
	last  uint32 // an index whose last generation has died is retired
}

func newGenerations(width uint8, first uint32) generations {
	g := generations{first: max(first, 1), last: math.MaxUint32}
	if width > 32 {
		panic("handles: a generation has at most 32 bits")
	}
	if width > 0 {
		g.last = uint32(uint64(1)<<width - 1)
	}
	if g.first > g.last {
		panic("handles: first generation beyond the last one")
	}
	return g
}
