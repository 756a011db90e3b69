package registry

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// A record as data, for packages above: a journal writes down those of the frames that have ended, and a replay
// has frames done from what was written. Where history asks for a frame that has run here, the record of a
// replay is the first that the registry hears of it: outside handles are claimed by name, whatever happened
// to their indices in callbacks that failed and left nothing behind.

// ErrJournaled reports a load into a registry whose journal is being written: a journal begins with a state, and
// has no other.
var ErrJournaled = errors.New("registry: its journal is being written, in which a load has no place")

// undetermined is an ErrDeterministic with a text of its own: the other one's is about registries that are deterministic.
type undetermined string

func (e undetermined) Error() string { return "registry: " + string(e) }

func (e undetermined) Unwrap() error { return ErrDeterministic }

// errWish refuses a record for a journal: what parts of a loop in a window put off may be a closure.
var errWish = errors.New("registry: a callback from outside has put structure off to the next window (SpawnLater, AddLater, RemoveLater or Defer in a parallel loop): a journal has no words for that")

// beginRecords has records kept from now on, if they are not.
func (r *Registry) beginRecords() {
	rs := &r.recorded
	rs.init(int(max(2*r.hist.frames, 2)))
	if !rs.on {
		rs.on = true
		rs.begin(r.frame.Load() + 1)
	}
}

// Update is Registry.Update for who has entered.
//
// Errors: as Registry.Update.
// Concurrency: the goroutine that entered, between frames. Allocates: as Registry.Update.
func (c *Core) Update(fn func(*Window) error) error { return c.r.update(fn) }

// PutOff says whether something waits for the next window that is not known from outside: what systems and observers
// have put off.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) PutOff() bool { return c.r.putOff() > 0 }

// Cosmetics is how many entities of cosmetic classes there are.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) Cosmetics() (n int) {
	for _, a := range c.r.store.Archetypes() {
		if c.r.cosmetic(a) {
			n += a.Live() - c.r.idleIn(a)
		}
	}
	return n
}

// KeepRecords has what comes from outside recorded from here on, for RecordOf, with a temporal ring and without. What
// is now cannot be gone back over.
//
// Errors: ErrDeterministic without Config.Deterministic: there a death from outside has no place among the
// operations, and compaction moves what it likes.
// Concurrency: Logic only, between frames. Allocates: yes.
func (c *Core) KeepRecords() error {
	r := c.r
	if !r.cfg.Deterministic {
		return undetermined("records that can be done again need Config.Deterministic")
	}
	r.forbid()
	r.beginHistory()
	r.recorded.on = false // what was recorded is part of what is
	r.beginRecords()
	r.recorded.kept.Store(true)
	return nil
}

// forbid is a barrier that leaves it to the frames before to be reclaimed when they leave the ring.
func (r *Registry) forbid() {
	h := &r.hist
	oldest := h.oldest.Load()
	for i := range h.marks {
		if m := &h.marks[i]; m.begun && m.frame >= oldest {
			m.restored = true
		}
	}
	r.barrier()
}

// DropRecords ends that; what going back needs is recorded still.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) DropRecords() {
	rs := &c.r.recorded
	rs.kept.Store(false)
	rs.on = c.r.hist.on
	c.r.forgetReserved()
}

// Untouched says whether nothing has ever happened here: no frame, no handle, nothing put off.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) Untouched() bool {
	r := c.r
	return r.frame.Load() == 0 && r.locals.Lives() == 0 && r.outer.Lives() == 0 && r.nets.Deaths() == 0 && r.nets.Stats().Issued == 0 &&
		len(r.wishes) == 0 && len(r.store.Archetypes()) == 0
}

// Lives changes whenever a handle comes or goes.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) Lives() uint64 { return c.r.locals.Lives() + c.r.outer.Lives() }

// StepKind says what a step of a record is. The numbers are those of a journal.
type StepKind uint8

