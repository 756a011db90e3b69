package registry

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What callbacks from outside do is recorded as data, so that it can be done again when frames are simulated
// again: the steps in their order with the handles that came out, then the values of all cells that the
// callback reached, as they were when it was committed. The closures are not kept, and run once.
//
// A record is of a frame: the Updates before it, the deaths from outside that its window has seen, and the
// operations of its window.

// opKind says what a step is. Journals have these numbers, and those of groupKind: new ones go to the end.
type opKind uint8

const (
	opSpawn         opKind = iota // h of class; other: at the first of a batch, how many were wanted
	opSpawnReserved               // h of class, reserved before
	opDestroy                     // h
	opDestroyed                   // h, from outside, seen by the window
	opChange                      // h gets (flag) or loses comp
	opActive                      // h becomes active (flag) or not
	opParent                      // h below other
	opAssign                      // h gets the net name other
	opBind                        // h gets the net name other of another owner
	opNamed                       // cause: other in names
	opProcess                     // ProcessDeferredDestructions
	opConfirm                     // local names freed through frame other
	opWish                        // other in wishes
	opWrite                       // h: field of comp has the value other of its log
	opReserve                     // h was reserved
	opReset                       // Reset
	opConfirmNet                  // net names freed through frame other
	opBurnNet                     // other net names were issued and taken back
	opLost                        // h could not be destroyed: see noteLost
	opHome                        // class got the archetype that its entities begin in
	opBlock                       // a pool of class was made, h in the first slot; other: how many slots, and in the low half its name in names
	opInitial                     // field of comp of the slots of the pool class, see Block.number, has the initial value other of its log
	opTake                        // h was spawned in the pool class, see Block.number; other: one more than what class of entities it is of
	opDespawn                     // h was despawned
	opBurnt                       // h is a name of a slot that a callback which failed has given to somebody, or (flag) the one after
	opKinds         = iota
)

// op is a step of a record.
type op struct {
	h     handles.Local
	other uint64
	class int32
	comp  archetype.ComponentID
	field int16
	kind  opKind
	flag  bool
}

// groupKind says what a stretch of a record's steps is.
type groupKind uint8

const (
	groupUpdate    groupKind = iota // an Update begins
	groupUpdateEnd                  // and ends
	groupDestroyed                  // deaths from outside, seen at the opening of a window
	groupOps                        // a callback
)

type group struct {
	kind     groupKind
	from, to int // of ops
}

// record is what was done from outside before a frame and in its window.
type record struct {
	frame  uint64
	groups []group
	ops    []op
	names  []string
	wishes []wish
	used   []cellUse
	lost   []Lost // to be fed: who was dead for the frame before a window saw it, see noteLost
	alien  error  // what cannot be told as data: the first such thing
}

// cellUse says how far a record has used a log of values.
type cellUse struct {
	log *cellLog
	end uint64
}

func (rec *record) reset(frame uint64) {
	for _, u := range rec.used {
		u.log.trim(u.end)
	}
	clear(rec.names)
	clear(rec.wishes)
	*rec = record{frame: frame, groups: rec.groups[:0], ops: rec.ops[:0], names: rec.names[:0], wishes: rec.wishes[:0], used: rec.used[:0], lost: rec.lost[:0]}
}

// records are those of the frames that can be simulated again. Owner only.
type records struct {
	on    bool
	kept  atomic.Bool // for a journal, too: the owner stores, Reserve loads
	list  []record    // of frame n at n % len
	open  *record     // of the frame in progress, or the next one
	cells map[archetype.FieldKey]*cellLog
	now   recording

	lostMu sync.Mutex // guards lost against the workers of a frame; leaf lock
	lost   []Lost     // see noteLost

	// Where doing again has come.
	again    *record
	made     *Record                // of NewRecord
	view     Record                 // of RecordOf
	fed      *record                // the next frame is done from it, though it never ran here; see Feed
	next     int                    // of its groups
	went     bool                   // the registry has gone back since
	spared   []lostIn               // of frame n at n % len, see spares; guarded by lostMu
	marked   map[handles.Local]bool // of those that the records fed have lost, who waits to be seen dead
	updates  bool                   // Updates are done again, those before the next new frame among them
	updating int                    // stage of the Update that is done again, see UpdatesAgain
	early    map[handles.Local]bool // seen dead by a window that was done again, and still in the outside list
}

func (rs *records) init(frames int) {
	if rs.cells != nil {
		return
	}
	rs.list = make([]record, frames)
	rs.cells = map[archetype.FieldKey]*cellLog{}
	rs.early, rs.marked = map[handles.Local]bool{}, map[handles.Local]bool{}
}

// begin opens the record of a frame.
func (rs *records) begin(frame uint64) {
	if rs.on {
		rs.open = &rs.list[frame%uint64(len(rs.list))]
		rs.open.reset(frame)
	}
}

// replaying says whether frames that have run are run again.
func (r *Registry) replaying() bool {
	if r.recorded.fed != nil || r.recorded.updates {
		return true
	}
	f, present := r.frame.Load(), r.hist.present.Load()
	return f < present || f == present && r.frames.begun
}

