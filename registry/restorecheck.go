package registry

import (
	"fmt"
	"math/bits"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What PrepareRestore checks: nothing of a state is believed before all of it was looked at.

func (p *Restoration) impossible(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(format, args...))
}

// empty says whether nothing was ever issued here.
func (p *Restoration) empty() error {
	if p.r.iterating != 0 {
		return ErrIterating
	}
	for _, space := range p.r.spaces() {
		if space.Lives() != 0 {
			return ErrNotEmpty
		}
	}
	return nil
}

// checkConfig checks that the registry has the indices that the state is about.
func (p *Restoration) checkConfig() error {
	s, spaces := p.s, p.r.spaces()
	switch {
	case s.Ringed != p.r.ringed():
		return fmt.Errorf("%w: TemporalFrames: that there are any is %t in the state, and here it is %t", ErrConfig, s.Ringed, p.r.ringed())
	case s.Nets.Owner != p.r.cfg.Owner:
		return fmt.Errorf("%w: net handles of owner %d, this is %d", ErrConfig, s.Nets.Owner, p.r.cfg.Owner)
	case len(s.Locals) != len(spaces):
		return fmt.Errorf("%w: a deterministic registry has two spaces of handles, and others one: the state has %d, and here are %d", ErrConfig, len(s.Locals), len(spaces))
	}
	for i, space := range spaces {
		first, last := space.Stretch()
		if l := &s.Locals[i]; l.First != first || uint64(first)+uint64(len(l.Words)) > uint64(last)+1 {
			return fmt.Errorf("%w: MaxEntities: the state has %d local indices from %d on, and here they go from %d to %d", ErrConfig, len(l.Words), l.First, first, last)
		}
	}
	return nil
}

// checkStores checks the archetypes and their chunks, and takes all slots in use for those of the living.
func (p *Restoration) checkStores() error {
	type key struct {
		class int
		sig   archetype.Signature
	}
	classes := p.r.ClassInfos()
	seen := map[key]bool{}
	var states []*archetype.State
	blocks := 0
	for i := range p.s.Stores {
		st := &p.s.Stores[i]
		if st.Class < 0 || st.Class >= len(classes) {
			return p.impossible("archetype %d is of class %d, and there are %d", i, st.Class, len(classes))
		}
		for id := range st.Components.All() {
			if int(id) >= p.r.schema.Len() {
				return p.impossible("archetype %d has component %d, and there are %d", i, id, p.r.schema.Len())
			}
		}
		if k := (key{st.Class, st.Components}); st.Pooled != 0 {
			// One of several, with the same class and components.
		} else if seen[k] {
			return p.impossible("archetype %d is there twice", i)
		} else {
			seen[k] = true
		}
		if err := st.State.Check(classes[st.Class].Slots); err != nil {
			return p.impossible("archetype %d of class %s: %v", i, classes[st.Class].Name, err)
		}
		st.everybody()
		states = append(states, &st.State)
		for c := range st.Chunks {
			blocks = max(blocks, int(st.Chunks[c].Base)/64+len(st.Chunks[c].Holes))
		}
	}
	if err := archetype.CheckApart(states); err != nil {
		return p.impossible("%v", err)
	}
	p.open = make([]uint64, blocks)
	p.eachChunk(func(st *ArchetypeState, c int) {
		copy(p.open[st.Chunks[c].Base/64:], st.LiveIn(c))
	})
	return nil
}

func (p *Restoration) eachChunk(fn func(st *ArchetypeState, chunk int)) {
	for i := range p.s.Stores {
		for c := range p.s.Stores[i].Chunks {
			fn(&p.s.Stores[i], c)
		}
	}
}

// enter notes that somebody is in a slot; false if nobody can be, or somebody was met there before.
func (p *Restoration) enter(place uint32) bool {
	bit := uint64(1) << (place & 63)
	if int(place>>6) >= len(p.open) || p.open[place>>6]&bit == 0 {
		return false
	}
	p.open[place>>6] &^= bit
	return true
}

