package registry

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Spawn makes an entity with the values of e and gives its handle. The entity is active.
//
// Errors: ErrExhausted at MaxEntities, or when more than that many indices wait for a
// confirm; ErrExpired.
// Concurrency: window holder. Allocates: a chunk now and then.
func (c *Class[E]) Spawn(w *Window, e E) (handles.Local, error) {
	r := c.r
	if w == nil || w.r != r || w.closed.Load() || c.home == nil {
		if _, err := c.enterSlow(w); err != nil {
			return 0, err
		}
	}
	if !r.takeRoom() {
		return 0, ErrExhausted
	}
	h, ch, slot := r.birth(c.home)
	if h == 0 {
		r.giveRoom(1)
		return 0, ErrExhausted
	}
	c.write(ch, slot, &e)
	return h, nil
}

// birth takes a slot and a handle and joins them. A zero handle says that there are no
// more indices; nothing has changed then. The caller has taken room. Owner only.
//
// It is the hottest function of the package, hence written out: with its steps in
// functions of their own, a spawn cost 1.4 times as much.
func (r *Registry) birth(a *archetype.Archetype) (handles.Local, *archetype.Chunk, uint32) {
	ch, slot, fresh := a.Take()
	if ch == nil {
		return 0, nil, 0
	}
	h, ok := r.issuer.Issue(ch.Base() + slot)
	if !ok {
		a.Untake(ch, slot, fresh)
		return 0, nil, 0
	}
	if fresh == (r.run == runFresh) && r.run&(runReused|runFresh) != 0 {
		r.undoHandles = append(r.undoHandles, h)
	} else {
		r.logBirth(h, fresh)
	}
	if r.recordsPart || !r.globals.TryIssue(h.Index()) {
		r.nameRecord(h.Index())
	}
	if r.rec != nil {
		r.rec.spawned(h, a.Class())
	}
	ch.Entities()[slot] = h
	if r.iterating == 0 {
		ch.SetBit(slot)
	} else {
		r.showLater(ch, slot)
	}
	a.AddLive(1)
	if len(r.observers[Spawned]) > 0 {
		r.event(Spawned, h, 0)
	}
	return h, ch, slot
}

// settle writes who lives in a slot, for a handle that was reserved. Owner only.
func (r *Registry) settle(a *archetype.Archetype, ch *archetype.Chunk, slot uint32, h handles.Local) {
	r.settled++ // the board goes by it
	ch.Entities()[slot] = h
	r.show(ch, slot)
	a.AddLive(1)
	r.event(Spawned, h, 0)
}

// nameRecord gives the entity at a local index its record. Record indices are reused at
// once and local ones late, so the two part; the last record an index had is asked for
// first, so that the word that joins them seldom has to be written.
//
// A record that has served its own local index only is named by that index's generation,
// which rises with every life: it costs no locked operation of its own, and no word says
// anything about it. Once it serves another, it is parted, for good: its generations go on
// from there in package handles, and every local index it serves has a word.
//
// With a temporal ring records go with the local index for good: a record that was reused at once could
// have served two entities in one frame, when that is simulated again.
//
// Any goroutine reads the words: between two loads of the local word (Resolve). Owner only.
func (r *Registry) nameRecord(index uint32) {
	if r.ringed() { // the record is the index
		return
	}
	want := r.recordOf(index)
	g := r.globals.Issue(want)
	if g != want || g == index && r.parted.Has(g) && r.records.Get(index) == 0 {
		r.partRecord(index, g)
	}
}

// partRecord joins a local index to a record by a word.
func (r *Registry) partRecord(index, record uint32) {
	r.recordsPart, r.shortOut = true, nil
	for record != index && !r.parted.Has(record) {
		r.parted.Add(record)
		if r.globals.Raise(record, r.locals.Word(record).Generation()+1) {
			break
		}
		record = r.globals.Issue(index) // that one had no generation left
	}
	r.records.Ensure(index).Store(uint64(record))
}

// freeRecord frees the record of a dead entity.
func (r *Registry) freeRecord(h handles.Local) {
	if r.ringed() {
		return
	}
	if g := r.records.Get(h.Index()); g != 0 {
		r.globals.Free(uint32(g))
		return
	}
	r.globals.FreeOwn(h.Index(), h.Generation())
}

// reuseRecord takes back that a reservation had a record, though it may get one again with
// the same generation: from now on the record counts its own.
func (r *Registry) reuseRecord(h handles.Local) {
	record := r.recordOf(h.Index())
	if !r.parted.Has(record) {
		r.parted.Add(record)
		r.recordsPart, r.shortOut = true, nil
		if !r.globals.Raise(record, h.Generation()+1) {
			return
		}
	}
	r.globals.Unissue(record)
}

// recordOf is the record of a local index. Any goroutine.
func (r *Registry) recordOf(index uint32) uint32 {
	if g := r.records.Get(index); g != 0 {
		return uint32(g)
	}
	return index
}

