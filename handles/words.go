package handles

import "sync/atomic"

const (
	pageBits = 12
	pageSize = 1 << pageBits // words: 32 KiB
)

// PageSize is how many words a Page has, a power of two.
const PageSize = pageSize

// Page is a part of a table of words.
type Page [PageSize]atomic.Uint64

// Words is a table of atomic 8-byte words by index. A page is created when somebody first
// needs one of its words, and never moves or goes away: a pointer to a word stays good, and a
// reader needs no lock. A word of a page that does not exist reads as 0.
//
// A directory of fixed size beside fixed pages was chosen over one slice that grows by
// copying: a copy would lose the writes that other goroutines do to the old one meanwhile.
type Words struct {
	// The slice is written by NewWords only. Each entry is stored once, by the compare-and-swap
	// that wins, after the page was zeroed; whoever loads it sees the zeros.
	pages []atomic.Pointer[Page]
	limit uint32
}

// NewWords makes a table for the indices 0 to limit. It costs 8 bytes for every 4096 indices.
//
// Concurrency: any goroutine; never waits. Allocates: the directory.
func NewWords(limit uint32) *Words {
	w := newWords(limit)
	return &w
}

func newWords(limit uint32) Words {
	return Words{pages: make([]atomic.Pointer[Page], limit>>pageBits+1), limit: limit}
}

// Get loads word i; 0 if it was never created, or if i is beyond the limit.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *Words) Get(i uint32) uint64 {
	if n := int(i >> pageBits); n < len(w.pages) {
		if p := w.pages[n].Load(); p != nil {
			return p[i%pageSize].Load()
		}
	}
	return 0
}

// At is word i, or nil if its page was never created. The last page may go on beyond the limit;
// nobody writes there.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *Words) At(i uint32) *atomic.Uint64 {
	if n := int(i >> pageBits); n < len(w.pages) {
		if p := w.pages[n].Load(); p != nil {
			return &p[i%pageSize]
		}
	}
	return nil
}

// Ensure is word i, created if need be.
//
// Panics: if i is beyond the limit.
// Concurrency: any goroutine; never waits. Allocates: a page, once for 4096 words.
func (w *Words) Ensure(i uint32) *atomic.Uint64 {
	if at := w.At(i); at != nil && i <= w.limit {
		return at
	}
	return w.create(i)
}

func (w *Words) create(i uint32) *atomic.Uint64 {
	if i > w.limit {
		panic("handles: word beyond the limit of its table")
	}
	entry := &w.pages[i>>pageBits]
	p := new(Page)
	if !entry.CompareAndSwap(nil, p) {
		p = entry.Load() // another goroutine was first; ours was never seen
	}
	return &p[i%pageSize]
}

// firstOutside is the lowest index with a word that is not 0 and not in a set. For Verify.
func (w *Words) firstOutside(set *indexSet) (uint32, bool) {
	for n := range w.pages {
		p := w.pages[n].Load()
		if p == nil {
			continue
		}
		for i := range p {
			if index := uint32(n<<pageBits + i); p[i].Load() != 0 && !set.has(index) {
				return index, true
			}
		}
	}
	return 0, false
}