// note adds a group without steps. Owner only.
func (r *Registry) note(kind groupKind) {
	if rs := &r.recorded; rs.on {
		n := len(rs.open.ops)
		rs.open.groups = append(rs.open.groups, group{kind, n, n})
	}
}

// recordDestroyed notes a death from outside that a window has seen.
func (r *Registry) recordDestroyed(h handles.Local) { r.recordSeen(op{kind: opDestroyed, h: h}) }

// recordSeen notes what a window has seen of others: at its opening, or in the middle of a callback, for Reset.
func (r *Registry) recordSeen(o op) {
	rs := &r.recorded
	if r.rec != nil {
		r.rec.add(o)
		return
	}
	if !rs.on || r.replaying() {
		return
	}
	rec := rs.open
	rec.ops = append(rec.ops, o)
	if n := len(rec.groups); n > 0 && rec.groups[n-1].kind == groupDestroyed && rec.groups[n-1].to == len(rec.ops)-1 {
		rec.groups[n-1].to++
		return
	}
	rec.groups = append(rec.groups, group{groupDestroyed, len(rec.ops) - 1, len(rec.ops)})
}

// recording is the callback that is being recorded.
type recording struct {
	rec     *record
	from    int // of its ops, those that are not committed yet
	start   int
	born    []handles.Local
	touched []touch
	columns map[columnOf]struct{}
	looped  []columnOf // the keys of columns, in order
	burnt   []op       // names of slots that were given to somebody in what is taken back
}

// touch is a cell that the callback reached. field -1: the whole component.
type touch struct {
	h     handles.Local
	comp  archetype.ComponentID
	field int16
}

// columnOf is a column of a chunk that a loop has shown.
type columnOf struct {
	chunk  *archetype.Chunk
	column int
}

// beginRecording has the callback that begins recorded, if anything is. Owner only.
func (r *Registry) beginRecording() {
	if r.recorded.on {
		r.startRecord()
	}
}

func (r *Registry) startRecord() {
	if r.replaying() {
		return
	}
	k := &r.recorded.now
	k.rec, k.from, k.start = r.recorded.open, len(r.recorded.open.ops), len(r.recorded.open.ops)
	r.rec = k
}

// endRecording ends that: what was committed is a group of the record.
func (r *Registry) endRecording() {
	if r.rec != nil {
		r.keepRecorded()
	}
}

func (r *Registry) keepRecorded() {
	k := r.rec
	r.rec = nil
	k.putOff(r.wishes[r.wishedBefore:])
	if n := len(k.rec.ops); n > k.start {
		k.rec.groups = append(k.rec.groups, group{groupOps, k.start, n})
	}
}

func (k *recording) add(o op) { k.rec.ops = append(k.rec.ops, o) }

// spawned notes a birth.
func (k *recording) spawned(h handles.Local, class int) {
	k.add(op{kind: opSpawn, h: h, class: int32(class)})
	k.born = append(k.born, h)
}

func (k *recording) reserved(h handles.Local, class int) {
	k.add(op{kind: opSpawnReserved, h: h, class: int32(class)})
	k.born = append(k.born, h)
}

// touch notes that a cell is reached.
func (k *recording) touch(h handles.Local, comp archetype.ComponentID, field int16) {
	t := touch{h, comp, field}
	if n := len(k.touched); n == 0 || k.touched[n-1] != t {
		k.touched = append(k.touched, t)
	}
}

// mark is where a part of the callback begins that may be undone alone, with undoTo. Cells that were reached stay:
// what was written through pointers is not undone.
func (k *recording) mark() (ops, born int) { return len(k.rec.ops), len(k.born) }

func (k *recording) cut(ops, born int) { k.rec.ops, k.born = k.rec.ops[:ops], k.born[:born] }

// leave notes the names that what was taken back has left behind, at the place where that was.
func (k *recording) leave() {
	k.rec.ops = append(k.rec.ops, k.burnt...)
	k.burnt = k.burnt[:0]
}

// drop forgets what is not committed and about to be undone.
func (k *recording) drop() { k.cut(k.from, 0) }

func (k *recording) forget() {
	k.born, k.touched = k.born[:0], k.touched[:0]
	clear(k.columns)
	clear(k.looped)
	k.looped = k.looped[:0]
}

// seal copies the values of all that was reached, for it is committed now.
func (k *recording) seal(r *Registry) {
	for _, h := range k.born {
		ch, slot, err := r.locate(h)
		if err != nil {
			continue
		}
		for _, comp := range ch.Archetype().Components() {
			k.writes(r, h, ch, slot, comp, -1)
		}
	}
	for _, t := range k.touched {
		ch, slot, err := r.locate(t.h)
		if err != nil || !ch.Archetype().Has(t.comp) {
			continue
		}
		comp, _ := r.schema.ByID(t.comp)
		k.writes(r, t.h, ch, slot, comp, t.field)
	}
	for _, c := range k.looped {
		if r.store.ChunkAt(c.chunk.Base()) != c.chunk {
			continue // undone
		}
		comp, field := componentAt(c.chunk.Archetype(), c.column)
		if comp == nil {
			continue
		}
		for slot, h := range c.chunk.Entities()[:c.chunk.Allocated()] {
			if h != 0 && r.locals.Alive(h) {
				k.writes(r, h, c.chunk, uint32(slot), comp, int16(field))
			}
		}
	}
	if r.netBurns > 0 {
		k.add(op{kind: opBurnNet, other: r.netBurns})
		r.netBurns = 0
	}
	k.forget()
	k.from = len(k.rec.ops)
}