// show sets the Active bit of a new or moved entity, after the loops that are open: an
// entity born while a loop runs is not visited by it. Owner only.
func (r *Registry) show(ch *archetype.Chunk, slot uint32) {
	if r.iterating == 0 {
		ch.SetBit(slot)
		return
	}
	r.showLater(ch, slot)
}

// showRun is show for n neighbouring slots.
func (r *Registry) showRun(ch *archetype.Chunk, slot, n uint32) {
	if r.iterating != 0 {
		for i := range n {
			r.showLater(ch, slot+i)
		}
		return
	}
	for active := ch.Active(); n > 0; {
		first := slot & 63
		k := min(n, 64-first)
		mask := ^uint64(0) >> (64 - k) << first
		if planted.Enabled && planted.Is(planted.PlaneWordBorder) && n > k {
			mask &^= 1 << 63
		}
		active[slot>>6] |= mask
		slot, n = slot+k, n-k
	}
}

func (r *Registry) showLater(ch *archetype.Chunk, slot uint32) {
	if ch.MarkBorn(slot) {
		r.bornChunks = append(r.bornChunks, ch)
	}
}

// shown says whether the entity in a slot is active, seen or not yet.
func shown(ch *archetype.Chunk, slot uint32) bool { return ch.Bit(slot) || ch.Born(slot) }

// hide clears the Active bit and says whether it was set. Several workers may do so with bits
// of one word, and with one bit, at once in a frame.
func (r *Registry) hide(ch *archetype.Chunk, slot uint32) bool {
	if r.inFrame {
		return clearShared(ch, slot)
	}
	if !shown(ch, slot) {
		return false
	}
	ch.MarkActive()
	ch.ClearBit(slot)
	if len(r.bornChunks) != 0 {
		ch.ClearBorn(slot)
	}
	return true
}

// SpawnReserved gives a reserved handle its entity.
//
// Errors: ErrStale when the reservation was destroyed; ErrInvalidHandle when h was never
// reserved or has its entity already; ErrExpired.
// Concurrency: window holder. Allocates: a chunk now and then.
func (c *Class[E]) SpawnReserved(w *Window, h handles.Local, e E) error {
	r, err := c.enter(w)
	if err != nil {
		return err
	}
	switch r.locals.Status(h) {
	case handles.NotSpawned:
	case handles.Live:
		return fmt.Errorf("%w: %v has its entity already", ErrInvalidHandle, h)
	default:
		r.noteUnborn(h)
		return r.gone(h)
	}
	ch, slot, fresh := c.home.Take()
	if ch == nil {
		return ErrExhausted
	}
	r.nameRecord(h.Index())                   // first: others know h, and may resolve it as soon as it is alive
	if !r.locals.Spawned(h, ch.Base()+slot) { // destroyed meanwhile
		if !r.ringed() {
			r.globals.Unissue(r.recordOf(h.Index()))
		}
		c.home.Untake(ch, slot, fresh)
		r.noteUnborn(h)
		return ErrStale
	}
	if r.rec != nil {
		r.rec.reserved(h, c.index)
	}
	r.log(undoOp{kind: undoReserved, h: h, fresh: fresh})
	r.settle(c.home, ch, slot, h)
	c.write(ch, slot, &e)
	return nil
}

// SpawnBatch makes n entities; init, which may be nil, fills in the i-th one's components,
// which start as zero values. The handles come in the order of i; the caller keeps them. A
// batch that does not fit, or whose init panics, has no effect at all, unless init commits
// (ProcessDeferredDestructions, a confirm, Reset), which is not for it to do. Entities are
// in sight, for a query inside init say, when init has filled in the chunk they are in.
//
// Errors: ErrExhausted; a negative n; ErrExpired.
// Concurrency: window holder. Allocates: the handles, and an E when there is an init.
func (c *Class[E]) SpawnBatch(w *Window, n int, init func(i int, e *E)) ([]handles.Local, error) {
	if init == nil {
		return c.spawnRuns(w, n, nil)
	}
	e := new(E) // init may keep the pointer, so it cannot be on the stack
	return c.spawnRuns(w, n, func(ch *archetype.Chunk, slot uint32, first, n int) {
		for i := range n {
			var zero E
			*e = zero
			init(first+i, e)
			c.write(ch, slot+uint32(i), e)
		}
	})
}

// SpawnRuns is Class.SpawnBatch for packages above: fill gets neighbouring slots of a chunk
// of the class's own archetype instead of entities one by one. The cells are zero, and the
// run's first entity is number first of the batch.
//
// Errors: as Class.SpawnBatch.
// Concurrency: window holder. Allocates: the handles.
func SpawnRuns[E any](w *Window, c *Class[E], n int, fill func(ch *archetype.Chunk, slot uint32, first, n int)) ([]handles.Local, error) {
	return c.spawnRuns(w, n, fill)
}

