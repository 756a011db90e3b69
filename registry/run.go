package registry

import (
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Batches meet entities mostly in the order of their slots. Such a run dies, or moves to another archetype,
// in one go: column by column and with one step in the log. Where steps are recorded or kept for frames to be
// gone back to, entities go one by one: there each has a step of its own.

// vacantRun are the slots that a run has moved out of, see vacancy.
type vacantRun struct {
	ch      *archetype.Chunk
	slot, n uint32
}

// inRuns says whether runs may go together now.
func (r *Registry) inRuns() bool { return r.inCallback && !r.inFrame && r.rec == nil && !r.hist.on }

// runAt gives the handles from the front of hs that lie behind each other from a slot on, as far as the chunk's
// column tells. None in a pool, whose slots have their own ways.
func runAt(hs []handles.Local, ch *archetype.Chunk, slot uint32) []handles.Local {
	if ch.Archetype().Pooled() != 0 {
		return nil
	}
	there := ch.Entities()[slot:]
	if hs = hs[:min(len(hs), len(there))]; len(hs) > 0 && &hs[0] == &there[0] {
		return hs // it is the column
	}
	for i, h := range hs {
		if h != there[i] {
			return hs[:i]
		}
	}
	return hs
}

// moveRun takes entities of neighbouring slots from the front of run to neighbouring slots of the archetype with a
// component more or less, as change does one. It says where they are and how many; 0 leaves it to change to
// say why.
func (r *Registry) moveRun(run []handles.Local, ch *archetype.Chunk, slot uint32, id archetype.ComponentID, kind EventKind) (*archetype.Chunk, uint32, int) {
	from := ch.Archetype()
	to := r.edge(from, id, kind == Added)
	if len(to.Chunks()) == 0 {
		run = run[:1] // else the first chunk would be a regular one, and slots would lie elsewhere than after single steps
	}
	nch, nslot, count, fresh := to.TakeRun(len(run))
	if nch == nil {
		return nil, 0, 0
	}
	old, now := ch.Base()+slot, nch.Base()+nslot
	n := uint32(r.locals.MoveRun(run[:count], old, now))
	for i := count; i > n; i-- { // another goroutine has destroyed the next one
		to.Untake(nch, nslot+i-1, fresh)
	}
	if n == 0 {
		return nil, 0, 0
	}
	run = run[:n]
	r.moves += uint64(n)
	to.CopySharedRun(nch, nslot, ch, slot, n)
	copy(nch.Entities()[nslot:], run)
	ch.VacateRun(slot, n)
	if len(r.bornChunks) == 0 && ch.ActiveRun(slot, n) {
		ch.HideRun(slot, n)
		r.showRun(nch, nslot, n)
	} else {
		for i := range n {
			if r.hide(ch, slot+i) {
				r.show(nch, nslot+i)
			}
		}
	}
	from.AddLive(-int(n))
	to.AddLive(int(n))
	r.vacatedRuns = append(r.vacatedRuns, vacantRun{ch, slot, n})
	if len(r.movers) > 0 || len(r.observers[Moved]) > 0 || len(r.observers[kind]) > 0 {
		for i, h := range run {
			r.noteMove(h, old+uint32(i), now+uint32(i))
			r.event(Moved, h, 0)
			r.event(kind, h, id)
		}
	}
	r.logMoves(undoOp{h: handles.Local(kind), slot: old, nslot: n, comp: id, fresh: fresh})
	r.undoHandles = append(r.undoHandles, run...)
	return nch, nslot, int(n)
}

// logMove notes that one entity has moved, as another step of the run that the log ends with, if it is the next one in
// it.
func (r *Registry) logMove(h handles.Local, ch *archetype.Chunk, slot uint32, id archetype.ComponentID, kind EventKind) {
	if r.run == runMoves {
		op, v := &r.undo[len(r.undo)-1], &r.vacatedRuns[len(r.vacatedRuns)-1]
		if v.ch == ch && v.slot+v.n == slot && op.comp == id && op.h == handles.Local(kind) && op.fresh == r.lastFresh {
			op.nslot++
			v.n++
			r.undoHandles = append(r.undoHandles, h)
			return
		}
	}
	r.vacatedRuns = append(r.vacatedRuns, vacantRun{ch, slot, 1})
	r.logMoves(undoOp{h: handles.Local(kind), slot: ch.Base() + slot, nslot: 1, comp: id, fresh: r.lastFresh})
	r.undoHandles = append(r.undoHandles, h)
}

// logMoves notes a run that has moved; its handles are next.
func (r *Registry) logMoves(op undoOp) {
	op.kind, op.at = undoMoveRun, r.hist.handleBase+uint64(len(r.undoHandles))
	r.undo = append(r.undo, op)
	r.run = runMoves
}

// unmoveRun takes the moves of a run back, the last one first.
func (r *Registry) unmoveRun(op *undoOp) {
	at := int(op.at - r.hist.handleBase)
	r.vacatedRuns = r.vacatedRuns[:len(r.vacatedRuns)-1]
	for i := op.nslot; i > 0; i-- {
		r.moveBack(&undoOp{h: r.undoHandles[at+int(i)-1], at: uint64(op.h), slot: op.slot + i - 1, comp: op.comp, fresh: op.fresh})
	}
	r.undoHandles = r.undoHandles[:at]
}

// storeNew gives a slot that nobody has written yet a value of a component.
func storeNew[C any](comp *archetype.Component, ch *archetype.Chunk, slot uint32, v *C) {
	if len(comp.Fields) != 1 || comp.Split {
		store(comp, ch, slot, v)
		return
	}
	col := ch.Archetype().Column(comp.ID)
	ch.Mark(col)
	*(*C)(ch.Cell(col, slot, comp.Size)) = *v // sound as in pointer: the column has values of type C
}

// storeRun gives neighbouring slots, that nobody has written yet, a value of a component.
func storeRun[C any](comp *archetype.Component, ch *archetype.Chunk, slot uint32, n int, v *C) {
	if len(comp.Fields) == 1 && !comp.Split {
		col := ch.Archetype().Column(comp.ID)
		ch.Mark(col)
		// Sound as in pointer: the column has n values of type C from slot on.
		cells := unsafe.Slice((*C)(ch.Cell(col, slot, comp.Size)), n)
		for i := range cells {
			cells[i] = *v
		}
		return
	}
	for i := range n {
		store(comp, ch, slot+uint32(i), v)
	}
}

// killRun ends the entities at the front of hs that lie behind each other and are active, as kill does, and says
// how many. Those that it leaves are for kill, and so is one alone, who would pay for the steps of a run
// (BenchmarkDestroyBatchScattered).
func (r *Registry) killRun(hs []handles.Local) int {
	w := r.locals.Word(hs[0].Index())
	if len(hs) < 2 || w.Generation() != hs[0].Generation() || w.State() != handles.Alive ||
		r.locals.Word(hs[1].Index()).Place() != w.Place()+1 {
		return 0
	}
	ch := r.store.ChunkAt(w.Place())
	slot := w.Place() - ch.Base()
	run := runAt(hs[:ch.ActiveFrom(slot, len(hs))], ch, slot)
	n := r.locals.KillRun(run, w.Place())
	if n == 0 {
		return 0
	}
	run = run[:n]
	r.giveRoom(int64(n))
	ch.HideRun(slot, uint32(n))
	ch.Archetype().AddLive(-n)
	if r.run != runDeaths {
		r.undo = append(r.undo, undoOp{kind: undoDeaths, at: r.hist.deadBase + uint64(len(r.dying))})
		r.run = runDeaths
	}
	r.undo[len(r.undo)-1].slot += uint32(n)
	r.dying = append(r.dying, run...)
	how := r.causeIndex() | wasActive
	r.graves = slices.Grow(r.graves, n)[:len(r.graves)+n]
	dug := r.graves[len(r.graves)-n:]
	for i := range dug {
		dug[i] = grave{place: w.Place() + uint32(i), how: how}
	}
	if len(r.observers[Destroyed]) > 0 {
		for _, h := range run {
			r.event(Destroyed, h, 0)
		}
	}
	return n
}
