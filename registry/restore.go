package registry

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Restoration puts a state into a registry in which no handle was ever issued. All that can be wrong with
// the state is found before anything changes.
//
// Concurrency: the window's holder, until its callback ends.
type Restoration struct {
	w *Window
	r *Registry
	s *State

	// Found by the checks.
	alive, reserved, inactive, killed int
	pooled, lodged                    int      // slots of pools, and the living who have room there
	open                              []uint64 // by cache index: slots whose entity was not met yet
}

// lastFrame is the highest frame that a state may be of: what is computed from it stays a number.
const lastFrame = 1 << 62

// PrepareRestore checks a state, which may come from anywhere, against the registry, and finds who lives
// where (State.Stores, Live). The state belongs to the Restoration from then on. Nothing changes.
//
// Errors: ErrNotEmpty; ErrConfig; ErrState, and what is wrong with the state; ErrExhausted if more entities live in it than
// may here; ErrIterating inside a loop; ErrExpired.
// Concurrency: window holder. Allocates: yes.
func PrepareRestore(w *Window, s *State) (*Restoration, error) {
	r, err := w.open()
	if err != nil {
		return nil, err
	}
	if r.recorded.kept.Load() {
		return nil, ErrJournaled
	}
	p := &Restoration{w: w, r: r, s: s}
	if err := p.empty(); err != nil {
		return nil, err
	}
	if s.Frame > lastFrame {
		return nil, p.impossible("frame %d", s.Frame)
	}
	for _, check := range []func() error{p.checkConfig, p.checkStores, p.checkPools, p.checkDeaths, p.checkWords, p.checkTenants, p.checkActive, p.checkSpaces, p.checkRecords, p.checkNets, p.checkLinks} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if p.alive+p.reserved-p.lodged+p.pooled > r.cfg.MaxEntities {
		return nil, fmt.Errorf("%w: %d entities, %d slots of pools and %d reservations, and MaxEntities is %d", ErrExhausted, p.alive-p.lodged, p.pooled, p.reserved, r.cfg.MaxEntities)
	}
	return p, nil
}

// Run puts the registry into the state, and commits what the callback did so far: it is not undone.
// fill gets the archetypes of State.Stores, whose chunks are those of the state: it
// writes the cells of the living. All others are zero. If it fails, nothing has changed.
//
// No event tells of the entities. What is published of frames before is gone, see Acquire.
//
// Errors: what fill returns; ErrNotEmpty if something was issued since the state was checked; ErrIterating; ErrExpired.
// Concurrency: window holder; the window is not open while fill runs. Allocates: yes.
func (p *Restoration) Run(fill func(archetypes []*archetype.Archetype) error) error {
	if r, err := p.w.open(); err != nil || r != p.r {
		return ErrExpired
	}
	if err := p.empty(); err != nil {
		return err
	}
	r, s := p.r, p.s
	// With all room taken nobody can reserve; who was about to has taken some.
	r.settleRoom()
	// There is less than none, for whoever destroys somebody as soon as he is there gives room back.
	free := 2 * r.cfg.MaxEntities
	if !r.room.CompareAndSwap(int64(r.cfg.MaxEntities), int64(-r.cfg.MaxEntities)) {
		return ErrNotEmpty
	}
	defer func() { r.room.Add(int64(free)) }()
	if err := p.empty(); err != nil {
		return err
	}
	if err := p.build(fill); err != nil {
		return err
	}
	r.commit()
	r.restart(s.Frame)
	r.barrier() // nothing of it is undone
	p.names()
	p.pools()
	p.deaths()
	p.ring()
	p.spaces()
	for _, h := range s.Outside {
		r.pushOutside(h.Index())
	}
	r.killed.Add(int64(p.killed))
	r.inactive = p.inactive
	free -= p.alive + p.reserved - p.lodged + p.pooled
	r.countNamed()
	r.randFrame = 0
	r.moves++
	return nil
}

