package registry

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

var (
	// ErrNotEmpty reports that a state was to be put into a registry in which a handle was issued before:
	// also one that is empty again, for every handle that it ever issued stays dead.
	ErrNotEmpty = errors.New("registry: handles were issued here")
	// ErrPutOff reports that a state was to be taken while something that was put off to a window waits:
	// functions cannot be kept.
	ErrPutOff = errors.New("registry: operations that were put off are waiting")
	// ErrConfig reports a state of a registry whose config is another one where that matters: Owner, and the
	// local indices there are.
	ErrConfig = errors.New("registry: the state is of another config")
	// ErrState reports a state that no registry of this config and these classes can be in.
	ErrState = errors.New("registry: impossible state")
)

// State is everything of a registry that lasts, beside the cells of its entities: names, storage,
// families, and deaths. A registry that is put into it goes on as the one that it is of would have:
// the same operations give the same handles in the same slots.
//
// Numbers of classes and components are those of the registry.
//
// Not in it are obituaries, statistics, observers and what they were not told yet, published frames, and what
// happened to wait in an engine. Entities of cosmetic classes are in it as if they had been destroyed when the
// state was taken: dead, and reclaimed with the next frame. Children of theirs live on.
type State struct {
	Frame   uint64                // the frame in progress or last run
	Locals  []handles.LocalsState // of each space
	Globals handles.GlobalsState  //
	Nets    handles.NetsState     //
	Records []IndexRecord         // records that differ from what a local index says, by index
	Parted  []uint32              // records that have served another local index than their own, ascending
	Named   []IndexNet            // entities with a net handle, by local index
	Links   []Link                // children by parent's local index, then in order
	Deaths  []Death               // dead and not reclaimed, first come first
	Outside []handles.Local       // destroyed from outside and not seen by the owner yet, first come first
	Stores  []ArchetypeState      // in the order of their creation
	Pools   []PoolState           // of the pooled ones among them, in their order
	Burnt   []IndexGeneration     // generations that slots of pools pass over, by index

	// With a temporal ring the dead, and the slots that entities have moved out of, are reclaimed when they have left
	// the ring.
	Ringed  bool
	Kept    bool        // history is kept, for an engine
	Vacated []uint32    // such slots: cache indices, in the order of the moves
	Ring    []RingFrame // frames that have not left the ring and in which somebody died or moved, ascending
}

// PoolState is a pool: the archetype with the slots is in Stores.
type PoolState struct {
	Name    string
	First   uint32   // local index of slot 0, the others follow
	Idle    []uint64 // slots that are idle, a bit each
	Empty   []uint64 // slots that nobody is in, dead or alive: who had it is elsewhere, or it is retired
	Tenants []Tenant // who has a slot, or had it last, under another local index than the slot's own, by slot
}

// Tenant says under which local index a slot of a pool is somebody's.
type Tenant struct{ Slot, Index uint32 }

// IndexGeneration is a generation of a local index.
type IndexGeneration struct{ Index, Generation uint32 }

// RingFrame says how many of Deaths and of Vacated there were when a frame ended.
type RingFrame struct {
	Frame           uint64
	Deaths, Vacated int
}

// IndexRecord says which record a local index has.
type IndexRecord struct{ Index, Record uint32 }

// IndexNet says which net handle a local index has.
type IndexNet struct {
	Index uint32
	Net   handles.Net
}

// Link says that Child dies with Parent: local indices.
type Link struct{ Parent, Child uint32 }

// Death is an entity, or a reservation, that is dead and not reclaimed.
type Death struct {
	Entity    handles.Local
	Place     uint32 // cache index; handles.NoPlace without a slot
	WasActive bool
	Cause     string

	// Of a pool, whose slot, which may be Place, has another entity by now: the local index has the next generation,
	// unless it was a tenant's. Net is a net handle that waits to be freed, too.
	Replaced bool
	Net      handles.Net
}