// The first kinds begin and end stretches of steps; the others are what happens in them.
const (
	StepUpdate    StepKind = iota // an Update begins, before the frame
	StepUpdateEnd                 // and ends
	StepSeen                      // what others have done, as a window sees it when it opens: Reserve and Destroyed
	StepCallback                  // a callback from outside: anything but those two stretches

	stepOps // an opKind and this are a StepKind

	StepSpawn         = stepOps + StepKind(opSpawn)         // Entity of Class; Other: at the first of a batch, how many were wanted
	StepSpawnReserved = stepOps + StepKind(opSpawnReserved) // Entity of Class
	StepDestroy       = stepOps + StepKind(opDestroy)       // Entity
	StepDestroyed     = stepOps + StepKind(opDestroyed)     // Entity, from outside
	StepChange        = stepOps + StepKind(opChange)        // Entity gets (Flag) or loses Component
	StepActive        = stepOps + StepKind(opActive)        // Entity becomes active (Flag) or not
	StepParent        = stepOps + StepKind(opParent)        // Entity below Other
	StepAssign        = stepOps + StepKind(opAssign)        // Entity gets a net name: it was Other
	StepBind          = stepOps + StepKind(opBind)          // Entity gets the net name Other of another owner
	StepNamed         = stepOps + StepKind(opNamed)         // the cause is Name
	StepProcess       = stepOps + StepKind(opProcess)       // ProcessDeferredDestructions
	StepConfirm       = stepOps + StepKind(opConfirm)       // local names freed through frame Other
	stepWish          = stepOps + StepKind(opWish)
	StepWrite         = stepOps + StepKind(opWrite)      // Field of Component of Entity gets a value
	StepReserve       = stepOps + StepKind(opReserve)    // Entity was reserved
	StepReset         = stepOps + StepKind(opReset)      // Reset
	StepConfirmNet    = stepOps + StepKind(opConfirmNet) // net names freed through frame Other
	StepBurnNet       = stepOps + StepKind(opBurnNet)    // Other net names were issued and taken back
	StepLost          = stepOps + StepKind(opLost)       // Entity was dead for the callback before a window saw it
	StepHome          = stepOps + StepKind(opHome)       // Class got the archetype that its entities begin in
	StepBlock         = stepOps + StepKind(opBlock)      // a pool of Class called Name was made: of Other slots, Entity in the first
	StepInitial       = stepOps + StepKind(opInitial)    // Field of Component has an initial value in the pool whose first slot has the local index Other
	StepTake          = stepOps + StepKind(opTake)       // Entity was spawned in the pool whose first slot has the local index Other
	StepDespawn       = stepOps + StepKind(opDespawn)    // Entity was despawned
	StepBurnt         = stepOps + StepKind(opBurnt)      // Entity is a name that no slot of a pool gets any more, or (Flag) the one that its slot has
	StepKinds         = stepOps + opKinds
)

// Step is one step of a record.
type Step struct {
	Kind      StepKind
	Flag      bool
	Entity    handles.Local
	Other     uint64
	Class     int // by number
	Component archetype.ComponentID
	Field     int // of Component
	Name      string

	// The value of a StepWrite or StepInitial, in the memory of the record. Bytes are those of a field without pointers, else nil.
	Value reflect.Value
	Bytes []byte
}

// Record is what came from outside before a frame and in its window. It belongs to the owner of the registry.
type Record struct {
	r    *Registry
	rec  *record
	step Step

	// Of one that is being filled.
	last   groupKind
	update bool // inside an Update
	framed bool // behind the Updates
}

// RecordOf gives the record of the frame that has ended last, while records are kept. It is good until the next
// one has ended, or RecordOf is called again.
//
// Errors: ErrTooOld for another frame; what was done in it and no record can hold.
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) RecordOf(frame uint64) (*Record, error) {
	r := c.r
	rs := &r.recorded
	if !rs.on || frame == 0 || frame != max(r.frame.Load(), r.hist.present.Load()) {
		return nil, ErrTooOld
	}
	rec := &rs.list[frame%uint64(len(rs.list))]
	if rec.frame != frame {
		return nil, ErrTooOld
	}
	if rec.alien != nil {
		return nil, rec.alien
	}
	rs.view = Record{r: r, rec: rec}
	return &rs.view, nil
}

// Frame is the number of the frame.
//
// Concurrency: as the Record. Allocates: no.
func (v *Record) Frame() uint64 { return v.rec.frame }

// Each calls fn with every step, in order, until it fails. The Step and what it refers to are only lent.
//
// Errors: that of fn.
// Concurrency: as the Record. Allocates: no.
func (v *Record) Each(fn func(*Step) error) error {
	for _, g := range v.rec.groups {
		v.step = Step{Kind: StepKind(g.kind)}
		if err := fn(&v.step); err != nil {
			return err
		}
		for i := g.from; i < g.to; i++ {
			v.show(&v.rec.ops[i])
			if err := fn(&v.step); err != nil {
				return err
			}
		}
	}
	return nil
}

