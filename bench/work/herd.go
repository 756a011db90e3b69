package work

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// herd is a number of entities of one kind that come and go, on one of the sides.
type herd interface {
	fresh()     // a world that nobody has lived in, with everything registered
	spawn()     // all, one by one
	spawnAll()  // all in a batch
	remove()    // all, one by one, in the order of their birth
	removeAll() // all in a batch
	count() int
	sum() uint64
}

// ourHerd is one in a registry; spawning depends on the class.
type ourHerd struct {
	*world
	fault  *contest.Fault
	hs     []handles.Local
	all    *views.Query[movers]
	opened func()                                   // registers the class
	each   func(w *registry.Window)                 // fills hs
	batch  func(w *registry.Window) []handles.Local // the same
}

func (h *ourHerd) fresh() {
	h.world = newWorld(h.fault, len(h.hs))
	h.opened()
	h.all = query[movers](h.fault, h.world)
}

func (h *ourHerd) spawn() { h.window(h.fault, h.each) }

func (h *ourHerd) spawnAll() {
	h.window(h.fault, func(w *registry.Window) { h.hs = h.batch(w) })
}

//go:noinline
func destroyEach(w *registry.Window, hs []handles.Local) {
	for _, h := range hs {
		_ = w.Destroy(h) // count tells
	}
}

func (h *ourHerd) remove() {
	h.window(h.fault, func(w *registry.Window) {
		destroyEach(w, h.hs)
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
	})
}

func (h *ourHerd) removeAll() {
	h.window(h.fault, func(w *registry.Window) {
		h.all.DestroyAll(w)
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
	})
}

func (h *ourHerd) count() (n int) {
	h.window(h.fault, func(w *registry.Window) { n = h.all.Count(w) })
	return n
}

func (h *ourHerd) sum() (sum uint64) {
	h.window(h.fault, func(w *registry.Window) {
		for m := range h.all.Runs(w) {
			sum += sumOfPairs(m.Pos, m.Vel)
		}
	})
	return sum
}

// newPair is a herd of n with two components.
func newPair(fault *contest.Fault, n int) herd {
	h := &ourHerd{fault: fault, hs: make([]handles.Local, n)}
	var c *registry.Class[Mover]
	h.opened = func() { c = class[Mover](fault, h.world) }
	h.each = func(w *registry.Window) { spawnPairs(w, c, h.hs) }
	h.batch = func(w *registry.Window) []handles.Local {
		hs, err := views.SpawnColumns(w, c, n, fillPairs)
		fault.Check(err)
		return hs
	}
	h.fresh()
	return h
}

//go:noinline
func spawnPairs(w *registry.Window, c *registry.Class[Mover], hs []handles.Local) {
	for i := range hs {
		hs[i], _ = c.Spawn(w, Mover{Position{float64(i), 2}, Velocity{3, 4}}) // sum tells
	}
}

func fillPairs(m *pairs) {
	pos, vel := m.Pos, m.Vel
	for i := range pos {
		pos[i], vel[i] = Position{1, 2}, Velocity{3, 4}
	}
}

// decades are the columns of a Decade.
type decades struct {
	Pos []Position
	Vel []Velocity
	C1  []C1
	C2  []C2
	C3  []C3
	C4  []C4
	C5  []C5
	C6  []C6
	C7  []C7
	C8  []C8
}

// newTen is a herd of n with ten components.
func newTen(fault *contest.Fault, n int) herd {
	h := &ourHerd{fault: fault, hs: make([]handles.Local, n)}
	var c *registry.Class[Decade]
	h.opened = func() { c = class[Decade](fault, h.world) }
	h.each = func(w *registry.Window) { spawnTens(w, c, h.hs) }
	h.batch = func(w *registry.Window) []handles.Local {
		hs, err := views.SpawnColumns(w, c, n, fillTens)
		fault.Check(err)
		return hs
	}
	h.fresh()
	return h
}

//go:noinline
func spawnTens(w *registry.Window, c *registry.Class[Decade], hs []handles.Local) {
	for i := range hs {
		hs[i], _ = c.Spawn(w, Decade{Position{float64(i), 2}, Velocity{3, 4}, // sum tells
			C1{1, 1}, C2{2, 2}, C3{3, 3}, C4{4, 4}, C5{5, 5}, C6{6, 6}, C7{7, 7}, C8{8, 8}})
	}
}

func fillTens(d *decades) {
	for i := range d.Pos {
		d.Pos[i] = Position{1, 2}
	}
	for i := range d.Vel {
		d.Vel[i] = Velocity{3, 4}
	}
	for i := range d.C1 {
		d.C1[i] = C1{1, 1}
	}
	for i := range d.C2 {
		d.C2[i] = C2{2, 2}
	}
	for i := range d.C3 {
		d.C3[i] = C3{3, 3}
	}
	for i := range d.C4 {
		d.C4[i] = C4{4, 4}
	}
	for i := range d.C5 {
		d.C5[i] = C5{5, 5}
	}
	for i := range d.C6 {
		d.C6[i] = C6{6, 6}
	}
	for i := range d.C7 {
		d.C7[i] = C7{7, 7}
	}
	for i := range d.C8 {
		d.C8[i] = C8{8, 8}
	}
}

// arkHerd is a herd in Ark's world.
type arkHerd struct {
	world  *ecs.World
	hs     []ecs.Entity
	all    *ecs.Filter2[Position, Velocity]
	opened func() // makes the mapper
	each   func() // fills hs
	batch  func() // without asking for handles
}