// ArchetypeState is an archetype, by the number of its class.
type ArchetypeState struct {
	Class      int
	Components archetype.Signature
	archetype.State

	// Live says which slots have an entity, a bit each, in the words of all chunks one after another. The
	// others that are in use belong to the dead. It is found from the rest of the state.
	Live []uint64
}

// ClassInfo is what a class was registered with.
type ClassInfo struct {
	Name       string
	Components []archetype.ComponentID // in the order of the fields
	Slots      int                     // SlotsPerChunk, 0 for the default
	Cosmetic   bool
}

// ClassInfos lists the classes, in the order of their registration.
//
// Concurrency: any goroutine. Allocates: the list.
func (r *Registry) ClassInfos() []ClassInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]ClassInfo, len(r.classes))
	for i, c := range r.classes {
		list[i] = ClassInfo{Name: c.name, Slots: c.slots, Cosmetic: c.cosmetic, Components: slices.Clone(c.comps)}
	}
	return list
}

// What a state is found in and put into, where that may come to look otherwise.

// spaces are the spaces of local indices, in the order of their indices.
func (r *Registry) spaces() []*handles.Locals {
	if r.outerFirst == 0 {
		return []*handles.Locals{r.locals}
	}
	return []*handles.Locals{r.locals, r.outer}
}

// unreclaimed are the dead that have their slots and names yet.
func (r *Registry) unreclaimed() ([]handles.Local, []grave) {
	return r.dying[r.hist.processed:], r.graves[r.hist.processed:]
}

// unsettled are the slots that entities have moved out of: those that are free when the callback commits, and those that
// are not before their frame has left the ring.
func (r *Registry) unsettled() (free, later []vacancy) {
	if r.hist.on {
		return nil, r.vacated[r.hist.vacatedProcessed:]
	}
	free = r.vacated[:len(r.vacated):len(r.vacated)]
	for _, v := range r.vacatedRuns {
		for i := range v.n {
			free = append(free, vacancy{v.ch, v.slot + i})
		}
	}
	return free, r.hist.leftover
}

// unpooled is how many of some slots are not those of pools.
func (r *Registry) unpooled(list []vacancy) (n int) {
	for _, v := range list {
		if v.ch.Archetype().Pooled() == 0 {
			n++
		}
	}
	return n
}

// ringFrames are the frames that have not left the ring and in which somebody died or moved.
func (r *Registry) ringFrames() (list []RingFrame) {
	h := &r.hist
	now := r.frame.Load()
	for f := now - min(now, h.frames) + 1; h.marks != nil && f <= now; f++ {
		m := h.markOf(f)
		if !m.begun || m.frame != f || f < h.oldest.Load() && !m.restored {
			continue
		}
		ring := RingFrame{
			Frame:   f,
			Deaths:  max(int(m.dead-h.deadBase)-h.processed, 0),
			Vacated: r.unpooled(r.vacated[h.vacatedProcessed:max(int(m.vacated-h.vacatedBase), h.vacatedProcessed)]),
		}
		last := RingFrame{}
		if n := len(list); n > 0 {
			last = list[n-1]
		}
		if ring.Deaths != last.Deaths || ring.Vacated != last.Vacated {
			list = append(list, ring)
		}
	}
	return list
}

// putOff is how many operations wait for a window.
func (r *Registry) putOff() int {
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	return len(r.wishes) + len(r.granted.list) - r.granted.next
}

