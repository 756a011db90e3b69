package declare

import (
	encoding "encoding/binary"
	"math"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// machine is the reference machine. Its memory is an image of the world: the state of all entities, one after the
// other, and who is active. Element 0 of what goes by id is nobody's.
//
// It is written to be read, and shares no more than arith.go with the batch backend.
type machine struct {
	p     *Program
	rows  []int // where in the state a group begins
	spawn func(pool int) (slot int, ok bool)

	state, start   []float64 // now, and as it was when the system started
	active, before []float64 // by id: 1 for active ones, otherwise 0; likewise
	held           []bool    // by id: inactive, and yet not to be taken: Go code has a hand on it

	time      float64
	refused   uint64
	registers []float64
}

func newMachine(p *Program) *machine {
	m := &machine{p: p}
	cells := 0
	for i := range p.Groups {
		m.rows = append(m.rows, cells)
		cells += p.Groups[i].Count * len(p.Groups[i].Slots)
	}
	m.state = make([]float64, cells)
	m.active = make([]float64, p.Len()+1)
	m.held = make([]bool, p.Len()+1)
	return m
}

// row is where the state of an entity begins.
func (m *machine) row(id uint32) int {
	group, slot, ok := m.p.GroupOf(id)
	if !ok {
		return 0
	}
	return m.rows[group] + slot*len(m.p.Groups[group].Slots)
}

// run runs a system for all entities of its group, in ascending order.
func (m *machine) run(s *System, c *code) {
	m.start = append(m.start[:0], m.state...)
	m.before = append(m.before[:0], m.active...)
	m.registers = slices.Grow(m.registers[:0], c.registers)[:c.registers]
	g := &m.p.Groups[s.On]
	for slot := range g.Count {
		m.entity(s, c.bytes, g.First+uint32(slot), m.rows[s.On]+slot*len(g.Slots))
	}
}

// choose is what Select does, and through it all that changes the image.
func choose(mask, x, y float64) float64 {
	if isTrue(mask) {
		return x
	}
	return y
}

// operands reads what is behind an opcode.
type operands struct {
	bytes []byte
	at    int
}

func (o *operands) u8() byte {
	o.at++
	return o.bytes[o.at-1]
}

func (o *operands) u16() int {
	o.at += 2
	return int(encoding.LittleEndian.Uint16(o.bytes[o.at-2:]))
}

func (o *operands) u32() uint32 {
	o.at += 4
	return encoding.LittleEndian.Uint32(o.bytes[o.at-4:])
}

func (o *operands) number() float64 {
	o.at += 8
	return math.Float64frombits(encoding.LittleEndian.Uint64(o.bytes[o.at-8:]))
}

// wideID reads an id of four limbs; 0 if it is no id of a world.
func (o *operands) wideID() uint32 {
	id, b, c, d := o.u32(), o.u32(), o.u32(), o.u32()
	if b|c|d != 0 {
		return 0
	}
	return id
}

// entity runs code for one entity, whose state begins at own.
func (m *machine) entity(s *System, bytes []byte, id uint32, own int) {
	r := m.registers
	in := operands{bytes: bytes}
	for {
		switch op := Opcode(in.u8()); op {
		case LoadConst:
			r[in.u16()] = in.number()
		case LoadTime:
			r[in.u16()] = m.time
		case LoadOwn:
			r[in.u16()] = m.start[own+in.u16()]
		case LoadNew:
			r[in.u16()] = m.state[own+in.u16()]
		case LoadRunning:
			r[in.u16()] = m.before[id]
		case LoadOther:
			to, other := in.u16(), in.u32()
			r[to] = m.start[m.row(other)+in.u16()]
		case LoadActive:
			r[in.u16()] = m.before[in.u32()]
		case Apply1:
			to, operation := in.u16(), Op(in.u8())
			r[to] = unary(operation, r[in.u16()])
		case Apply2:
			to, operation := in.u16(), Op(in.u8())
			x, y := r[in.u16()], r[in.u16()]
			r[to] = binary(operation, x, y)
		case IsFinite:
			to := in.u16()
			r[to] = truth(isFinite(r[in.u16()]))
		case Select:
			to, mask := in.u16(), in.u16()
			x, y := r[in.u16()], r[in.u16()]
			r[to] = choose(r[mask], x, y)
		case StoreOwn:
			slot := in.u16()
			m.state[own+slot] = r[in.u16()]
		case StoreActive:
			m.active[id] = r[in.u16()]
		case Refuse:
			m.refused += uint64(r[in.u16()])
		case JumpIf:
			from, to := in.u16(), in.u32()
			if isTrue(r[from]) {
				in.at = int(to)
			}
		case FindFreeSlot:
			to, first := in.u16(), in.wideID()
			r[to] = m.findFreeSlot(first, in.u32())
		case SpawnInto:
			found := in.u16()
			m.spawnInto(s.Pool, r[found], own, int(in.u32()))
		default: // End
			return
		}
	}
}

// findFreeSlot is the first inactive id of some, or 0.
func (m *machine) findFreeSlot(first, count uint32) float64 {
	for id := first; id-first < count; id++ {
		if planted.Enabled && planted.Is(planted.InterpreterSkipsSlot) && id == first && count > 1 {
			continue
		}
		if !isTrue(m.active[id]) && !m.held[id] {
			return float64(id)
		}
	}
	return 0
}

// spawnInto makes an entity active, which has some of a caller's state slots. It asks the registry for the slot, which
// finds the same one.
func (m *machine) spawnInto(pool int, found float64, caller, copied int) {
	if isTrue(found) {
		slot, ok := m.spawn(pool)
		found = float64(m.p.Groups[pool].First+uint32(slot)) * truth(ok)
	}
	id := uint32(found)
	m.active[id] = choose(found, 1, m.active[id])
	if to := m.row(id); copied > 0 {
		for i := range copied {
			m.state[to+i] = choose(found, m.state[caller+i], m.state[to+i])
		}
	}
}

// interpreter is the backend that runs the machine: it takes the image from the columns, and puts it back.
type interpreter struct {
	w     *World
	m     *machine
	codes []code
}

func newInterpreter(w *World) *interpreter {
	in := &interpreter{w: w}
	for i := range w.p.Systems {
		in.codes = append(in.codes, compile(w.p, &w.p.Systems[i]))
	}
	return in
}

func (in *interpreter) step(f *registry.Frame, p *places, step uint64) uint64 {
	if in.m == nil {
		in.m = newMachine(in.w.p)
	}
	m := in.m
	m.refused, m.time = 0, in.w.p.Time(step)
	m.spawn = func(pool int) (int, bool) { return in.w.take(f, p, pool) }
	in.load(p)
	for i := range in.w.p.Systems {
		s := &in.w.p.Systems[i]
		if !s.Due(step) {
			continue
		}
		in.loadActive(p)
		m.run(s, &in.codes[i])
		in.endInactive(f, p, s)
	}
	in.store(p)
	return m.refused
}

// load takes the state from the columns.
func (in *interpreter) load(p *places) {
	in.eachColumn(p, func(_ *archetype.Chunk, _ int, cells []float64, row, arity int) {
		for i, v := range cells {
			in.m.state[row+i*arity] = v
		}
	})
}

// store puts it back.
func (in *interpreter) store(p *places) {
	in.eachColumn(p, func(ch *archetype.Chunk, column int, cells []float64, row, arity int) {
		for i, v := range cells {
			if now := in.m.state[row+i*arity]; math.Float64bits(now) != math.Float64bits(v) {
				ch.Mark(column)
				cells[i] = now
			}
		}
	})
}

// eachColumn calls fn with every column of every chunk, and where in the image its cells are: from row on, in steps of
// arity.
func (in *interpreter) eachColumn(p *places, fn func(ch *archetype.Chunk, column int, cells []float64, row, arity int)) {
	for group := range in.w.p.Groups {
		arity, row := len(in.w.p.Groups[group].Slots), in.m.rows[group]
		for _, ch := range p.blocks[group].Chunks() {
			for column := range arity {
				fn(ch, column, archetype.CellsOf[float64](ch, column)[:ch.Allocated()], row+column, arity)
			}
			row += ch.Allocated() * arity
		}
	}
}

// loadActive takes from the planes who is active.
func (in *interpreter) loadActive(p *places) {
	for group := range in.w.p.Groups {
		g := &in.w.p.Groups[group]
		for slot := range g.Count {
			id := g.First + uint32(slot)
			ch, at := p.chunk(group, slot)
			in.m.active[id] = truth(ch.Bit(uint32(at)))
			in.m.held[id] = !ch.Bit(uint32(at)) && !p.blocks[group].Idle(slot)
		}
	}
}

// endInactive has the registry make inactive whom a system has made so, in ascending order.
func (in *interpreter) endInactive(f *registry.Frame, p *places, s *System) {
	if s.Kind == Spawn {
		return
	}
	g := &in.w.p.Groups[s.On]
	for slot := range g.Count {
		if id := g.First + uint32(slot); isTrue(in.m.before[id]) && !isTrue(in.m.active[id]) {
			in.w.end(f, p, s.On, slot)
		}
	}
}
