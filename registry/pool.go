package registry

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/bitset"
)

// ErrIdle reports an operation on an idle slot of a pool that is not for idle slots: nobody is there.
var ErrIdle = errors.New("registry: idle slot of a pool")

// Block is a fixed number of slots for entities of one class, with consecutive cache indices, set aside
// at once: what pools are made of. Every slot has an entity from the start, and always. At first all are
// idle: inactive, counted nowhere, told to nobody. Spawning is activation of the lowest idle one. Whoever
// dies, in whatever way, leaves the slot to a new entity, which is idle: it has the next generation of the same
// local index, so that the dead one's handle names nobody ever again.
//
// A slot whose index has no further generation is retired with it. So is one whose further generations were all seen by
// callbacks that failed: what they have seen is nobody's name ever again, and ErrInvalidHandle until the slot has gone on to
// later ones.
//
// With a temporal ring, what a callback from outside spawns gets a name of the outer space (see spaces.go), for
// as long as it lives; the slot's own name sleeps meanwhile. So rewinding the slot's own generations, which the
// same operations then go through again, takes no handle from somebody outside.
//
// A slot's own entity takes room for ever, whoever is in the slot: a block of n counts as n of MaxEntities.
type Block struct {
	r *Registry

	// Owner only: what the short way needs lies together, see poolquick.go.
	arch       *archetype.Archetype // nil while its making is taken back
	only       *archetype.Chunk     // the chunk, if there is one only
	chunks     []chunkOf            // else: of every 64 slots
	base       uint32               // cache index of slot 0
	first      uint32               // local index of slot 0; the others follow
	n          int
	lastName   uint32          // the last generation of a name
	words      []atomic.Uint64 // of the slots' own names, those that lie together with that of the first
	hushed     bool            // nobody is to be told of spawns and despawns
	least      int             // idle after a spawn, since the counters were shown; n without one
	keeping    bool            // a run of despawns goes on whose cells go to savedPairs, and nowhere else
	dirty      bool            // is in pools.dirty
	plain      bool            // all columns are in pairs
	savedTo    uint32          // positions in saved and savedPairs
	pairs      [][2]uint64     // initial values of the columns in Columns16
	savedPairs [][2]uint64     // cells of these that a callback has overwritten: a row for each position
	flats      []flat          // columns of other cells without pointers, see poolflat.go
	image      []uint64        // initial values of these: a row
	savedFlat  []uint64        // as savedPairs
	of         unsafe.Pointer  // the class, once it was asked for the block; nil while its making is taken back
	idle       idleSet

	class   int
	name    string
	fields  []*archetype.Field // of each column of components
	initial []unsafe.Pointer   // a value for each of them, those without pointers in pairs and image
	rest    []int              // those with pointers
	saved   []cellLog          // of each of these: as savedPairs
	retired int
	most    int // in use

	tenant []atomic.Uint32 // local index of who is in each slot: stored by the owner, loaded by anybody

	stale   atomic.Bool   // counts are out of date; stored by the owner
	counts  atomic.Uint64 // in use:32 | free:32, stored by the owner
	peak    atomic.Uint64 // most in use; stored by the owner
	refused atomic.Uint64 // spawns for which no slot was idle
}

// pools are the blocks of a registry. Owner only, but for homes.
type pools struct {
	any    bool // there has been one
	blocks []*Block
	homes  *handles.LazyWords // by local index: one past the cache index of its slot in a pool, 0 without one. The owner stores before anybody can know the index, anybody loads

	idle  int                           // slots
	homed int                           // of the dead who are not reclaimed, those whose slot has another entity
	seen  uint64                        // position in dying before which nobody's slot waits for another entity
	burnt map[uint32]uint32             // generations of own indices that failed callbacks have given out, if they were higher than those of then
	nets  map[handles.Local]handles.Net // net handles of the homed
	gone  []*Block                      // whose making was taken back by going back, to be made once more
	named map[string][]*Block           // those with a name, in the order of their making

	left    []handles.Local // who left by the short way since the last boundary
	leftOf  []leftOf        // and of what
	leftNow uint32          // causeAt of the last of them; noCause if it is to be noted anew
	dirty   []*Block        // whose counters have changed since then

	saving  []*Block                 // those that have kept cells in this callback
	burning []burnt                  // what the callback that fails has given names to
	lasting []undoOp                 // steps of a callback that fails, which are not taken back with it; newest first
	claims  map[handles.Local]uint32 // of handles in burned and hist.claimed: from which generation on the index was claimed
}

// burnt is a slot whose entity has a name that a callback which fails has given to somebody.
type burnt struct {
	place uint32
	h     handles.Local
}