// checkDeaths gives the dead their slots, and those who moved the slots that they left. The others are those of the living.
func (p *Restoration) checkDeaths() error {
	if err := p.enterEmpty(); err != nil {
		return err
	}
	for _, d := range p.s.Deaths {
		if d.Replaced && p.ofPool(d.Place) {
			continue // somebody else is there
		}
		if d.Place != handles.NoPlace && !p.enter(d.Place) {
			return p.impossible("%v lies at %d, where it cannot be", d.Entity, d.Place)
		}
	}
	for _, place := range p.s.Vacated {
		if !p.s.Kept || !p.enter(place) {
			return p.impossible("somebody has moved out of %d, where nobody can have been", place)
		}
	}
	p.eachChunk(func(st *ArchetypeState, c int) {
		copy(st.LiveIn(c), p.open[st.Chunks[c].Base/64:])
		if p.blank(st) { // whose cells are not state
			clear(st.LiveIn(c))
		}
	})
	return p.checkRing()
}

// checkRing checks when the dead are to be reclaimed.
func (p *Restoration) checkRing() error {
	last := RingFrame{}
	if p.s.Kept && !p.s.Ringed {
		return p.impossible("history is kept without a ring")
	}
	for _, f := range p.s.Ring {
		if !p.s.Kept || f.Frame <= last.Frame || f.Frame > p.s.Frame || f.Deaths < last.Deaths || f.Vacated < last.Vacated ||
			f.Deaths == last.Deaths && f.Vacated == last.Vacated || f.Deaths > len(p.s.Deaths) || f.Vacated > len(p.s.Vacated) {
			return p.impossible("%d deaths and %d moves until frame %d", f.Deaths, f.Vacated, f.Frame)
		}
		last = f
	}
	return nil
}

// checkWords checks that each local index has one state, and each living entity a slot.
func (p *Restoration) checkWords() error {
	s, spaces := p.s, p.r.spaces()
	for i, space := range spaces {
		if err := space.Check(s.Locals[i]); err != nil {
			return p.impossible("%v", err)
		}
	}
	known := newIndexMarks(s)
	for i := range s.Locals {
		for list := range waiting(&s.Locals[i]) {
			for _, h := range list {
				known.mark(h.Index()) // Check has found no doubles
			}
		}
	}
	for _, d := range s.Deaths {
		if p.r.replaced(s, d) {
			continue
		}
		if w := s.word(d.Entity.Index()); !known.mark(d.Entity.Index()) || *w != uint64(handles.MakeWord(d.Entity.Generation(), handles.Dying, handles.NoPlace)) {
			return p.impossible("%v is dead, and its index says something else", d.Entity)
		}
	}
	for _, h := range s.Outside {
		w := s.word(h.Index())
		if !known.mark(h.Index()) || handles.Word(*w).State() != handles.Dying || handles.Word(*w).Generation() != h.Generation() {
			return p.impossible("%v was destroyed, and its index says something else", h)
		}
		if place := handles.Word(*w).Place(); place != handles.NoPlace {
			if p.killed++; !p.enter(place) {
				return p.impossible("%v was destroyed at %d, where it cannot be", h, place)
			}
		}
	}
	markAsleep(s, known)
	for i := range s.Locals {
		if err := p.checkLives(&s.Locals[i], known, spaces[i].LastGeneration()); err != nil {
			return err
		}
	}
	for block, word := range p.open {
		if word != 0 {
			return p.impossible("nobody is at %d", block<<6|bits.TrailingZeros64(word))
		}
	}
	return nil
}

// checkLives checks the indices of a space that are in no list.
func (p *Restoration) checkLives(l *handles.LocalsState, known *indexMarks, last uint32) error {
	retired := uint64(0)
	for i, word := range l.Words {
		w := handles.Word(word)
		index := l.First + uint32(i)
		switch w.State() {
		case handles.Alive:
			if p.alive++; !p.enter(w.Place()) {
				return p.impossible("%v is at %d, where it cannot be", handles.NewLocal(index, w.Generation()), w.Place())
			}
		case handles.Reserved:
			p.reserved++
		case handles.Dying:
			if known.has(index) {
				continue
			}
			if retired++; w.Generation() != last || w.Place() != handles.NoPlace {
				return p.impossible("%v is dead, and in no list", handles.NewLocal(index, w.Generation()))
			}
		}
	}
	if retired != l.Retired {
		return p.impossible("%d retired locals, and %d are past their last generation", l.Retired, retired)
	}
	return nil
}