// putOff notes what the parts of parallel loops in the callback, which has not failed, have put off.
func (k *recording) putOff(list []wish) {
	for _, w := range list {
		if k.rec.alien == nil {
			k.rec.alien = errWish
		}
		k.rec.wishes = append(k.rec.wishes, w)
		k.add(op{kind: opWish, other: uint64(len(k.rec.wishes) - 1)})
	}
}

// componentAt is the component that a column of an archetype is of, and which of its fields.
func componentAt(a *archetype.Archetype, column int) (*archetype.Component, int) {
	for _, comp := range a.Components() {
		if first := a.Column(comp.ID); first >= 0 && column >= first && column < first+len(comp.Fields) {
			return comp, column - first
		}
	}
	return nil, 0
}

// writes notes the value of a component's field, or of all of them.
func (k *recording) writes(r *Registry, h handles.Local, ch *archetype.Chunk, slot uint32, comp *archetype.Component, field int16) {
	col := ch.Archetype().Column(comp.ID)
	for i := range comp.Fields {
		if field >= 0 && int(field) != i {
			continue
		}
		f := &comp.Fields[i]
		log := r.recorded.log(f)
		at, p := log.add()
		f.Cell.Copy(p, ch.Cell(col+i, slot, f.Size))
		k.add(op{kind: opWrite, h: h, comp: comp.ID, field: int16(i), other: at})
		k.rec.use(log, at+1)
	}
}

func (rec *record) use(log *cellLog, end uint64) {
	for i := range rec.used {
		if rec.used[i].log == log {
			rec.used[i].end = end
			return
		}
	}
	rec.used = append(rec.used, cellUse{log, end})
}

// log is the log of a field's values.
func (rs *records) log(f *archetype.Field) *cellLog {
	l := rs.cells[f.Key]
	if l == nil {
		l = &cellLog{typ: f.Type, size: f.Size}
		rs.cells[f.Key] = l
	}
	return l
}

// cellLog keeps values of one field typed, in pages, so that the garbage collector sees what they point to.
// Positions count all values ever added.
type cellLog struct {
	typ   reflect.Type
	size  uintptr
	base  uint64 // position of the first page's first value
	end   uint64
	pages []unsafe.Pointer
	spare []unsafe.Pointer
}

const cellPage = 256

// add gives the place for another value.
func (l *cellLog) add() (uint64, unsafe.Pointer) {
	if l.end == l.base+uint64(len(l.pages))*cellPage {
		page := unsafe.Pointer(nil)
		if n := len(l.spare); n > 0 {
			page, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			page = reflect.MakeSlice(reflect.SliceOf(l.typ), cellPage, cellPage).UnsafePointer()
		}
		l.pages = append(l.pages, page)
	}
	l.end++
	return l.end - 1, l.at(l.end - 1)
}

// at is where a value lies. Sound: a page is an array of cellPage values of the type, whose size is size.
func (l *cellLog) at(i uint64) unsafe.Pointer {
	i -= l.base
	return unsafe.Add(l.pages[i/cellPage], uintptr(i%cellPage)*l.size)
}

// trim forgets the values before a position, page by page.
func (l *cellLog) trim(to uint64) {
	n := 0
	for l.base+cellPage <= to && n < len(l.pages) {
		l.spare = append(l.spare, l.pages[n])
		l.base += cellPage
		n++
	}
	if n > 0 {
		k := copy(l.pages, l.pages[n:])
		clear(l.pages[k:])
		l.pages = l.pages[:k]
	}
}

// Recording says, for packages above, whether what a loop or a cursor writes with a has to be noted.
//
// Concurrency: as the token. Allocates: no.
func Recording(a Access) bool {
	t := a.tokenOf()
	return t.kind == windowToken && t.r.rec != nil
}

// NoteColumns notes that a loop in a window shows columns of a chunk, which it may write.
//
// Concurrency: window holder, if Recording. Allocates: for growth.
func NoteColumns(a Access, ch *archetype.Chunk, columns []int) {
	k := a.tokenOf().r.rec
	if k.columns == nil {
		k.columns = map[columnOf]struct{}{}
	}
	for _, column := range columns {
		c := columnOf{ch, column}
		if _, ok := k.columns[c]; !ok {
			k.columns[c] = struct{}{}
			k.looped = append(k.looped, c)
		}
	}
}

// NoteCell notes that a cursor in a window reaches a cell of h, which may be written.
//
// Concurrency: window holder, if Recording. Allocates: for growth.
func NoteCell(a Access, h handles.Local, comp archetype.ComponentID, field int) {
	a.tokenOf().r.rec.touch(h, comp, int16(field))
}
