package views

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// nextRun finds the first run of set bits at or after slot from and below n. It answers n, n if
// there is none. A run goes on through words that are all ones, four at a time, so a full chunk
// costs a load for each 64 slots and a branch for each 256, and needs no path of its own.
//
// A word that decides where the run begins is loaded once: were it loaded again to find the
// end, a destroyer in between could make the run empty.
func nextRun(words []uint64, from, n int) (lo, hi int) {
	if from >= n {
		return n, n
	}
	words = words[:uint(n+63)>>6]
	w := uint(from) >> 6
	word := atomic.LoadUint64(&words[w]) &^ (1<<(uint(from)&63) - 1)
	for word == 0 {
		if w++; w >= uint(len(words)) {
			return n, n
		}
		word = atomic.LoadUint64(&words[w])
	}
	first := bits.TrailingZeros64(word)
	lo = int(w<<6) + first
	// Shifted down, the run starts at bit 0; the zeros that move in at the top end it at 64.
	hi = lo + bits.TrailingZeros64(^(word >> first))
	if hi&63 == 0 {
		w++
		for ; w+3 < uint(len(words)); w += 4 {
			next := words[w : w+4 : w+4]
			if atomic.LoadUint64(&next[0])&atomic.LoadUint64(&next[1])&
				atomic.LoadUint64(&next[2])&atomic.LoadUint64(&next[3]) != ^uint64(0) {
				break
			}
		}
		for w < uint(len(words)) && atomic.LoadUint64(&words[w]) == ^uint64(0) {
			w++
		}
		hi = int(w << 6)
		if w < uint(len(words)) {
			hi += bits.TrailingZeros64(^atomic.LoadUint64(&words[w]))
		}
	}
	if planted.Enabled && planted.Is(planted.RunOneTooLong) && hi&63 == 0 {
		hi++
	}
	return min(lo, n), min(hi, n)
}

// countLive counts the set bits below n.
func countLive(words []uint64, n int) int {
	live := 0
	full := n >> 6
	for i := range full {
		live += bits.OnesCount64(atomic.LoadUint64(&words[i]))
	}
	if rest := n & 63; rest != 0 {
		live += bits.OnesCount64(atomic.LoadUint64(&words[full]) & (1<<rest - 1))
	}
	return live
}

// show points the slices of the view struct at t to n slots of chunk c, from slot lo on.
//
// The fields of the struct are known by offset only, because T is the caller's; writing them
// through reflect costs some 20 ns a field, more than a short run. What makes it sound:
//   - offset is the reflect offset of a field of slice type in the struct that t points to,
//     and the words of a slice, whatever its element, are those of sliceHeader.
//   - the pointer is stored as a pointer, so the collector sees it, with its write barrier.
//   - the element type is the type the column was laid out with (the plan compares them), and
//     lo+n <= Allocated <= slots of the chunk, so the n elements are inside the column.
//
// The capacity ends the slice: append never writes a neighbour.
func (m *match) show(t unsafe.Pointer, c *archetype.Chunk, lo, n int) {
	for i := range m.fills {
		f := &m.fills[i]
		first := unsafe.Add(c.Column(f.slot), uintptr(lo)*f.size)
		*(*sliceHeader)(unsafe.Add(t, f.offset)) = sliceHeader{first, n, n}
	}
	if m.index >= 0 {
		m.showIndices(t, c, lo, n)
	}
}

// showIndices points the slice of cache indices to the part of the store's table that has them;
// sound as show is.
func (m *match) showIndices(t unsafe.Pointer, c *archetype.Chunk, lo, n int) {
	from := c.Base() + uint32(lo)
	to := from + uint32(n)
	*(*[]uint32)(unsafe.Add(t, m.index)) = m.arch.Store().Indices(to)[from:to:to]
}

// begin empties the slices that this archetype does not fill, after another one that did.
func (m *match) begin(t unsafe.Pointer) {
	for _, offset := range m.absent {
		*(*sliceHeader)(unsafe.Add(t, offset)) = sliceHeader{}
	}
}

// sliceHeader is what a slice of any type is made of.
type sliceHeader struct {
	first         unsafe.Pointer
	length, limit int
}

// A slice has these three words and no others.
var _ [unsafe.Sizeof([]byte(nil))]struct{} = [unsafe.Sizeof(sliceHeader{})]struct{}{}