// checkActive checks that only the living are active, and counts the others of them.
func (p *Restoration) checkActive() (err error) {
	p.eachChunk(func(st *ArchetypeState, c int) {
		for w, live := range st.LiveIn(c) {
			active := st.Chunks[c].Active[w]
			if active&^live != 0 && err == nil {
				err = p.impossible("%d active slots from %d on have nobody alive", bits.OnesCount64(active&^live), int(st.Chunks[c].Base)+w<<6)
			}
			p.inactive += bits.OnesCount64(live &^ active)
		}
	})
	return err
}

// checkSpaces asks the other spaces of handles.
func (p *Restoration) checkSpaces() error {
	if err := p.r.globals.Check(p.s.Globals); err != nil {
		return p.impossible("%v", err)
	}
	if err := p.r.nets.Check(p.s.Nets); err != nil {
		return p.impossible("%v", err)
	}
	return nil
}

// embodied calls fn with each local index that has, or had, an entity which is not reclaimed, until it fails.
func (p *Restoration) embodied(fn func(index uint32) error) error {
	for i := range p.s.Locals {
		l := &p.s.Locals[i]
		for n, w := range l.Words {
			// Of those that wait, and of dead reservations, none has a place.
			if w := handles.Word(w); w.Place() != handles.NoPlace && w.State() != handles.Free {
				if err := fn(l.First + uint32(n)); err != nil {
					return err
				}
			}
		}
	}
	for _, d := range p.s.Deaths {
		if d.Place != handles.NoPlace && !d.Replaced {
			if err := fn(d.Entity.Index()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRecords checks that each entity has a record of its own, and nobody else has one.
func (p *Restoration) checkRecords() error {
	s := p.s
	if s.Ringed { // the record is the index
		if len(s.Globals.Runs)+len(s.Parted)+len(s.Records) > 0 {
			return p.impossible("there are records, and a ring")
		}
		return nil
	}
	use := newRecordUses(s.Globals)
	parted := newRecordSet(s.Globals)
	for i, record := range s.Parted {
		if i > 0 && record <= s.Parted[i-1] || !use.ever.has(record) {
			return p.impossible("parted record %d", record)
		}
		parted.add(record)
	}
	for i, rec := range s.Records {
		if w := s.word(rec.Index); w == nil || *w == 0 || i > 0 && rec.Index <= s.Records[i-1].Index {
			return p.impossible("index %d has a record", rec.Index)
		}
		if !use.ever.has(rec.Record) || rec.Record != rec.Index && !parted.has(rec.Record) {
			return p.impossible("index %d has record %d, which is its own index's", rec.Index, rec.Record)
		}
	}
	var others *indexValues
	if len(s.Records) > 0 {
		others = newIndexValues(s)
		for _, rec := range s.Records {
			*others.at(rec.Index) = rec.Record
		}
	}
	err := p.embodied(func(index uint32) error {
		record := index
		if others != nil && *others.at(index) != 0 {
			record = *others.at(index)
		}
		if !use.now.has(record) {
			return p.impossible("index %d has record %d, which is not in use, or another's too", index, record)
		}
		use.now.remove(record)
		use.issued--
		return nil
	})
	if err == nil && use.issued != 0 {
		err = p.impossible("%d records in use have no entity", use.issued)
	}
	return err
}

// indexValues is a number for each local index of a state.
type indexValues struct {
	s      *State
	values [][]uint32 // of each space
}

func newIndexValues(s *State) *indexValues {
	v := &indexValues{s: s}
	for i := range s.Locals {
		v.values = append(v.values, make([]uint32, len(s.Locals[i].Words)))
	}
	return v
}

// at is the number of an index that has a word.
func (v *indexValues) at(index uint32) *uint32 {
	i := len(v.values) - 1
	for index < v.s.Locals[i].First {
		i--
	}
	return &v.values[i][index-v.s.Locals[i].First]
}

// recordSet is a set of record indices up to the highest of a state.
type recordSet []uint64

func newRecordSet(g handles.GlobalsState) recordSet {
	if len(g.Runs) == 0 {
		return nil
	}
	last := g.Runs[len(g.Runs)-1]
	return make(recordSet, (uint64(last.First)+uint64(last.Count)+63)/64)
}

func (s recordSet) has(i uint32) bool {
	return int(i>>6) < len(s) && s[i>>6]>>(i&63)&1 != 0
}
func (s recordSet) add(i uint32)    { s[i>>6] |= 1 << (i & 63) }
func (s recordSet) remove(i uint32) { s[i>>6] &^= 1 << (i & 63) }

// addRun adds n numbers from first on.
func (s recordSet) addRun(first, n uint32) {
	for i, end := uint64(first), uint64(first)+uint64(n); i < end; {
		k := min(64-i&63, end-i)
		s[i>>6] |= ^uint64(0) >> (64 - k) << (i & 63)
		i += k
	}
}

// recordUses is which records were ever issued, and which are now.
type recordUses struct {
	ever, now recordSet
	issued    int
}

func newRecordUses(g handles.GlobalsState) recordUses {
	u := recordUses{ever: newRecordSet(g), now: newRecordSet(g)}
	for _, run := range g.Runs {
		u.ever.addRun(run.First, run.Count)
		if run.Use == handles.GlobalFirst || run.Use == handles.GlobalAgain {
			u.now.addRun(run.First, run.Count)
			u.issued += int(run.Count)
		}
	}
	return u
}

// checkNets checks that net handles and entities name each other.
func (p *Restoration) checkNets() error {
	s := p.s
	bound := map[handles.Net]uint32{}
	for i, w := range s.Nets.Words {
		if uint32(w) != 0 {
			bound[handles.NewNet(s.Nets.Owner, s.Nets.First+uint32(i), uint32(w>>32))] = uint32(w)
		}
	}
	for _, k := range s.Nets.Foreign {
		if k.Local != 0 {
			bound[k.Name] = k.Local
		}
	}
	for _, d := range s.Deaths {
		if d.Net != 0 && (!d.Replaced || bound[d.Net] != d.Entity.Index()) {
			return p.impossible("%v had the net handle %v", d.Entity, d.Net)
		}
		delete(bound, d.Net)
	}
	if len(bound) == 0 && len(s.Named) == 0 {
		return nil
	}
	bodies, err := p.bodies()
	if err != nil {
		return err
	}
	for i, n := range s.Named {
		if i > 0 && n.Index <= s.Named[i-1].Index || bound[n.Net] != n.Index || !bodies.has(n.Index) {
			return p.impossible("index %d is named %v", n.Index, n.Net)
		}
	}
	if len(bound) != len(s.Named) { // names differ where indices do
		return p.impossible("%d net handles in use, and %d entities have one", len(bound), len(s.Named))
	}
	return nil
}

// bodies are the indices of embodied.
func (p *Restoration) bodies() (*indexMarks, error) {
	m := newIndexMarks(p.s)
	return m, p.embodied(func(index uint32) error {
		m.mark(index)
		return nil
	})
}

// checkLinks checks that families are trees of entities.
func (p *Restoration) checkLinks() error {
	links := p.s.Links
	if len(links) == 0 {
		return nil
	}
	bodies, err := p.bodies()
	if err != nil {
		return err
	}
	parent := make(map[uint32]uint32, len(links))
	for i, k := range links {
		if i > 0 && k.Parent < links[i-1].Parent || !bodies.has(k.Parent) || !bodies.has(k.Child) || parent[k.Child] != 0 {
			return p.impossible("index %d is a child of index %d", k.Child, k.Parent)
		}
		parent[k.Child] = k.Parent
	}
	root := make(map[uint32]bool, len(parent)) // indices above which there is an end
	var way []uint32
	for _, k := range links {
		way = way[:0]
		i := k.Child
		for ; i != 0 && !root[i]; i = parent[i] {
			if len(way) > len(links) {
				return p.impossible("index %d is its own ancestor", k.Child)
			}
			way = append(way, i)
		}
		for _, i := range way {
			root[i] = true
		}
	}
	return nil
}