// idleSet is a set of slots that knows in which word of 64 the lowest is, or a lower one. The short way in and out goes
// round its Add and Remove: what is counted with them is behind until reconcile.
type idleSet struct {
	bitset.Set
	low     uint32
	counted int // Len as of what pools.idle and Registry.inactive say
}

// Add puts a slot into the set, and says whether it is new there.
func (s *idleSet) Add(i uint32) bool {
	if i>>6 < s.low {
		s.low = i >> 6
	}
	if !s.Set.Add(i) {
		return false
	}
	s.counted++
	return true
}

// Remove takes a slot out of the set, and says whether it was there.
func (s *idleSet) Remove(i uint32) bool {
	if !s.Set.Remove(i) {
		return false
	}
	s.counted--
	return true
}

// First is the lowest slot; false if there is none.
func (s *idleSet) First() (uint32, bool) {
	i, ok := s.Next(s.low << 6)
	if ok {
		s.low = i >> 6
	}
	return i, ok
}

// takeSlow takes the lowest slot out; false if there is none.
//
//go:noinline
func (s *idleSet) takeSlow() (uint32, bool) {
	i, ok := s.First()
	return i, ok && s.Set.Remove(i)
}

// reconcile counts what has gone the short way. Owner only.
func (b *Block) reconcile() {
	n := b.idle.Len() - b.idle.counted
	b.r.pools.idle += n
	b.r.inactive += n
	b.idle.counted += n
}

func (r *Registry) initPools(limit uint32) {
	r.pools.homes, r.pools.leftNow = handles.NewLazyWords(limit), noCause
}

// pooled says whether a local index belongs to a pool's slot, or to who is in one. Any goroutine.
func (r *Registry) pooled(index uint32) bool { return r.pools.homes.Get(index) != 0 }

// blockAt finds the block and slot of a cache index in a pooled chunk.
func (r *Registry) blockAt(ch *archetype.Chunk, slot uint32) (*Block, uint32) {
	b := r.pools.blocks[ch.Archetype().Pooled()-1]
	return b, ch.Base() + slot - b.base
}

// idleAt says whether a slot of a chunk is an idle one of a pool.
func (r *Registry) idleAt(ch *archetype.Chunk, slot uint32) bool {
	if ch.Archetype().Pooled() == 0 {
		return false
	}
	b, i := r.blockAt(ch, slot)
	return b.idle.Has(i)
}

// idleIn is how many idle slots an archetype has.
func (r *Registry) idleIn(a *archetype.Archetype) int {
	if a.Pooled() == 0 {
		return 0
	}
	return r.pools.blocks[a.Pooled()-1].idle.Len()
}

// at is the chunk and slot of a block's slot.
func (b *Block) at(i uint32) (*archetype.Chunk, uint32) {
	if b.only != nil {
		return b.only, i
	}
	in := &b.chunks[i>>6]
	return in.chunk, i - in.first
}

// chunkOf is the chunk of 64 slots, and its first slot.
type chunkOf struct {
	chunk *archetype.Chunk
	first uint32
}

// lay notes where the slots are.
func (b *Block) lay(chunks []*archetype.Chunk) {
	b.chunks, b.only = nil, nil
	if len(chunks) == 1 {
		b.only = chunks[0]
		return
	}
	for _, ch := range chunks {
		for range ch.Slots() / 64 {
			b.chunks = append(b.chunks, chunkOf{ch, ch.Base() - b.base})
		}
	}
}

// own is the slot's own name.
func (b *Block) own(i uint32) handles.Local {
	return handles.NewLocal(b.first+i, b.r.locals.Word(b.first+i).Generation())
}

// NewBlock sets a block of n slots aside for entities of a class, all idle, with the cells of initial, which every
// slot has again whenever its entity dies. A name, which need not be one's own, is for BlocksNamed. A failed
// callback takes it back.
//
// Errors: n below 1; ErrExhausted without room for n entities, or without as many consecutive indices;
// ErrExpired; the class of another registry.
// Concurrency: window holder. Allocates: yes.
func NewBlock[E any](w *Window, c *Class[E], name string, n int, initial *E) (*Block, error) {
	r, err := w.open()
	if err != nil {
		return nil, err
	}
	if r != c.r {
		return nil, fmt.Errorf("registry: class %s belongs to another registry", c.name)
	}
	if n < 1 {
		return nil, fmt.Errorf("registry: a pool of %d slots", n)
	}
	b, err := r.makeBlock(c.index, name, n)
	if err != nil {
		return nil, err
	}
	if initial != nil {
		ch, slot := b.at(0)
		c.write(ch, slot, initial)
	}
	b.takeInitial(0)
	b.resetIdle()
	if r.rec != nil {
		r.rec.blocked(b)
	}
	return b, nil
}