// show makes an op a Step.
func (v *Record) show(o *op) {
	v.step = Step{
		Kind: stepOps + StepKind(o.kind), Flag: o.flag, Entity: o.h, Other: o.other, Class: int(o.class),
		Component: o.comp, Field: int(o.field),
	}
	switch o.kind {
	case opNamed:
		v.step.Name, v.step.Other = v.rec.names[o.other], 0
	case opWrite:
		comp, _ := v.r.schema.ByID(o.comp)
		v.place(&v.step, &comp.Fields[o.field], o.other)
		v.step.Other = 0
	case opBlock:
		v.step.Name, v.step.Other = v.rec.names[uint32(o.other)], o.other>>32
	case opInitial:
		comp, _ := v.r.schema.ByID(o.comp)
		v.place(&v.step, &comp.Fields[o.field], o.other)
		v.step.Other, v.step.Class = uint64(o.class), 0
	case opTake:
		v.step.Other, v.step.Class = uint64(o.class), 0
	}
}

// place gives a step the memory of its value. Sound: the log has values of the field's type, where the collector
// sees them, and the slice is as long as one of them.
func (v *Record) place(s *Step, f *archetype.Field, at uint64) {
	p := v.r.recorded.log(f).at(at)
	s.Value = reflect.NewAt(f.Type, p).Elem()
	if !f.Pointers {
		s.Bytes = unsafe.Slice((*byte)(p), f.Size)
	}
}

// NewRecord makes an empty record of the frame that comes next, to be filled with Add. There is one at a time:
// the values of the record before are forgotten.
//
// Concurrency: Logic only, between frames. Allocates: yes, the first time.
func (c *Core) NewRecord() *Record {
	rs := &c.r.recorded
	rs.init(int(max(2*c.r.hist.frames, 2)))
	if rs.made == nil {
		rs.made = &Record{r: c.r, rec: &record{}}
	}
	rs.made.rec.reset(c.r.frame.Load() + 1)
	rs.made.last, rs.made.update, rs.made.framed = groupUpdateEnd, false, false
	return rs.made
}

// Add appends a step. For a StepWrite or a StepInitial it fills in where the value is to be put: Value, and Bytes if the field has
// no pointers; until then it is zero.
//
// Errors: a step that no record of this registry has. What the step names may well be gone: then it is left out
// when it is done.
// Concurrency: as the Record. Allocates: for growth.
func (v *Record) Add(s *Step) error {
	rec, kind := v.rec, groupKind(s.Kind)
	if s.Kind < stepOps {
		if err := v.begins(kind); err != nil {
			return err
		}
		rec.groups = append(rec.groups, group{kind, len(rec.ops), len(rec.ops)})
		return nil
	}
	if err := v.check(s); err != nil {
		return err
	}
	o := op{h: s.Entity, other: s.Other, class: int32(s.Class), comp: s.Component, field: int16(s.Field), kind: opKind(s.Kind - stepOps), flag: s.Flag}
	switch s.Kind {
	case StepNamed:
		rec.names = append(rec.names, s.Name)
		o.other = uint64(len(rec.names) - 1)
	case StepBlock:
		rec.names = append(rec.names, s.Name)
		o.other = s.Other<<32 | uint64(len(rec.names)-1)
	case StepTake:
		o.class, o.other = int32(s.Other), 0
	case StepWrite, StepInitial:
		if s.Kind == StepInitial {
			o.class = int32(s.Other)
		}
		comp, _ := v.r.schema.ByID(s.Component)
		f := &comp.Fields[s.Field]
		log := v.r.recorded.log(f)
		at, p := log.add()
		reflect.NewAt(f.Type, p).Elem().SetZero()
		rec.use(log, at+1)
		o.other = at
		v.place(s, f, at)
	}
	rec.ops = append(rec.ops, o)
	rec.groups[len(rec.groups)-1].to++
	return nil
}

// begins says whether a stretch of a kind may begin here.
func (v *Record) begins(kind groupKind) error {
	switch last := v.last; {
	case kind == groupUpdate && !v.update && !v.framed:
		v.update = true
	case kind == groupUpdateEnd && !v.framed: // an exit may end an Update twice
		v.update = false
	case kind == groupDestroyed && (last == groupUpdate || last == groupUpdateEnd && !v.framed), kind == groupOps:
		v.framed = !v.update
	default:
		return fmt.Errorf("registry: the record of frame %d has a stretch of kind %d behind one of kind %d", v.rec.frame, kind, last)
	}
	v.last = kind
	return nil
}

