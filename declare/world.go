package declare

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Backend is what computes the steps of a world. What comes out is the same, to the bit.
type Backend uint8

// The backends.
const (
	Batch       Backend = iota // loops over columns
	Interpreter                // the reference: a machine that goes through the entities one by one
)

// String is the name of the backend.
//
// Concurrency: any goroutine. Allocates: no, for the declared backends.
func (b Backend) String() string {
	switch b {
	case Batch:
		return "batch"
	case Interpreter:
		return "interpreter"
	}
	return "Backend(" + strconv.Itoa(int(b)) + ")"
}

// Options say how a world stands in an engine. The zero value works.
type Options struct {
	Backend Backend
	Phase   logic.Phase // of its system
	Name    string      // of its system, and what the names of its classes begin with; "" means "world"
}

// World is a program in the storage of a registry: a class and a block of slots for each group, a clock,
// and a system that runs one step in each frame.
//
// Its state is what the registry has: columns of float64, the Active plane, and the number of steps, which
// is the one cell of the clock. All of it goes back with a rollback, is hashed and is saved. What a World keeps itself can
// be found again from there.
type World struct {
	p      *Program
	r      *registry.Registry
	name   string
	phase  logic.Phase
	clock  *registry.Class[registry.Described]
	groups []*registry.Class[registry.Described]
	runner stepRunner // Logic's

	places  atomic.Pointer[places] // stored by Logic or a window holder, loaded by anybody
	steps   atomic.Uint64          // these four stored by Logic at the end of a step, loaded by anybody
	active  atomic.Int64
	counts  []atomic.Uint32 // by group
	refused atomic.Uint64

	names     []atomic.Pointer[[]string] // of pages of slots, made by the first Present that needs them
	firstPage []int                      // in names, by group
}

// stepRunner is a backend at work.
type stepRunner interface {
	step(f *registry.Frame, p *places, step uint64) (refused uint64)
}

// places is where the blocks of a world are. It does not change.
type places struct {
	clock  *registry.Block
	blocks []*registry.Block // by group
	bases  []uint32          // cache index of slot 0, by group
	class  []int             // number of the class, by group
	base   uint32            // of the clock
	number int               // of its class
}

// clockCell is the component of a world's clock.
type clockCell struct{ Steps uint64 }

// bare is the component of groups without state: it makes them follow the temporal ring as the others do.
type bare struct{}

// Attach puts a world into the registry of an engine: it registers its components and classes, makes its blocks in a window,
// and adds a system that runs a step in each frame from then on. Between the steps of an engine, and
// before it runs, that window is an Update; while it runs, Attach waits for the next frame. Who is inside a callback takes
// AttachIn.
//
// Errors: registry.ErrAlreadyRegistered if there is a world of that name, or a class of another kind has
// its name; registry.ErrExhausted without room for all entities of the world and one more; logic.ErrStopped; registry.ErrWouldDeadlock
// inside a callback. Classes that were registered stay.
// Concurrency: any goroutine; waits for a window. Allocates: yes.
func Attach(e *logic.Engine, p *Program, o Options) (*World, error) {
	if e == nil {
		return nil, errNoEngine
	}
	w, err := Prepare(e.Registry(), p, o)
	if err != nil {
		return nil, err
	}
	err = e.Registry().Update(w.Build)
	if errors.Is(err, registry.ErrRunning) {
		err = e.Spawn(context.Background(), w.Build)
	}
	if err != nil {
		return nil, err
	}
	return w, w.AddTo(e)
}

// AttachIn is Attach for whoever has a window. If the callback fails, the system stays and does nothing.
//
// Errors: as Attach, and registry.ErrExpired.
// Concurrency: window holder. Allocates: yes.
func AttachIn(win *registry.Window, e *logic.Engine, p *Program, o Options) (*World, error) {
	if e == nil {
		return nil, errNoEngine
	}
	w, err := Prepare(e.Registry(), p, o)
	if err != nil {
		return nil, err
	}
	if err := w.Build(win); err != nil {
		return nil, err
	}
	return w, w.AddTo(e)
}

var errNoEngine = errors.New("declare: a world without an engine")