func (h *arkHerd) fresh() {
	h.world = ecs.NewWorld()
	h.opened()
	h.all = ecs.NewFilter2[Position, Velocity](h.world)
}

func (h *arkHerd) spawn()    { h.each() }
func (h *arkHerd) spawnAll() { h.batch() }

//go:noinline
func removeEach(w *ecs.World, hs []ecs.Entity) {
	for _, e := range hs {
		w.RemoveEntity(e)
	}
}

func (h *arkHerd) remove()    { removeEach(h.world, h.hs) }
func (h *arkHerd) removeAll() { h.world.RemoveEntities(h.all.Batch(), nil) }

func (h *arkHerd) count() int {
	q := h.all.Query()
	defer q.Close()
	return q.Count()
}

func (h *arkHerd) sum() (sum uint64) {
	q := h.all.Query()
	for q.NextTable() {
		sum += sumOfPairs(q.GetColumns())
	}
	return sum
}

// newArkPair is newPair in Ark. Its batch takes values or, with byCallback, writes them itself.
func newArkPair(n int, byCallback bool) herd {
	h := &arkHerd{hs: make([]ecs.Entity, n)}
	var m *ecs.Map2[Position, Velocity]
	h.opened = func() { m = ecs.NewMap2[Position, Velocity](h.world) }
	h.each = func() { createPairs(m, h.hs) }
	h.batch = func() { m.NewBatch(n, &Position{1, 2}, &Velocity{3, 4}) }
	if byCallback {
		h.each = func() { createPairsFn(m, h.hs) }
		h.batch = func() {
			m.NewBatchFn(n, func(_ ecs.Entity, p *Position, v *Velocity) { *p, *v = Position{1, 2}, Velocity{3, 4} })
		}
	}
	h.fresh()
	return h
}

//go:noinline
func createPairs(m *ecs.Map2[Position, Velocity], hs []ecs.Entity) {
	for i := range hs {
		hs[i] = m.NewEntity(&Position{float64(i), 2}, &Velocity{3, 4})
	}
}

//go:noinline
func createPairsFn(m *ecs.Map2[Position, Velocity], hs []ecs.Entity) {
	for i := range hs {
		hs[i] = m.NewEntityFn(func(p *Position, v *Velocity) { *p, *v = Position{float64(i), 2}, Velocity{3, 4} })
	}
}

// ark10 is Ark's mapper of ten components.
type ark10 = ecs.Map10[Position, Velocity, C1, C2, C3, C4, C5, C6, C7, C8]

// newArkTen is newTen in Ark.
func newArkTen(n int, byCallback bool) herd {
	h := &arkHerd{hs: make([]ecs.Entity, n)}
	var m *ark10
	h.opened = func() { m = m.New(h.world) }
	h.each = func() { createTens(m, h.hs) }
	h.batch = func() {
		m.NewBatch(n, &Position{1, 2}, &Velocity{3, 4},
			&C1{1, 1}, &C2{2, 2}, &C3{3, 3}, &C4{4, 4}, &C5{5, 5}, &C6{6, 6}, &C7{7, 7}, &C8{8, 8})
	}
	if byCallback {
		h.batch = func() {
			m.NewBatchFn(n, func(_ ecs.Entity, p *Position, v *Velocity, c1 *C1, c2 *C2, c3 *C3, c4 *C4, c5 *C5, c6 *C6, c7 *C7, c8 *C8) {
				*p, *v = Position{1, 2}, Velocity{3, 4}
				*c1, *c2, *c3, *c4, *c5, *c6, *c7, *c8 = C1{1, 1}, C2{2, 2}, C3{3, 3}, C4{4, 4}, C5{5, 5}, C6{6, 6}, C7{7, 7}, C8{8, 8}
			})
		}
	}
	h.fresh()
	return h
}

//go:noinline
func createTens(m *ark10, hs []ecs.Entity) {
	for i := range hs {
		hs[i] = m.NewEntity(&Position{float64(i), 2}, &Velocity{3, 4},
			&C1{1, 1}, &C2{2, 2}, &C3{3, 3}, &C4{4, 4}, &C5{5, 5}, &C6{6, 6}, &C7{7, 7}, &C8{8, 8})
	}
}

// sliceHerd is as many values in plain slices, without handles: what is left when there is nothing
// but the values to be written.
type sliceHerd struct {
	pos     []Position
	vel     []Velocity
	n, live int
}

func newSlices(n int) herd {
	h := &sliceHerd{n: n}
	h.fresh()
	return h
}

func (h *sliceHerd) fresh() {
	h.pos, h.vel, h.live = make([]Position, h.n), make([]Velocity, h.n), 0
}

func (h *sliceHerd) spawn() {
	writeEach(h.pos, h.vel)
	h.live = h.n
}

func (h *sliceHerd) spawnAll() {
	writeAll(h.pos, h.vel)
	h.live = h.n
}

func (h *sliceHerd) remove() { h.removeAll() }

func (h *sliceHerd) removeAll() {
	clear(h.pos)
	clear(h.vel)
	h.live = 0
}

func (h *sliceHerd) count() int  { return h.live }
func (h *sliceHerd) sum() uint64 { return sumOfPairs(h.pos, h.vel) }

//go:noinline
func writeEach(pos []Position, vel []Velocity) {
	for i := range pos {
		pos[i], vel[i] = Position{float64(i), 2}, Velocity{3, 4}
	}
}

//go:noinline
func writeAll(pos []Position, vel []Velocity) {
	for i := range pos {
		pos[i], vel[i] = Position{1, 2}, Velocity{3, 4}
	}
}