// makeBlock makes a block whose cells are zero.
func (r *Registry) makeBlock(class int, name string, n int) (*Block, error) {
	c := r.class(class)
	if n > r.cfg.MaxEntities || !r.takeRooms(int64(n)) {
		return nil, fmt.Errorf("%w: a pool of %d slots", ErrExhausted, n)
	}
	a := r.store.Pool(class, c.sig, c.name, c.slots, n, len(r.pools.blocks)+1)
	if a == nil {
		r.giveRoom(int64(n))
		return nil, fmt.Errorf("%w: a pool of %d slots: no cache indices", ErrExhausted, n)
	}
	base := a.Chunks()[0].Base()
	first, ok := r.issuer.IssueRun(n, base)
	if !ok {
		r.giveRoom(int64(n))
		for i := n - 1; i >= 0; i-- {
			ch := r.store.ChunkAt(base + uint32(i))
			a.Untake(ch, base+uint32(i)-ch.Base(), true)
		}
		r.store.Drop(a)
		return nil, fmt.Errorf("%w: a pool of %d slots: no consecutive local indices", ErrExhausted, n)
	}
	b := r.blockFor(class, name, n, first)
	r.addBlock(b, a, first)
	r.log(undoOp{kind: undoArchetype})
	r.logBirth(first, true)
	for i := range uint32(n) {
		h := handles.NewLocal(b.first+i, first.Generation())
		if i > 0 {
			r.undoHandles = append(r.undoHandles, h)
		}
		b.settle(i, h)
	}
	b.settled()
	return b, nil
}

// addBlock lists a block whose storage was made.
func (r *Registry) addBlock(b *Block, a *archetype.Archetype, first handles.Local) {
	p := &r.pools
	b.arch, b.base, b.first = a, a.Chunks()[0].Base(), first.Index()
	b.lay(a.Chunks())
	b.least = b.n
	b.words, b.lastName = r.locals.WordsFrom(b.first), r.locals.LastGeneration()
	b.describe()
	p.any = true
	p.blocks = append(p.blocks, b)
	if b.name != "" {
		if p.named == nil {
			p.named = map[string][]*Block{}
		}
		p.named[b.name] = append(p.named[b.name], b)
	}
}

// settled counts the entities of a new block, all idle.
func (b *Block) settled() {
	r := b.r
	r.run = runNone
	r.inactive += b.n
	r.pools.idle += b.n
	b.arch.AddLive(b.n)
	r.moves++
	b.count()
}

// settle puts the first entity into a slot.
func (b *Block) settle(i uint32, h handles.Local) {
	r := b.r
	r.pools.homes.Ensure(h.Index()).Store(uint64(b.base+i) + 1)
	if !r.ringed() && (r.recordsPart || !r.globals.TryIssue(h.Index())) {
		r.nameRecord(h.Index())
	}
	ch, slot := b.at(i)
	ch.Entities()[slot] = h
	b.tenant[i].Store(h.Index())
	b.idle.Add(i)
}

// blockFor is a fresh block, or the one whose making was taken back when the registry went back, and which is made
// once more: whoever had it has it again. One made from outside is known by its names.
func (r *Registry) blockFor(class int, name string, n int, first handles.Local) *Block {
	p := &r.pools
	for k := len(p.gone) - 1; k >= 0 && r.replaying(); k-- {
		b := p.gone[k]
		outer := b.first >= r.outerFirst
		if b.class == class && b.name == name && b.n == n && outer == (first.Index() >= r.outerFirst) && (!outer || b.first == first.Index()) {
			p.gone = slices.Delete(p.gone, k, k+1)
			return b
		}
	}
	return &Block{r: r, name: name, class: class, n: n, tenant: make([]atomic.Uint32, n)}
}

// unsettle takes settle back, but for what every birth has, and for the home: whoever destroys h meanwhile is to find that
// its room is the pool's.
func (r *Registry) unsettle(ch *archetype.Chunk, slot uint32) {
	b, i := r.blockAt(ch, slot)
	if b.idle.Remove(i) {
		r.pools.idle--
	}
}

// unissue takes the claim of h back, who may have a home: whoever claims its index next, as soon as it is free, has room of its
// own. False if h was killed meanwhile.
func (r *Registry) unissue(h handles.Local) bool {
	space := r.spaceOf(h.Index())
	if !r.pooled(h.Index()) {
		return space.Unissue(h)
	}
	if _, won := r.locals.Kill(h); !won {
		return false
	}
	r.locals.SetPlace(h, handles.NoPlace)
	r.noHome(h.Index())
	space.UnissueKilled(h)
	return true
}

// noHome says that an index belongs to no pool any more.
func (r *Registry) noHome(index uint32) {
	if r.pooled(index) {
		r.pools.homes.At(index).Store(0)
	}
}