// Remembered gives the V of a class, and has it made the first time: for packages above, which work something out of a class that
// does not change. It lives as long as the class.
//
// Errors: what fresh answers, and then nothing is remembered; as Class.SpawnBatch for a class of another registry; ErrExpired.
// Concurrency: window holder, who may change what V points to. Allocates: the first time.
func Remembered[V, E any](w *Window, c *Class[E], fresh func() (V, error)) (V, error) {
	var none V
	if r, err := w.open(); err != nil {
		return none, err
	} else if r != c.r {
		return none, c.elsewhere()
	}
	for _, v := range c.remembered {
		if v, ok := v.(V); ok {
			return v, nil
		}
	}
	v, err := fresh()
	if err == nil {
		c.remembered = append(c.remembered, v)
	}
	return v, err
}

func (c *Class[E]) spawnRuns(w *Window, n int, fill fillRun) ([]handles.Local, error) {
	r, err := c.enter(w)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("registry: SpawnBatch of %d entities", n)
	}
	if n == 0 {
		return nil, nil
	}
	if !r.takeRooms(int64(n)) {
		return nil, ErrExhausted
	}
	out := make([]handles.Local, n)
	r.run = runNone // what the batch does must not join a step before mark
	mark, whole := len(r.undo), false
	var ops, newborn int
	if r.rec != nil {
		ops, newborn = r.rec.mark()
	}
	defer func() { // also when fill panics or exits
		if !whole {
			r.undoTo(mark)
			if r.rec != nil {
				r.rec.cut(ops, newborn)
				r.rec.leave()
			}
			if len(r.family) > 0 {
				r.killOrphans()
			}
			r.tellMoves()
		}
	}()
	whole = c.fillBatch(r, out, fill)
	if !whole {
		return nil, ErrExhausted
	}
	return out, nil
}

// fillRun writes n neighbouring newborn entities, the first of them number first of the batch.
type fillRun = func(ch *archetype.Chunk, slot uint32, first, n int)

// fillBatch spawns len(out) entities, in runs of neighbouring slots, and says whether
// there were indices for all. Room was taken for all; undo gives it back for those born,
// this function for the others.
func (c *Class[E]) fillBatch(r *Registry, out []handles.Local, fill fillRun) bool {
	born := 0
	defer func() { r.giveRoom(int64(len(out) - born)) }()
	for born < len(out) {
		if c.home == nil { // undone inside fill
			c.home = r.archetypeOf(c.index, c.sig)
		}
		ch, slot, n := r.birthRun(c.home, out[born:])
		if n == 0 {
			return false
		}
		born += n
		r.fillAndShow(ch, slot, born-n, n, fill)
	}
	return true
}

// fillAndShow has a run written. Its entities are in sight when all are: a query inside fill
// does not meet them.
func (r *Registry) fillAndShow(ch *archetype.Chunk, slot uint32, first, n int, fill fillRun) {
	defer r.showRun(ch, slot, uint32(n)) // also on a panic, for undo hides them again
	if fill != nil {
		fill(ch, slot, first, n)
	}
}

// birthRun is birth for some neighbouring slots, as many as there are, up to len(out), but
// leaves it to the caller to show them. None says that there are no more indices. Owner only.
func (r *Registry) birthRun(a *archetype.Archetype, out []handles.Local) (*archetype.Chunk, uint32, int) {
	wanted := len(out)
	ch, slot, count, fresh := a.TakeRun(wanted)
	if ch == nil {
		return nil, 0, 0
	}
	entities := ch.Entities()[slot : slot+count]
	born := 0
	for ; born < len(entities); born++ {
		h, ok := r.issuer.Issue(ch.Base() + slot + uint32(born))
		if !ok {
			break
		}
		entities[born], out[born] = h, h
	}
	named := 0
	if !r.recordsPart {
		named = r.globals.IssueRun(out[:born])
	}
	for _, h := range out[named:born] {
		if r.recordsPart || !r.globals.TryIssue(h.Index()) {
			r.nameRecord(h.Index())
		}
	}
	for i := len(entities) - 1; i >= born; i-- {
		a.Untake(ch, slot+uint32(i), fresh)
	}
	if born == 0 {
		return nil, 0, 0
	}
	out = out[:born]
	if r.rec != nil {
		first := len(r.rec.rec.ops)
		for _, h := range out {
			r.rec.spawned(h, a.Class())
		}
		r.rec.rec.ops[first].other = uint64(wanted)
	}
	r.logBirths(out, fresh)
	if len(r.observers[Spawned]) > 0 {
		for _, h := range out {
			r.event(Spawned, h, 0)
		}
	}
	a.AddLive(born)
	return ch, slot, born
}

// Reserve gives a handle now for an entity that SpawnReserved makes later. Until then the
// handle is not alive (ErrNotSpawned), but may be stored in other entities and destroyed.
// A reservation counts towards MaxEntities.
//
// Errors: ErrExhausted.
// Concurrency: any goroutine; never waits. Allocates: a page of indices now and then.
func (r *Registry) Reserve() (handles.Local, error) {
	if !r.takeRoomOutside() {
		return 0, ErrExhausted
	}
	h, ok := r.outer.Reserve()
	if !ok {
		r.room.Add(1)
		return 0, ErrExhausted
	}
	if r.recorded.kept.Load() {
		r.pushReserved(h.Index())
	}
	return h, nil
}
