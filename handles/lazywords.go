package handles

import "sync/atomic"

// LazyWords is a table of words like Words whose directory is made when the first word is:
// for tables that many registries never write to. A look-up costs one more load.
//
// Make one with NewLazyWords.
type LazyWords struct {
	words atomic.Pointer[Words] // stored once, by whoever needs it first
	limit uint32
}

// NewLazyWords makes an empty table of the words 0 to limit.
//
// Concurrency: any goroutine. Allocates: no more than the value itself.
func NewLazyWords(limit uint32) *LazyWords { return &LazyWords{limit: limit} }

// Unused says whether no word was ever created.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *LazyWords) Unused() bool { return l.words.Load() == nil }

// Get loads word i; 0 if it was never created.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *LazyWords) Get(i uint32) uint64 {
	if w := l.words.Load(); w != nil {
		return w.Get(i)
	}
	return 0
}

// At is word i, or nil if its page was never created.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *LazyWords) At(i uint32) *atomic.Uint64 {
	if w := l.words.Load(); w != nil {
		return w.At(i)
	}
	return nil
}

// Ensure is word i, created if need be.
//
// Panics: if i is beyond the limit.
// Concurrency: any goroutine; never waits. Allocates: the directory, once; a page, once for
// 4096 words.
func (l *LazyWords) Ensure(i uint32) *atomic.Uint64 {
	w := l.words.Load()
	if w == nil {
		made := NewWords(l.limit)
		if w = made; !l.words.CompareAndSwap(nil, made) {
			w = l.words.Load() // another goroutine was first; ours was never seen
		}
	}
	return w.Ensure(i)
}

// firstOutside is as that of Words.
func (l *LazyWords) firstOutside(s *indexSet) (uint32, bool) {
	if w := l.words.Load(); w != nil {
		return w.firstOutside(s)
	}
	return 0, false
}