// CaptureState takes the state of the registry, and gives the archetypes that it speaks of, in the
// order of State.Stores: their cells are for the caller to take. The state is good until the next one is taken. It changes nothing. What the callback did so
// far is in it as if it had been committed.
//
// Other goroutines may reserve and destroy meanwhile; what they do in that time may be in the state or not.
//
// Errors: ErrPutOff; ErrExpired.
// Concurrency: window holder. Allocates: the state.
func CaptureState(w *Window) (*State, []*archetype.Archetype, error) {
	r, err := w.open()
	if err != nil {
		return nil, nil, err
	}
	if n := r.putOff(); n > 0 {
		return nil, nil, fmt.Errorf("%d of them: %w", n, ErrPutOff)
	}
	k := &capture{r: r, s: &State{
		Frame: r.frame.Load(), Globals: r.globals.State(), Nets: r.nets.State(), Ringed: r.ringed(), Kept: r.hist.on || r.hist.waits, Ring: r.ringFrames(),
	}}
	k.storage()
	k.deaths()
	k.pools()
	k.cosmetics()
	// Words are the bulk of it. Memory that nobody has touched yet costs more than the rest of a save, so the last one's
	// is kept.
	words := r.Lodger(capturedKey{}, newCaptured).(*captured)
	for i, space := range r.spaces() {
		l := space.StateIn(words[i])
		k.s.Locals, words[i] = append(k.s.Locals, l), l.Words
	}
	k.bumpCosmetic()
	k.words()
	k.names()
	return k.s, k.archetypes, nil
}

// captured is the words of the last state that was taken, of each space. Owner only.
type captured [2][]uint64

type capturedKey struct{}

func newCaptured() any { return new(captured) }

// capture takes a state.
type capture struct {
	r          *Registry
	s          *State
	archetypes []*archetype.Archetype       // of s.Stores
	at         map[*archetype.Archetype]int // the places of those
	bumped     []handles.Local              // own names of slots in use of cosmetic pools: as if despawned
}

// storage notes archetypes, chunks, and who may live in them. Those of cosmetic classes are state as far as
// others get other cache indices because of them.
func (k *capture) storage() {
	r := k.r
	list, states := r.store.Archetypes(), r.store.States()
	k.at = make(map[*archetype.Archetype]int, len(list))
	at := make(map[*archetype.Archetype]int, len(list))
	for i, a := range list {
		at[a] = i
	}
	free, later := r.unsettled()
	for _, v := range free {
		if v.ch.Archetype().Pooled() != 0 {
			continue // what is there has to do with pools
		}
		states[at[v.ch.Archetype()]].Chunks[v.ch.Index()].Reclaim(v.ch.Index(), v.slot)
	}
	for i, a := range list {
		if a.Pooled() == 0 && r.CosmeticClass(a.Class()) && len(states[i].Chunks) == 0 {
			continue
		}
		st := ArchetypeState{Class: a.Class(), Components: a.Signature(), State: states[i]}
		for c := range st.Chunks {
			if r.hist.on {
				st.Chunks[c].Emptied = archetype.NotEmptied // no chunk goes
			}
		}
		st.everybody()
		k.at[a] = len(k.archetypes)
		k.s.Stores, k.archetypes = append(k.s.Stores, st), append(k.archetypes, a)
	}
	for _, v := range later {
		if v.ch.Archetype().Pooled() != 0 {
			continue
		}
		k.s.Vacated = append(k.s.Vacated, v.ch.Base()+v.slot)
		k.nobodyAt(v.ch, v.slot)
	}
}

// nobodyAt notes that a slot in use is not one of the living.
func (k *capture) nobodyAt(ch *archetype.Chunk, slot uint32) {
	k.s.Stores[k.at[ch.Archetype()]].LiveIn(ch.Index())[slot>>6] &^= 1 << (slot & 63)
}

// everybody makes all slots in use those of the living.
func (st *ArchetypeState) everybody() {
	words := 0
	for i := range st.Chunks {
		words += len(st.Chunks[i].Holes)
	}
	st.Live = make([]uint64, 0, words)
	for i := range st.Chunks {
		ch := &st.Chunks[i]
		for w := range ch.Holes {
			st.Live = append(st.Live, ch.Taken(w))
		}
	}
}