// Prepare registers the components and classes of a world and does no more: for a registry into which a state is loaded that
// has its blocks, or a journal that makes them. AddTo goes on from there.
//
// Errors: registry.ErrAlreadyRegistered as for Attach; an unknown backend or phase.
// Concurrency: any goroutine, any time. Allocates: yes.
func Prepare(r *registry.Registry, p *Program, o Options) (*World, error) {
	if r == nil || p == nil {
		return nil, errors.New("declare: a world without a registry, or without a program")
	}
	if o.Name == "" {
		o.Name = "world"
	}
	if o.Phase > logic.Late {
		return nil, fmt.Errorf("declare: world %s: there is no phase %d", o.Name, o.Phase)
	}
	w := &World{
		p: p, r: r, name: o.Name, phase: o.Phase,
		counts: make([]atomic.Uint32, len(p.Groups)),
	}
	pages := 0
	for i := range p.Groups {
		w.firstPage = append(w.firstPage, pages)
		pages += pagesOf(&p.Groups[i])
	}
	w.names = make([]atomic.Pointer[[]string], pages)
	switch o.Backend {
	case Batch:
		w.runner = newBatch(w)
	case Interpreter:
		w.runner = newInterpreter(w)
	default:
		return nil, fmt.Errorf("declare: world %s: there is no backend %d", o.Name, o.Backend)
	}
	steps, err := component(w.r, reflect.TypeFor[clockCell](), "declare.Clock")
	if err != nil {
		return nil, fmt.Errorf("declare: world %s: %w", o.Name, err)
	}
	if w.clock, err = registry.RegisterDescribed(w.r, o.Name+"#clock", []archetype.ComponentID{steps}); err != nil {
		return nil, fmt.Errorf("declare: world %s: %w", o.Name, err)
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		state, err := component(w.r, stateType(len(g.Slots)), "declare.State"+strconv.Itoa(len(g.Slots)))
		if err != nil {
			return nil, fmt.Errorf("declare: world %s: %s: %w", o.Name, g.Name, err)
		}
		c, err := registry.RegisterDescribed(w.r, o.Name+"."+g.Name, []archetype.ComponentID{state})
		if err != nil {
			return nil, fmt.Errorf("declare: world %s: %s: %w", o.Name, g.Name, err)
		}
		w.groups = append(w.groups, c)
	}
	return w, nil
}

// stateType is the component of groups with so many state slots.
func stateType(arity int) reflect.Type {
	if arity == 0 {
		return reflect.TypeFor[bare]()
	}
	fields := make([]reflect.StructField, arity)
	for i := range fields {
		fields[i] = reflect.StructField{Name: "S" + strconv.Itoa(i), Type: reflect.TypeFor[float64]()}
	}
	return reflect.StructOf(fields)
}

// component finds a component that all worlds of a registry share, or registers it.
func component(r *registry.Registry, typ reflect.Type, name string) (archetype.ComponentID, error) {
	id, err := registry.RegisterComponentType(r, typ, registry.InTier(archetype.Temporal), registry.Split(), registry.Named(name))
	if !errors.Is(err, registry.ErrAlreadyRegistered) {
		return id, err
	}
	if c, ok := r.Schema().ByType(typ); ok && c.Name == name {
		return c.ID, nil
	}
	return 0, err
}

// blockName is under which name the block of a class is found. Prefabs have names of the same space.
func blockName(c *registry.Class[registry.Described]) string { return "declare:" + c.Name() }

// Build makes the blocks of a world that was prepared, with its entities as they are at first. Attach has done that. A failed
// callback takes it back.
//
// Errors: registry.ErrExhausted without room; registry.ErrExpired; registry.ErrAlreadyRegistered if the blocks exist.
// Concurrency: window holder. Allocates: yes.
func (w *World) Build(win *registry.Window) error {
	if len(w.r.BlocksNamed(blockName(w.clock))) > 0 {
		return fmt.Errorf("declare: world %s: blocks: %w", w.name, registry.ErrAlreadyRegistered)
	}
	clock, err := w.buildBlock(win, w.clock, 1, nil)
	if err != nil {
		return err
	}
	if _, err := registry.SpawnIn(win, w.clock, clock, nil); err != nil {
		return fmt.Errorf("declare: world %s: clock: %w", w.name, err)
	}
	for i := range w.p.Groups {
		g := &w.p.Groups[i]
		b, err := w.buildBlock(win, w.groups[i], g.Count, g.Slots)
		if err != nil {
			return err
		}
		if g.Pool {
			continue
		}
		if _, err := registry.SpawnIn(win, w.groups[i], b, nil); err != nil {
			return fmt.Errorf("declare: world %s: %s: %w", w.name, g.Name, err)
		}
	}
	w.note(w.locate())
	return nil
}