// check says what is wrong with a step.
func (v *Record) check(s *Step) error {
	r, n := v.r, len(v.rec.groups)
	if s.Kind >= StepKinds || s.Kind == stepWish {
		return fmt.Errorf("registry: a record has no step of kind %d", s.Kind)
	}
	seen := s.Kind == StepReserve || s.Kind == StepDestroyed
	if n == 0 || v.rec.groups[n-1].kind != groupOps && (v.rec.groups[n-1].kind != groupDestroyed || !seen) {
		return fmt.Errorf("registry: step of kind %d outside a callback", s.Kind)
	}
	if uint64(s.Entity.Index()) > r.mostIndex() || s.Kind == StepParent && uint64(handles.Local(s.Other).Index()) > r.mostIndex() {
		return fmt.Errorf("registry: step of kind %d of %v, which is beyond the last index %d", s.Kind, s.Entity, r.mostIndex())
	}
	switch s.Kind {
	case StepSpawn, StepSpawnReserved, StepHome, StepBlock:
		r.mu.Lock()
		defer r.mu.Unlock()
		if s.Class < 0 || s.Class >= len(r.classes) {
			return fmt.Errorf("registry: step of kind %d of class %d", s.Kind, s.Class)
		}
		if s.Other > uint64(r.cfg.MaxEntities) {
			return fmt.Errorf("registry: a batch of %d entities", s.Other)
		}
		if s.Kind == StepBlock && (s.Other == 0 || s.Entity.Index() < r.outerFirst || uint64(s.Entity.Index())+s.Other-1 > r.mostIndex()) {
			return fmt.Errorf("registry: a pool of %d slots from %v on", s.Other, s.Entity)
		}
	case StepTake:
		if s.Other > r.mostIndex() {
			return fmt.Errorf("registry: a step of pool %d", s.Other)
		}
	case StepChange, StepWrite, StepInitial:
		if s.Kind == StepInitial && s.Other > r.mostIndex() {
			return fmt.Errorf("registry: a step of pool %d", s.Other)
		}
		comp, ok := r.schema.ByID(s.Component)
		if !ok || s.Kind != StepChange && (s.Field < 0 || s.Field >= len(comp.Fields)) {
			return fmt.Errorf("registry: step of kind %d of component %d, field %d", s.Kind, s.Component, s.Field)
		}
	case StepBurnNet:
		if s.Other > handles.MaxNetIndex {
			return fmt.Errorf("registry: %d net names were taken back in a callback", s.Other)
		}
	}
	return nil
}

// mostIndex is the highest local index there can be.
func (r *Registry) mostIndex() uint64 { return 2 * uint64(2*r.cfg.MaxEntities+indexSlack) }

// Feed has the frame that comes next done from a record that NewRecord gave, Updates and all, whether it has ever run
// here or not: UpdatesAgain, then the frame with OpsAgain. nil ends that.
//
// Errors: ErrDeterministic without Config.Deterministic; ErrTooOld for a record of another frame.
// Concurrency: Logic only, between frames. Allocates: yes, the first time.
func (c *Core) Feed(v *Record) error {
	r := c.r
	rs := &r.recorded
	rs.fed, rs.again = nil, nil
	if v == nil {
		return nil
	}
	if !r.cfg.Deterministic {
		return undetermined("a record is done again in a registry with Config.Deterministic")
	}
	if v.r != r || v.rec.frame != r.frame.Load()+1 {
		return ErrTooOld
	}
	r.beginHistory()
	rs.fed = v.rec
	return nil
}

// Reservations, while records are kept for a journal, are listed as deaths from outside are, and seen by the next
// window: so a replay knows the names that nobody has been given yet.

// What is there in place of the next one says that an index is in the list, too: it is the next one's plus one, and 0 outside.
// Who is reserved once more before a window has looked is there already, and is seen by the name that he has then.

func (r *Registry) pushReserved(index uint32) {
	next := r.nextReserved.Ensure(index)
	if !next.CompareAndSwap(0, 1) {
		return
	}
	for {
		head := r.reserved.Load()
		next.Store(head + 1)
		if r.reserved.CompareAndSwap(head, uint64(index)) {
			return
		}
	}
}

