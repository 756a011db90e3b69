package handles

// Highest is the highest index that was ever claimed, for walks over all of them; exact
// while nobody is inside Reserve. 0 means none.
//
// Concurrency: the owner only. Allocates: no.
func (l *Locals) Highest() uint32 { return uint32(max(l.fresh, l.freshHint.Load()) - 1) }
