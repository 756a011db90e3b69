package archetype

// CopyShared copies a slot of another archetype into one of this archetype: the cells of every
// column that both have. Handles and bits are the caller's.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) CopyShared(dst *Chunk, dslot uint32, src *Chunk, sslot uint32) {
	// Both lists of columns are sorted by key, so one walk along them finds the pairs. The two
	// columns at their ends, plane and handles, have no cell here.
	dkeys, skeys := a.layout.keys[:len(a.cells)], src.archetype.layout.keys
	skeys = skeys[:len(src.archetype.cells)]
	for d, s := 0, 0; d < len(dkeys) && s < len(skeys); {
		switch dk, sk := dkeys[d].order(), skeys[s].order(); {
		case dk < sk:
			d++
		case dk > sk:
			s++
		default:
			cell := &a.cells[d]
			cell.Copy(dst.Cell(d, dslot, cell.size), src.Cell(s, sslot, cell.size))
			d++
			s++
		}
	}
}