// drainReserved records them. It comes after the deaths were seen. Of those who are dead their deaths tell. Owner only.
func (r *Registry) drainReserved() {
	if r.reserved.Load() == 0 {
		return
	}
	first := uint32(0)
	for i := uint32(r.reserved.Swap(0)); i != 0; { // turn the stack round
		link := r.nextReserved.At(i)
		next := uint32(link.Load() - 1)
		link.Store(uint64(first) + 1)
		first, i = i, next
	}
	for i := first; i != 0; {
		link := r.nextReserved.At(i)
		next := uint32(link.Load() - 1)
		link.Store(0) // before the look: whoever comes too late for it is listed anew
		if w := r.locals.Word(i); w.State() == handles.Reserved || w.State() == handles.Alive {
			r.recordSeen(op{kind: opReserve, h: handles.NewLocal(i, w.Generation())})
		}
		i = next
	}
}

func (r *Registry) forgetReserved() {
	for i := uint32(r.reserved.Swap(0)); i != 0; {
		link := r.nextReserved.At(i)
		i = uint32(link.Load() - 1)
		link.Store(0)
	}
}

// claimOuter has an outer handle reserved that was never issued here.
func (r *Registry) claimOuter(h handles.Local) {
	if h.Index() < r.outerFirst || r.pooled(h.Index()) || r.locals.Word(h.Index()).Generation() >= h.Generation() {
		return
	}
	if r.outer.Claim(h, handles.Reserved, handles.NoPlace) {
		r.takeBackRoom()
	}
}

// nameReserved gives the entity that h is about to get its record, as SpawnReserved does.
func (r *Registry) nameReserved(h handles.Local) {
	if r.locals.Status(h) == handles.NotSpawned {
		r.nameRecord(h.Index())
	}
}

// takeAgain takes a slot for the first of a batch, or for a single one: the first chunk of an archetype is larger if
// a batch wants it.
func takeAgain(a *archetype.Archetype, batch int) (*archetype.Chunk, uint32, bool) {
	if batch < 2 || len(a.Chunks()) > 0 {
		return a.Take()
	}
	ch, slot, n, fresh := a.TakeRun(batch)
	for ; n > 1; n-- {
		a.Untake(ch, slot+n-1, fresh)
	}
	return ch, slot, fresh
}

// burnNets issues and takes back as many net names as a callback did that left nothing else behind.
func (r *Registry) burnNets(n uint64) {
	if r.recorded.fed == nil {
		return // they have not gone back
	}
	var names []handles.Net
	for range n {
		name, ok := r.nets.Issue(1)
		if !ok {
			break
		}
		names = append(names, name)
	}
	for i := len(names) - 1; i >= 0; i-- {
		r.nets.Unissue(names[i])
	}
}

// A death from outside is an operation of the next window, but for one thing: from the moment it comes, nobody else can
// destroy who died, or give birth to it, systems included. Whether one of them has met that is part of what came
// from outside in its frame.

// Lost is who was dead before a window saw it: an entity, or with Born false a reservation.
type Lost struct {
	Entity handles.Local
	Born   bool
}

// noteUnborn notes, while records are kept for a journal, that a reserved handle could not be born because others have
// destroyed it and no window has seen that. Owner and its workers.
func (r *Registry) noteUnborn(h handles.Local) {
	if r.recorded.kept.Load() {
		r.noteLost(h)
	}
}

// noteLost notes, for a journal and for frames that are simulated again, that h could not be destroyed because others
// have destroyed it and no window has seen that. Owner and its workers.
func (r *Registry) noteLost(h handles.Local) {
	rs := &r.recorded
	if !rs.kept.Load() && !r.hist.on {
		return
	}
	w := r.locals.Word(h.Index())
	if w.Generation() != h.Generation() || w.State() != handles.Dying || w.Place() == handles.NoPlace && !r.unseen(h.Index()) {
		return
	}
	if r.rec != nil {
		if rs.kept.Load() {
			r.rec.add(op{kind: opLost, h: h})
		}
		return
	}
	rs.lostMu.Lock()
	defer rs.lostMu.Unlock()
	lost := Lost{h, w.Place() != handles.NoPlace}
	if r.hist.on {
		r.spare(lost)
	}
	if rs.kept.Load() {
		rs.lost = append(rs.lost, lost)
	}
}

// unseen says whether somebody dead waits in the list of deaths from outside, or is about to. Owner and its workers.
func (r *Registry) unseen(index uint32) bool {
	if r.waitsOutside(index) {
		return true
	}
	r.recorded.lostMu.Lock() // one waits at a time
	r.fates.wait()           // for whoever has killed it and is not through with that
	r.recorded.lostMu.Unlock()
	return r.waitsOutside(index)
}

