package handles

// Whoever restores several spaces at once asks all of them first: what Check says nothing against,
// Restore restores.

// Check says what Restore would say.
//
// Errors: as Restore.
// Concurrency: as Restore. Allocates: marks.
func (l *Locals) Check(s LocalsState) error {
	if l.Lives() != 0 || l.recycles.tail != 0 {
		return ErrNotFresh
	}
	return l.checkState(s)
}

// LastGeneration is the generation whose end retires an index.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) LastGeneration() uint32 { return l.generation.last }

// Check says what Restore would say.
//
// Errors: as Restore.
// Concurrency: as Restore. Allocates: no.
func (g *Globals) Check(s GlobalsState) error {
	if g.used.count != 0 {
		return ErrNotFresh
	}
	return g.checkState(s)
}

// Check says what Restore would say.
//
// Errors: as Restore.
// Concurrency: as Restore. Allocates: marks.
func (n *Nets) Check(s NetsState) error {
	if n.fresh != n.firstIndex || n.Deaths() != 0 || n.seenOthers() {
		return ErrNotFresh
	}
	return n.checkState(s)
}

// Stretch is the lowest and the highest index of the space.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Stretch() (first, last uint32) { return uint32(l.firstIndex), uint32(l.limit) }