// build makes the storage, which nobody can see before its entities have names. If fill fails, panics or exits, it is as
// it was before.
func (p *Restoration) build(fill func([]*archetype.Archetype) error) (err error) {
	r, s := p.r, p.s
	before := slices.Clone(r.store.Archetypes()) // they have no chunks
	r.dropArchetypes()
	r.leapTo(s.Frame)
	done := false
	defer func() {
		p.w.closed.Store(false)
		if done {
			return
		}
		for _, a := range r.store.Archetypes() {
			a.Clear()
		}
		r.dropArchetypes()
		for _, a := range before {
			p.archetype(a.Class(), a.Signature())
		}
	}()
	archetypes := make([]*archetype.Archetype, len(s.Stores))
	for i := range s.Stores {
		st := &s.Stores[i]
		archetypes[i] = p.storage(st)
		archetypes[i].Rebuild(st.State)
		if st.Pooled != 0 {
			p.block(archetypes[i])
		}
		live := 0
		for _, word := range st.Live {
			live += bits.OnesCount64(word)
		}
		if p.blank(st) {
			live = st.Pooled - p.empties(archetypes[i].Pooled())
		}
		archetypes[i].AddLive(live)
	}
	p.w.closed.Store(true) // nobody shall do anything with what is half there
	err = fill(archetypes)
	done = err == nil
	return err
}

// archetype makes an archetype. It is not logged.
func (p *Restoration) archetype(class int, sig archetype.Signature) *archetype.Archetype {
	c := p.r.class(class)
	return p.r.store.Archetype(class, sig, c.name, c.slots)
}

// dropArchetypes takes all archetypes back, which have no chunks.
func (r *Registry) dropArchetypes() {
	for len(r.store.Archetypes()) > 0 {
		r.dropArchetype()
	}
}

// names writes what any goroutine reads before it has seen that an index is alive.
func (p *Restoration) names() {
	r, s := p.r, p.s
	for _, rec := range s.Records {
		r.records.Ensure(rec.Index).Store(uint64(rec.Record))
	}
	for _, record := range s.Parted {
		r.parted.Add(record)
	}
	r.recordsPart = len(s.Parted) > 0
	for _, n := range s.Named {
		r.netOf.Ensure(n.Index).Store(uint64(n.Net))
	}
	r.netsUsed = len(s.Named) > 0 || s.Nets.Deaths > 0
	for _, k := range s.Links {
		r.growFamily(k.Child)
		r.growFamily(k.Parent)
		r.link(k.Child, k.Parent, r.kin(k.Parent).last)
	}
}

// deaths makes the dead. Their cells are zero, the entity cells too.
func (p *Restoration) deaths() {
	r, s := p.r, p.s
	was := r.causeNow
	for _, d := range s.Deaths {
		r.setCause(d.Cause)
		how := r.causeIndex()
		if d.WasActive {
			how |= wasActive
		}
		if d.Replaced {
			p.replaced(d)
			how |= wentHome
		}
		r.addDeath(d.Entity, d.Place, how)
		if !r.late() && !r.replaced(s, d) { // else a tombstone's word gives up its place
			*s.word(d.Entity.Index()) = uint64(handles.MakeWord(d.Entity.Generation(), handles.Dying, d.Place))
		}
	}
	r.setCause(was)
	r.frames.buried, r.deadBefore = len(r.dying), len(r.dying)
	r.obitMark, r.namedMark, r.namedDeaths = 0, 0, 0
}