// LiveIn is the part of Live that is about a chunk.
//
// Concurrency: the caller keeps the state. Allocates: no.
func (st *ArchetypeState) LiveIn(chunk int) []uint64 {
	at := 0
	if chunk > 0 { // all but the first have one size
		at = st.Chunks[0].Slots/64 + (chunk-1)*(st.Chunks[1].Slots/64)
	}
	return st.Live[at:][:len(st.Chunks[chunk].Holes)]
}

// deaths notes the dead, who do not live in their slots.
func (k *capture) deaths() {
	r := k.r
	hs, graves := r.unreclaimed()
	k.s.Deaths = make([]Death, len(hs))
	for i, h := range hs {
		g := graves[i]
		k.s.Deaths[i] = Death{Entity: h, Place: g.place, WasActive: g.how&wasActive != 0, Cause: *r.causes[g.cause()], Replaced: g.how&wentHome != 0, Net: r.pools.nets[h]}
		if g.place != handles.NoPlace {
			ch := r.store.ChunkAt(g.place)
			if k.s.Deaths[i].Replaced && ch.Archetype().Pooled() != 0 {
				continue // somebody is there
			}
			k.nobodyAt(ch, g.place-ch.Base())
		}
	}
}

// cosmetics makes dead of all who are cosmetic.
func (k *capture) cosmetics() {
	for i, a := range k.archetypes {
		if !k.r.CosmeticClass(a.Class()) || a.Pooled() != 0 {
			continue
		}
		st := &k.s.Stores[i]
		for c, ch := range a.Chunks() {
			live, active := st.LiveIn(c), st.Chunks[c].Active
			for slot := range eachBit(live) {
				k.s.Deaths = append(k.s.Deaths, Death{
					Entity: ch.Entities()[slot], Place: ch.Base() + slot, WasActive: active[slot>>6]>>(slot&63)&1 != 0,
				})
			}
			clear(live)
			clear(active)
		}
	}
}