// buildBlock makes a block whose slots have their initial state.
func (w *World) buildBlock(win *registry.Window, c *registry.Class[registry.Described], n int, slots []Slot) (*registry.Block, error) {
	b, err := registry.NewBlock(win, c, blockName(c), n, nil)
	if err == nil && len(slots) > 0 {
		ch := b.Chunks()[0]
		for i, s := range slots {
			archetype.CellsOf[float64](ch, i)[0] = s.Init
			ch.Mark(i)
		}
		err = b.SetInitial(win, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("declare: world %s: %w", w.name, err)
	}
	return b, nil
}

// AddTo adds the world's system to an engine, the one of its registry: a step in each frame from the next window on, as long as its
// blocks exist. Attach has done that.
//
// Errors: an engine of another registry; logic.ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: the system.
func (w *World) AddTo(e *logic.Engine) error {
	if e == nil || e.Registry() != w.r {
		return fmt.Errorf("declare: world %s: the engine is of another registry", w.name)
	}
	if _, err := e.AddSystem(w.phase, w.name, func(f *logic.Frame) { w.run(f.Frame) }); err != nil {
		return fmt.Errorf("declare: world %s: %w", w.name, err)
	}
	return nil
}

// locate finds the blocks; nil if they do not exist. Window holder, or Logic and its workers inside a frame.
func (w *World) locate() *places {
	if p := w.places.Load(); p != nil && p.clock.Made() {
		return p
	}
	block := func(c *registry.Class[registry.Described], n int) *registry.Block {
		if list := w.r.BlocksNamed(blockName(c)); len(list) > 0 && list[0].Len() == n {
			return list[0]
		}
		return nil
	}
	p := &places{clock: block(w.clock, 1)}
	if p.clock == nil {
		return nil
	}
	p.base, p.number = p.clock.Base(), p.clock.Chunks()[0].Archetype().Class()
	for i := range w.p.Groups {
		b := block(w.groups[i], w.p.Groups[i].Count)
		if b == nil {
			return nil
		}
		p.blocks, p.bases, p.class = append(p.blocks, b), append(p.bases, b.Base()), append(p.class, b.Chunks()[0].Archetype().Class())
	}
	w.places.Store(p)
	return p
}

// run is the system: one step.
func (w *World) run(f *registry.Frame) {
	p := w.locate()
	if p == nil {
		return
	}
	clock := p.clock.Chunks()[0]
	cell := &archetype.CellsOf[uint64](clock, 0)[0]
	refused := w.runner.step(f, p, *cell)
	clock.Mark(0)
	*cell++
	w.refused.Add(refused)
	w.note(p)
}

// note stores what anybody may ask for. Window holder, or Logic.
func (w *World) note(p *places) {
	if p == nil {
		return
	}
	total := 0
	for i := range w.p.Groups {
		n := p.activeIn(&w.p.Groups[i], i)
		w.counts[i].Store(uint32(n))
		total += n
	}
	w.active.Store(int64(total))
	w.steps.Store(archetype.CellsOf[uint64](p.clock.Chunks()[0], 0)[0])
}

// activeIn is how many of a group are active: for a pool those in use, who are counted already.
func (p *places) activeIn(g *Group, group int) int {
	b := p.blocks[group]
	if g.Pool {
		return b.InUse()
	}
	return int(b.Chunks()[0].Active()[0] & 1)
}

// chunk is the chunk that has a slot of a group, and which of its slots that is. All chunks of a block are of one size.
func (p *places) chunk(group, slot int) (*archetype.Chunk, int) {
	chunks := p.blocks[group].Chunks()
	n := chunks[0].Slots()
	return chunks[slot/n], slot % n
}

// end makes an entity inactive, as the language says: a slot of a pool is despawned. Who has died by another hand
// is let be. Logic only.
func (w *World) end(f *registry.Frame, p *places, group, slot int) {
	b := p.blocks[group]
	if w.p.Groups[group].Pool {
		_ = b.Despawn(f, b.Slot(slot)) // who is dead already, as a child of another, is gone
		return
	}
	_ = registry.SetActive(f, b.Slot(slot), false) // who is dead is not active
}

// take activates the lowest idle slot of a pool. Logic only.
func (w *World) take(f *registry.Frame, p *places, pool int) (slot int, ok bool) {
	h, err := registry.SpawnIn(f, w.groups[pool], p.blocks[pool], nil)
	if err != nil {
		return 0, false
	}
	return p.blocks[pool].SlotOf(h)
}

// Program is what the world runs.
//
// Concurrency: any goroutine. Allocates: no.
func (w *World) Program() *Program { return w.p }

// Steps is how many steps have run; after a rollback, those up to the frame it went back to, and on from there.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) Steps() uint64 { return w.steps.Load() }

// Time is how much time has passed in the world.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) Time() float64 { return w.p.Time(w.Steps()) }

// Active is how many entities were active at the end of the last step.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) Active() int { return int(w.active.Load()) }

// ActiveIn is how many entities of a group, by its index in Groups, were active at the end of the last step. Of a pool those
// count that Go code has made inactive without an end. 0 for no group.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) ActiveIn(group int) int {
	if group < 0 || group >= len(w.counts) {
		return 0
	}
	return int(w.counts[group].Load())
}