// ring has what has died or moved reclaimed when it would have been.
func (p *Restoration) ring() {
	r, s := p.r, p.s
	h := &r.hist
	if !s.Ringed {
		return
	}
	h.present.Store(r.frame.Load())
	if r.frames.begun {
		h.present.Store(r.frame.Load() - 1)
	}
	if engine := r.engine.Load(); s.Kept && engine != nil && s.Frame > 0 {
		engine.begun = true // the history from here on is its own
		r.beginHistory()
	}
	h.waits = s.Kept && !h.on
	var vacated []vacancy
	for _, place := range s.Vacated {
		ch := r.store.ChunkAt(place)
		vacated = append(vacated, vacancy{ch, place - ch.Base()})
	}
	if h.on {
		r.vacated = append(r.vacated, vacated...)
	} else {
		h.leftover = vacated
	}
	h.makeMarks()
	for i := range h.marks {
		h.marks[i].begun = false
	}
	for _, f := range s.Ring {
		if f.Frame+h.frames > s.Frame {
			m := h.markOf(f.Frame)
			m.frame, m.begun, m.restored = f.Frame, true, true
			m.dead, m.vacated = h.deadBase+uint64(f.Deaths), h.vacatedBase+uint64(f.Vacated)
		}
	}
}

// settleLoaded reclaims what a load has left for the ring, which there is not. Owner only, with nothing left to
// undo.
func (r *Registry) settleLoaded() {
	for _, v := range r.hist.leftover {
		v.ch.Archetype().Reclaim(v.ch, v.slot)
	}
	r.hist.leftover, r.hist.waits = nil, false
	for i := range r.hist.marks {
		if m := &r.hist.marks[i]; m.restored {
			m.begun, m.restored = false, false
		}
	}
}

// spaces writes the entity columns, and then the words, by which everybody is alive.
func (p *Restoration) spaces() {
	r, s := p.r, p.s
	for i := range s.Locals {
		l := &s.Locals[i]
		for n, w := range l.Words {
			if w := handles.Word(w); w.State() == handles.Alive {
				ch := r.store.ChunkAt(w.Place())
				ch.Entities()[w.Place()-ch.Base()] = handles.NewLocal(l.First+uint32(n), w.Generation())
			}
		}
	}
	for _, h := range s.Outside {
		if place := handles.Word(*s.word(h.Index())).Place(); place != handles.NoPlace {
			ch := r.store.ChunkAt(place)
			ch.Entities()[place-ch.Base()] = h
		}
	}
	mustRestore(r.globals.Restore(s.Globals))
	mustRestore(r.nets.Restore(s.Nets))
	for i, space := range r.spaces() {
		mustRestore(space.Restore(s.Locals[i]))
	}
}

// mustRestore is for what Check had nothing against.
func mustRestore(err error) {
	if err != nil {
		panic("registry: a state that was checked: " + err.Error())
	}
}

// leapTo has storage go on in the same buffers, which nobody has written, under a number that is not behind that of a
// frame.
func (r *Registry) leapTo(frame uint64) {
	f := &r.frames
	s, buffers := r.store.Frame(), uint64(len(f.kept))
	if buffers != 3 {
		buffers *= 3
	}
	if frame < s {
		return
	}
	next := s + (frame-s)/buffers*buffers + buffers
	f.short[s%3].Store(next)
	r.store.Advance(next, 1, nil)
	f.apart.Store(true)
}

// restart makes frame the one in progress, or the last one between frames.
func (r *Registry) restart(frame uint64) {
	f := &r.frames
	f.forget()
	if f.begun {
		frame = max(frame, 1) // there is no frame 0
	}
	now := frame // what is written belongs to it
	if !f.begun {
		now++
	}
	if r.store.Frame() != now {
		f.apart.Store(true)
	}
	r.frame.Store(frame)
}

// forget takes back what was published. Readers keep what they have.
func (f *frames) forget() {
	if head := f.head.Swap(0); head>>pinBits != 0 {
		f.kept[head>>pinBits-1].taken.Store(head & pinMask)
	}
	for i := range f.kept {
		k := &f.kept[i]
		was := k.storage.Swap(0)
		if was != 0 && k.pinned(k.taken.Load()) {
			k.storage.Store(was) // its reader's, and no frame's
			k.frame.Store(0)
		}
	}
}