// dropBlock takes the last block back, whose slots are no more.
func (r *Registry) dropBlock() {
	p := &r.pools
	b := p.blocks[len(p.blocks)-1]
	p.blocks[len(p.blocks)-1] = nil
	p.blocks = p.blocks[:len(p.blocks)-1]
	if b.name != "" {
		list := p.named[b.name]
		p.named[b.name] = list[:len(list)-1]
	}
	b.arch, b.only, b.chunks, b.of, b.retired = nil, nil, nil, nil, 0
	b.reconcile()
	b.idle.Clear()
	b.idle.counted = 0
	b.count()
	if r.hist.going {
		p.gone = append(p.gone, b)
	}
}

// BlocksNamed are the blocks with a name, in the order of their making. The slice is valid until the next one is made.
//
// Concurrency: window holder, or Logic outside parallel loops. Allocates: no.
func (r *Registry) BlocksNamed(name string) []*Block { return r.pools.named[name] }

// BlocksOf are the blocks of a class, in the order of their making.
//
// Concurrency: window holder, or Logic outside parallel loops. Allocates: the list.
func BlocksOf[E any](r *Registry, c *Class[E]) (list []*Block) {
	for _, b := range r.pools.blocks {
		if b.class == c.index {
			list = append(list, b)
		}
	}
	return list
}

// Name is what NewBlock was told.
//
// Concurrency: any goroutine. Allocates: no.
func (b *Block) Name() string { return b.name }

// Len is how many slots there are.
//
// Concurrency: any goroutine. Allocates: no.
func (b *Block) Len() int { return b.n }

// Base is the cache index of slot 0; the others follow.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (b *Block) Base() uint32 { return b.base }

// Made says whether the block exists: a failed callback, or going back, takes its making back.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (b *Block) Made() bool { return b.arch != nil }

// Slot is the handle of who is in a slot, idle or not; that of who was there last, until the next window, after a
// death through Registry.Destroy. Zero outside of 0 to Len()-1.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (b *Block) Slot(i int) handles.Local {
	if i < 0 || i >= b.n {
		return 0
	}
	index := b.tenant[i].Load()
	return handles.NewLocal(index, b.r.locals.Word(index).Generation())
}

// SlotOf is the slot of h, or of who was there; false if that was never one of this block.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (b *Block) SlotOf(h handles.Local) (int, bool) {
	i, ok := b.slotOf(h.Index())
	return int(i), ok
}

func (b *Block) slotOf(index uint32) (uint32, bool) {
	home := b.r.pools.homes.Get(index)
	if home == 0 || b.arch == nil || uint32(home-1) < b.base || uint32(home-1)-b.base >= uint32(b.n) {
		return 0, false
	}
	return uint32(home-1) - b.base, true
}

// BlockCounts counts the slots of a block: InUse + Free + Retired is its length.
type BlockCounts struct {
	InUse, Free, Retired int
	Peak                 int    // most that were ever in use
	Refused              uint64 // spawns for which no slot was idle
}

// Counts is a consistent copy of the counters: as they were when the last callback or system ended, and for who is
// inside one, as they are now. If that one has changed them it takes microseconds to find out who asks: InUse and Free
// are for hot paths.
//
// Concurrency: any goroutine; never waits. Allocates: no, but inside a callback that has changed the pool.
func (b *Block) Counts() BlockCounts {
	c := b.counts.Load()
	if b.stale.Load() && b.r.owning() {
		free, inUse := b.tally()
		c = uint64(inUse)<<32 | uint64(free)
	}
	s := BlockCounts{InUse: int(c >> 32), Free: int(uint32(c)), Refused: b.refused.Load()}
	s.Peak = max(int(b.peak.Load()), s.InUse)
	s.Retired = b.n - s.InUse - s.Free
	return s
}

// InUse is how many slots are neither idle nor retired, at this moment.
//
// Concurrency: window holder, or Logic outside parallel loops. Allocates: no.
func (b *Block) InUse() int {
	_, n := b.tally()
	return n
}

// Free is how many slots are idle, at this moment.
//
// Concurrency: window holder, or Logic outside parallel loops. Allocates: no.
func (b *Block) Free() int {
	n, _ := b.tally()
	return n
}

func (b *Block) tally() (free, inUse int) {
	if b.arch == nil {
		return 0, 0
	}
	free = b.idle.Len()
	return free, b.n - b.retired - free
}

// count shows the counters. Owner only.
func (b *Block) count() {
	free, inUse := b.tally()
	if b.least < b.n {
		b.most, b.least = max(b.most, b.n-b.retired-b.least), b.n
	}
	if uint64(b.most) > b.peak.Load() {
		b.peak.Store(uint64(b.most))
	}
	b.counts.Store(uint64(inUse)<<32 | uint64(free))
}
