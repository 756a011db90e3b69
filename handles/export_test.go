package handles

// Recycles is the line of recycles, for tests that walk over its segments.
type Recycles struct{ recycles }

func (r *Recycles) Add(name, frame uint64) { r.add(entry(name), frame) }

func (r *Recycles) Next() (uint64, bool) {
	name, ok := r.next()
	return uint64(name), ok
}

func (r *Recycles) Scan(claim func(uint64) bool) (uint64, bool) {
	name, ok := r.scan(func(e entry) bool { return claim(uint64(e)) })
	return uint64(name), ok
}

func (r *Recycles) ConfirmThrough(frame uint64) int                  { return r.confirmThrough(frame) }
func (r *Recycles) ConfirmWhile(ok func(seq, frame uint64) bool) int { return r.confirmWhile(ok) }
func (r *Recycles) Pending() int                                     { return r.pending() }
func (r *Recycles) Publish()                                         { r.publish() }
func (r *Recycles) Verify() error                                    { return r.verify() }
func (r *Recycles) Segments() int                                    { return int(r.peak) + len(r.spare) }
func (r *Recycles) OldestFrame() uint64                              { return r.runs.oldest() }

// Undone is the stack of names taken back.
type Undone struct{ undone }

func (u *Undone) Push(name uint64) { u.push(entry(name)) }

func (u *Undone) Pop() (uint64, bool) {
	name, ok := u.pop()
	return uint64(name), ok
}

// Top is what a pop compares.
func (u *Undone) Top() uint64 { return u.top.Load() }

// NewGlobalsAt makes a space whose indices begin with a generation.
func NewGlobalsAt(limit uint32, generationBits uint8, first uint32) *Globals {
	return newGlobals(limit, newGenerations(generationBits, first))
}

// CreatePages creates the pages of the indices up to the limit and touches their memory, for benchmarks.
func (l *Locals) CreatePages() {
	for i := uint64(0); i <= l.limit; i++ {
		l.words.Ensure(uint32(i)).Store(0)
	}
}

// SetWord overwrites a word behind the space's back, for tests of Verify.
func (l *Locals) SetWord(index uint32, w Word) { l.words.Ensure(index).Store(uint64(w)) }

// SetBinding overwrites an own word behind the space's back, for tests of Verify.
func (n *Nets) SetBinding(index uint32, w uint64) { n.own.Ensure(index).Store(w) }

// Faults are ways to break the space; Verify finds each of them.
func (l *Locals) Faults() map[string]func() {
	return map[string]func(){
		"a lost count":       func() { l.counts.ended++ },
		"a free one too few": func() { l.counts.freed++ },
		"a lost retirement":  func() { l.counts.retired++ },
		"a hint too high":    func() { l.recycles.hint.Store(l.recycles.confirmed) },
		"a hint beyond":      func() { l.recycles.hint.Store(l.recycles.confirmed + 1) },
		"a fresh hint":       func() { l.freshHint.Store(l.limit + 1) },
		"a fast path":        func() { l.comeback = false },
		"a mark":             func() { l.burnt = indexSet{} },
		"two of a name":      func() { l.returned.push(l.recycles.at(l.recycles.head)) },
		"two burned":         func() { l.burned.push(entry(l.burned.at(0))) },
		"a lost segment":     func() { (*l.recycles.directory.Load())[0].Store(nil) },
		"a lost reader":      func() { l.recycles.readers.Add(1) },
		"a lost confirm":     func() { l.recycles.published.Add(1) },
		"a head too far":     func() { l.recycles.head = l.recycles.tail + 1 },
		"a run too short":    func() { l.recycles.runs.runs[l.recycles.runs.from].end-- },
		"no runs":            func() { l.recycles.runs.runs = nil; l.recycles.runs.from = 0 },
		"an empty run":       func() { l.recycles.runs.runs[l.recycles.runs.from].end = 0 },
		"a lost page":        func() { l.words.pages[0].Store(nil) },
		"a claim by name":    func() { l.byName.pending++ },
		"a cursor":           func() { l.fresh, l.byName.highest = 3, 0; l.freshHint.Store(3) },
	}
}

// Faults are as those of Locals.
func (g *Globals) Faults() map[string]func() {
	return map[string]func(){
		"a lost count":        func() { g.issued++ },
		"a lost retirement":   func() { g.retired++ },
		"free and burned":     func() { b, _ := g.burned.First(); g.free.Add(b) },
		"a mark":              func() { g.settled = indexSet{} },
		"never issued":        func() { g.free.Add(g.limit) },
		"beyond the limit":    func() { g.used.add(g.limit + 1) },
		"index 0":             func() { g.used.add(0) },
		"a past":              func() { g.ended.Ensure(g.limit).Store(1) },
		"retired and free":    func() { f, _ := g.free.First(); g.ended.Ensure(f).Store(retiredMark) },
		"free far away":       func() { g.free.Add(1 << 20) },
		"a summary that lies": func() { g.free = g.burned },
		"a free one lost":     func() { shared := g.free; i, _ := shared.First(); shared.Remove(i) },
		"a burned one lost":   func() { shared := g.burned; i, _ := shared.First(); shared.Remove(i) },
		"a cursor":            func() { g.fresh = uint64(g.limit) },
	}
}

// Faults are as those of Locals.
func (n *Nets) Faults() map[string]func() {
	return map[string]func(){
		"a lost count":      func() { n.issued++ },
		"a free one":        func() { n.free++ },
		"a lost retirement": func() { n.retired++ },
		"a lost binding":    func() { n.bound++ },
		"a mark":            func() { n.burnt = indexSet{} },
		"two of a name":     func() { n.returned = append(n.returned, Net(n.recycles.at(n.recycles.head))) },
		"two burned":        func() { n.burned = append(n.burned, n.burned[0]) },
		"a lost burned one": func() { n.burned = nil },
		"a stranger":        func() { n.returned[0] += 1 << 24 },
		"a pending one":     func() { n.recycles.tailSeg.names[n.recycles.tail-1]++ },
		"a line":            func() { n.recycles.hint.Store(n.recycles.tail) },
	}
}