// Refused is how many values were not stored since the world was attached, for they were not finite. Frames that
// are simulated again count again.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) Refused() uint64 { return w.refused.Load() }

// Handle is the handle of who has an id now: idle slots of pools have one, too. 0 if the id is none of the world's, or
// the world has no blocks yet.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *World) Handle(id uint32) handles.Local {
	group, slot, ok := w.p.GroupOf(id)
	p := w.places.Load()
	if !ok || p == nil {
		return 0
	}
	return p.blocks[group].Slot(slot)
}

// State copies the state of an entity, and says whether it is active. Of a snapshot it is what the entity was in its
// frame. False if the id is none of the world's, or the world is not there.
//
// Panics: registry.ErrExpired.
// Concurrency: as the token; of a frame nobody may write meanwhile. Allocates: the slice.
func (w *World) State(a registry.Access, id uint32) (slots []float64, active, ok bool) {
	group, slot, ok := w.p.GroupOf(id)
	if !ok || a.Registry() != w.r {
		return nil, false, false
	}
	var ch *archetype.Chunk
	if snap := registry.Frames(a); snap != nil {
		p := w.places.Load()
		if p == nil {
			return nil, false, false
		}
		ch = new(archetype.Chunk)
		if slot, ok = p.show(snap, group, slot, ch); !ok {
			return nil, false, false
		}
	} else {
		p := w.locate()
		if p == nil {
			return nil, false, false
		}
		ch, slot = p.chunk(group, slot)
	}
	slots = make([]float64, len(w.p.Groups[group].Slots))
	for i := range slots {
		slots[i] = archetype.CellsOf[float64](ch, i)[slot]
	}
	return slots, ch.Bit(uint32(slot)), true
}

// show makes ch a look at the chunk that has a slot of a group in a published frame, and says which of its slots
// that is.
func (p *places) show(snap *registry.Snapshot, group, slot int, ch *archetype.Chunk) (int, bool) {
	return show(snap, p.bases[group]+uint32(slot), p.class[group], ch)
}

func show(snap *registry.Snapshot, place uint32, class int, ch *archetype.Chunk) (int, bool) {
	ref := snap.Directory().At(place)
	if ref == nil || ref.Archetype().Pooled() == 0 || ref.Archetype().Class() != class || !snap.Shows(ref.Archetype()) {
		return 0, false
	}
	ref.Show(ch, snap.Storage())
	return int(place - ref.Base()), true
}

// Registry is the registry that the world is in.
//
// Concurrency: any goroutine. Allocates: no.
func (w *World) Registry() *registry.Registry { return w.r }