// eachBit yields the numbers of the bits that are set.
func eachBit(words []uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for w, word := range words {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(w<<6 | bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// words brings the words of local indices, which others may have changed while they were copied, into
// line with the rest, and notes who was destroyed from outside.
func (k *capture) words() {
	r, s := k.r, k.s
	known := newIndexMarks(s)
	for _, d := range s.Deaths {
		if r.replaced(s, d) {
			continue
		}
		known.mark(d.Entity.Index())
		*s.word(d.Entity.Index()) = uint64(handles.MakeWord(d.Entity.Generation(), handles.Dying, handles.NoPlace))
	}
	for i := range s.Locals {
		for list := range waiting(&s.Locals[i]) {
			for _, h := range list {
				known.mark(h.Index())
			}
		}
	}
	markAsleep(s, known)
	var outside []handles.Local
	for i := uint32(r.outside.Load()); i != 0; i = uint32(r.nextDead.Get(i)) {
		// Who died after the words were copied lives, as far as the state is concerned.
		if w := s.word(i); w != nil && handles.Word(*w).State() == handles.Dying && known.mark(i) {
			outside = append(outside, handles.NewLocal(i, handles.Word(*w).Generation()))
		}
	}
	slices.Reverse(outside) // the list is a stack
	for i := range s.Locals {
		outside = append(outside, strays(&s.Locals[i], known)...)
	}
	for _, h := range outside {
		// The word of a free index still has the place of whoever had it last, and a reserver may have taken the index
		// from its list meanwhile.
		if w := s.word(h.Index()); !k.livesAt(h, handles.Word(*w).Place()) {
			*w |= handles.NoPlace
		}
	}
	s.Outside = outside
}

// livesAt says whether h is who lives at a place.
func (k *capture) livesAt(h handles.Local, place uint32) bool {
	if place == handles.NoPlace {
		return false
	}
	ch := k.r.store.ChunkAt(place)
	if ch == nil || ch.Entities()[place-ch.Base()] != h {
		return false
	}
	at, ok := k.at[ch.Archetype()]
	slot := place - ch.Base()
	return ok && k.s.Stores[at].LiveIn(ch.Index())[slot>>6]>>(slot&63)&1 != 0
}

// strays are the dead that nobody knows of: their destroyers have not said so yet, or a reserver was
// about to take a free index. Both are like a reservation or an entity that was destroyed from outside.
func strays(l *handles.LocalsState, known *indexMarks) (names []handles.Local) {
	var retired []handles.Local // or perhaps such a stray
	for i, w := range l.Words {
		w, index := handles.Word(w), l.First+uint32(i)
		if w.State() != handles.Dying || known.has(index) {
			continue
		}
		if h := handles.NewLocal(index, w.Generation()); w.Place() != handles.NoPlace {
			names = append(names, h)
		} else {
			retired = append(retired, h)
		}
	}
	// Those that are retired have no next generation, so they have the highest.
	slices.SortStableFunc(retired, func(a, b handles.Local) int { return cmp.Compare(b.Generation(), a.Generation()) })
	return append(names, retired[min(int(l.Retired), len(retired)):]...)
}

// names notes what local indices are called, and families.
func (k *capture) names() {
	r, s := k.r, k.s
	for i := range s.Locals {
		l := &s.Locals[i]
		for n := uint32(0); n < uint32(len(l.Words)) && (r.recordsPart || r.netsUsed); n++ {
			if record := r.records.Get(l.First + n); record != 0 {
				s.Records = append(s.Records, IndexRecord{l.First + n, uint32(record)})
			}
			if net := r.netOf.Get(l.First + n); net != 0 {
				s.Named = append(s.Named, IndexNet{l.First + n, handles.Net(net)})
			}
		}
		for n := uint32(0); n < uint32(len(l.Words)) && r.hasKin(l.First+n); n++ {
			for c := r.kin(l.First + n).first; c != 0; c = r.kin(c).next {
				s.Links = append(s.Links, Link{Parent: l.First + n, Child: c})
			}
		}
	}
	for i, ok := r.parted.First(); ok; i, ok = r.parted.Next(i + 1) {
		s.Parted = append(s.Parted, i)
	}
}

// waiting yields the lists of names that wait to be issued.
func waiting(l *handles.LocalsState) iter.Seq[[]handles.Local] {
	return slices.Values([][]handles.Local{l.Free, l.Pending, l.Returned, l.Burned})
}

// word is the word of a local index, nil if the state has none.
func (s *State) word(index uint32) *uint64 {
	for i := range s.Locals {
		if l := &s.Locals[i]; index >= l.First && uint64(index)-uint64(l.First) < uint64(len(l.Words)) {
			return &l.Words[index-l.First]
		}
	}
	return nil
}

// indexMarks is a bit for each local index of a state.
type indexMarks struct {
	s    *State
	bits [][]uint64 // of each space
}

func newIndexMarks(s *State) *indexMarks {
	m := &indexMarks{s: s}
	for i := range s.Locals {
		m.bits = append(m.bits, make([]uint64, (len(s.Locals[i].Words)+63)/64))
	}
	return m
}

// at is where the bit of an index is, nil if it has none.
func (m *indexMarks) at(index uint32) (word *uint64, bit uint64) {
	for i := range m.bits {
		if l := &m.s.Locals[i]; index >= l.First && uint64(index)-uint64(l.First) < uint64(len(l.Words)) {
			return &m.bits[i][(index-l.First)>>6], 1 << ((index - l.First) & 63)
		}
	}
	return nil, 0
}

// has says whether an index is marked.
func (m *indexMarks) has(index uint32) bool {
	word, bit := m.at(index)
	return word != nil && *word&bit != 0
}

// mark marks an index, and says whether that is news of one that there is.
func (m *indexMarks) mark(index uint32) bool {
	word, bit := m.at(index)
	if word == nil || *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
