package registry

import "github.com/airlock-ecs/airlock/handles"

// In a registry whose deaths are late (deterministic, or with a temporal ring) there are two spaces of
// local indices over one range of words. Systems, observers and what they put off take theirs from the
// inner one, so that their handles depend on nothing but what systems do; with a temporal ring it goes
// back with the frames, and the same handles come out again. Callers from outside (Reserve, the
// callbacks of windows, Update) take theirs from the outer one, which never goes back: a handle that
// somebody outside holds names its own entity or nobody.
//
// In any other registry both are the same space.

// initSpaces makes the spaces, each with room for limit indices.
func (r *Registry) initSpaces(limit uint32, generationBits uint8) {
	c := handles.LocalsConfig{Limit: limit, MostPending: r.cfg.MaxEntities, GenerationBits: generationBits}
	if r.late() {
		c.Words = 2 * limit
	}
	r.locals = handles.NewLocals(c)
	r.outer = r.locals
	if r.late() {
		r.outer = r.locals.Beside(handles.LocalsConfig{FirstIndex: limit + 1, Limit: 2 * limit, MostPending: r.cfg.MaxEntities})
		r.outerFirst = limit + 1
	}
	r.issuer = r.locals
}

// spaceOf is the space that an index belongs to. Any goroutine.
func (r *Registry) spaceOf(index uint32) *handles.Locals {
	if r.outerFirst != 0 && index >= r.outerFirst {
		return r.outer
	}
	return r.locals
}

// fromOutside runs a callback whose handles are those of a caller from outside. Owner only.
func (r *Registry) fromOutside(callback func(fn func(*Window) error) error, fn func(*Window) error) error {
	r.issuer = r.outer
	r.beginRecording()
	defer func() {
		r.endRecording()
		r.issuer = r.locals
	}()
	return callback(fn)
}

// freeLocals frees the indices of the dead, in their order. Owner only.
func (r *Registry) freeLocals(hs []handles.Local, frame uint64) {
	if r.outerFirst == 0 {
		r.locals.FreeAll(hs, frame)
		return
	}
	for _, h := range hs {
		r.spaceOf(h.Index()).Free(h, frame)
	}
}

// confirmLocals makes indices free that were freed in frames up to one, and says how many. Owner only.
func (r *Registry) confirmLocals(frame uint64) int {
	n := r.locals.ConfirmThrough(frame)
	if r.outerFirst != 0 {
		n += r.outer.ConfirmThrough(frame)
	}
	return n
}

// localStats counts the indices of both spaces, and says how many lives there were.
func (r *Registry) localStats() (SpaceStats, uint64) {
	s, lives := r.locals.Stats(), r.locals.Lives()
	if r.outerFirst == 0 {
		return s, lives
	}
	o := r.outer.Stats()
	s.Issued, s.Free, s.Pending, s.Retired = s.Issued+o.Issued, s.Free+o.Free, s.Pending+o.Pending, s.Retired+o.Retired
	if s.OldestPending == 0 || o.OldestPending != 0 && o.OldestPending < s.OldestPending {
		s.OldestPending = o.OldestPending
	}
	return s, lives + r.outer.Lives()
}

// globalStats counts the records. With a temporal ring they are those of the local indices that have entities.
func (r *Registry) globalStats(local SpaceStats) SpaceStats {
	if !r.ringed() {
		return r.globals.Stats()
	}
	return SpaceStats{Issued: local.Issued, Free: local.Free + local.Pending, Retired: local.Retired}
}

// eachIndex calls fn with every local index that was ever claimed. Owner only.
func (r *Registry) eachIndex(fn func(index uint32)) {
	for i := uint32(1); i <= r.locals.Highest(); i++ {
		fn(i)
	}
	if r.outerFirst == 0 {
		return
	}
	for i := r.outerFirst; i <= r.outer.Highest(); i++ {
		fn(i)
	}
}

// familyIndex is where a local index is in family: those of the two spaces take turns, so that the table
// is as long as there are indices in use.
func (r *Registry) familyIndex(index uint32) int {
	switch {
	case r.outerFirst == 0:
		return int(index)
	case index >= r.outerFirst:
		return int(index-r.outerFirst)*2 + 1
	}
	return int(index) * 2
}

// kin is the links of a local index that is in the table.
func (r *Registry) kin(index uint32) *kin { return &r.family[r.familyIndex(index)] }

// hasKin says whether a local index is in the table.
func (r *Registry) hasKin(index uint32) bool { return r.familyIndex(index) < len(r.family) }