// lostIn is who could not be destroyed in a frame because others had done so, and no window had seen that.
type lostIn struct {
	frame uint64
	born  map[handles.Local]bool // by entity, see Lost
}

// spare notes somebody for the frame in progress, for when it is simulated again. lostMu is held.
func (r *Registry) spare(lost Lost) {
	rs, now := &r.recorded, r.frame.Load()
	if rs.spared == nil {
		rs.spared = make([]lostIn, 2*r.hist.frames)
	}
	l := &rs.spared[now%uint64(len(rs.spared))]
	if l.born == nil {
		l.born = map[handles.Local]bool{}
	}
	if l.frame != now {
		clear(l.born)
		l.frame = now
	}
	l.born[lost.Entity] = lost.Born
}

// spares says whether h, who lives again, was dead the first time when somebody wanted to destroy it in the frame that is
// simulated again: then it dies in the window that saw that, and of nothing else, and a journal is told once more. Owner
// and its workers.
func (r *Registry) spares(h handles.Local) bool {
	rs, now := &r.recorded, r.frame.Load()
	if now > r.hist.present.Load() {
		return false
	}
	rs.lostMu.Lock()
	defer rs.lostMu.Unlock()
	if rs.spared == nil {
		return false
	}
	l := &rs.spared[now%uint64(len(rs.spared))]
	if l.frame != now {
		return false
	}
	born, was := l.born[h]
	if was && rs.kept.Load() {
		rs.lost = append(rs.lost, Lost{h, born})
	}
	return was
}

// waitsOutside says whether a dead index is in the list of deaths from outside. Owner and its workers.
func (r *Registry) waitsOutside(index uint32) bool {
	for i := uint32(r.outside.Load()); i != 0; i = uint32(r.nextDead.Get(i)) {
		if i == index {
			return true
		}
	}
	return false
}

// TakeLost gives who was dead for systems before a window saw it, since the last call, and forgets it.
//
// Concurrency: Logic only, between frames. Allocates: if there are any.
func (c *Core) TakeLost() []Lost {
	rs := &c.r.recorded
	lost := slices.Clone(rs.lost)
	rs.lost = rs.lost[:0]
	return lost
}

// forgetLost forgets who was lost in what is not written down yet: going back has brought them back.
func (r *Registry) forgetLost() {
	rs := &r.recorded
	rs.lost = rs.lost[:0]
	if rs.open == nil {
		return
	}
	for i := range rs.open.ops {
		if o := &rs.open.ops[i]; o.kind == opLost {
			o.h = 0
		}
	}
}

// Lose adds one of those to a record that is being filled.
//
// Errors: a handle that no registry of this Config has.
// Concurrency: as the Record. Allocates: for growth.
func (v *Record) Lose(l Lost) error {
	if uint64(l.Entity.Index()) > v.r.mostIndex() {
		return fmt.Errorf("registry: %v is beyond the last index %d", l.Entity, v.r.mostIndex())
	}
	v.rec.lost = append(v.rec.lost, l)
	return nil
}

// loseAgain has those dead who were dead for the systems of the frame that is fed. Owner only.
func (r *Registry) loseAgain() {
	rs := &r.recorded
	if rs.fed == nil {
		return
	}
	for _, l := range rs.fed.lost {
		switch w := r.locals.Word(l.Entity.Index()); {
		case w.Generation() != l.Entity.Generation():
		case l.Born && w.State() == handles.Alive, !l.Born && w.State() == handles.Reserved:
			r.markDead(l.Entity)
		}
	}
}

// deadAgain has those dead whose deaths are about to be seen: they are before one of them is. Owner only.
func (r *Registry) deadAgain(ops []op) {
	for i := range ops {
		if o := &ops[i]; o.kind == opDestroyed {
			r.claimOuter(o.h)
			r.markDead(o.h)
		}
	}
}

// markDead destroys h as others do, but for the list in which they put it.
func (r *Registry) markDead(h handles.Local) {
	old, won := r.locals.Kill(h)
	if !won {
		return
	}
	if !r.pooled(h.Index()) {
		r.giveRoom(1)
	}
	if old.State() == handles.Alive {
		r.killed.Add(1)
	}
	r.recorded.marked[h] = true
}
