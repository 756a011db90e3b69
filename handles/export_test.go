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

// NewGlobalsAt makes a space whose indices begin with a generation.
func NewGlobalsAt(limit uint32, generationBits uint8, first uint32) *Globals {
	return newGlobals(limit, newGenerations(generationBits, first))
}

// CreatePages creates the pages of the indices up to the limit, for benchmarks.
func (l *Locals) CreatePages() {
	for i := uint64(0); i <= l.limit; i += pageSize {
		l.words.Ensure(uint32(i))
	}
}
