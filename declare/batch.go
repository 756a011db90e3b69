package declare

import (
	"math/bits"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// blockWords is how many words of 64 slots are computed at once: the vectors of a system stay in the first cache.
const blockWords = 4

// spreadFrom is from how many loops times slots on a system is spread over the workers; below, starting and joining them
// costs more than they give, see package views.
const spreadFrom = 256 << 10

// partChunks is how many chunks a worker does at once.
const partChunks = 4

// batch is the backend that loops over columns. It goes through a group in blocks of slots, whole words of the Active
// plane, and does one operation for all of a block after the other. Slots that are not active may be computed with
// the others; they are not stored.
type batch struct {
	w          *World
	lanes      []*lanes // by system; nil for a spawn
	spreadFrom int

	// Of the system that runs. Logic writes it, between parts; the workers read it, and write their own lines and their
	// own words of ended.
	now     *lanes
	uniform []float64
	chunks  []*archetype.Chunk
	ended   []uint64 // who becomes inactive, a bit for each slot; all zero between systems
	lines   []*line  // by worker
}

// line is what a worker has for itself.
type line struct {
	lanes   *lanes // that the vectors are laid out for
	words   int    // likewise
	numbers []float64
	bits    []uint64
	columns [][]float64 // of the chunk
	vectors [][]float64 // of the block
	masks   [][]uint64
	ended   bool // it has set bits of batch.ended
	refused uint64
	_       [64]byte
}

func newBatch(w *World) *batch {
	b := &batch{w: w, spreadFrom: spreadFrom}
	for i := range w.p.Systems {
		s := &w.p.Systems[i]
		if s.Kind == Spawn {
			b.lanes = append(b.lanes, nil)
			continue
		}
		b.lanes = append(b.lanes, compileLanes(w.p, s))
	}
	return b
}

func (b *batch) step(f *registry.Frame, p *places, step uint64) uint64 {
	for i := range b.w.p.Systems {
		switch s := &b.w.p.Systems[i]; {
		case !s.Due(step):
		case s.Kind == Spawn:
			b.spawn(f, p, s)
		default:
			b.run(f, p, s, b.lanes[i], step)
		}
	}
	refused := uint64(0)
	for _, l := range b.lines {
		refused += l.refused
		l.refused = 0
	}
	return refused
}

// spawn has each caller take slots, until there are none.
func (b *batch) spawn(f *registry.Frame, p *places, s *System) {
	from, to := &b.w.p.Groups[s.On], &b.w.p.Groups[s.Pool]
	copied := 0
	if len(from.Slots) == len(to.Slots) {
		copied = len(to.Slots)
	}
	for caller := range from.Count {
		for range s.Count {
			slot, ok := b.w.take(f, p, s.Pool)
			if !ok {
				return
			}
			source, at := p.chunk(s.On, caller)
			target, into := p.chunk(s.Pool, slot)
			for i := range copied {
				archetype.CellsOf[float64](target, i)[into] = archetype.CellsOf[float64](source, i)[at] // taking it has marked all columns
			}
		}
	}
}

// run runs an update or a despawn.
func (b *batch) run(f *registry.Frame, p *places, s *System, l *lanes, step uint64) {
	block := p.blocks[s.On]
	inUse := block.InUse()
	if inUse == 0 {
		return
	}
	b.now, b.chunks = l, block.Chunks()
	b.compute(p, l, step)
	words := (b.w.p.Groups[s.On].Count + 63) / 64
	if l.ends >= 0 && len(b.ended) < words {
		b.ended = make([]uint64, words)
	}
	parts := (len(b.chunks) + partChunks - 1) / partChunks
	if inUse*(len(l.ops)+len(l.stores)+1) < b.spreadFrom {
		b.prepare(1)
		for part := range parts {
			b.Part(nil, 0, part)
		}
	} else {
		b.prepare(registry.Workers(f))
		registry.Fork(f, b, parts, true)
	}
	b.chunks = nil
	if l.ends >= 0 && slices.ContainsFunc(b.lines, func(l *line) bool { return l.ended }) {
		b.endAll(f, p, s.On, words)
	}
}

// prepare has a line for each worker.
func (b *batch) prepare(workers int) {
	for len(b.lines) < workers {
		b.lines = append(b.lines, new(line))
	}
}

// endAll makes inactive whom the system has found, in ascending order.
func (b *batch) endAll(f *registry.Frame, p *places, group, words int) {
	for _, l := range b.lines {
		l.ended = false
	}
	for i, word := range b.ended[:words] {
		if word == 0 {
			continue
		}
		b.ended[i] = 0
		for ; word != 0; word &= word - 1 {
			b.w.end(f, p, group, i<<6|bits.TrailingZeros64(word))
		}
	}
}

// compute computes what is uniform.
func (b *batch) compute(p *places, l *lanes, step uint64) {
	b.uniform = slices.Grow(b.uniform[:0], len(l.uniform))
	for _, e := range l.uniform {
		b.uniform = append(b.uniform, b.value(p, l, e, step))
	}
}

// value computes a uniform expression.
func (b *batch) value(p *places, l *lanes, e Expr, step uint64) float64 {
	switch e := e.(type) {
	case *Const:
		return e.Value
	case *Time:
		return b.w.p.Time(step)
	case *Other:
		ch, slot := p.chunkOf(b.w.p, e.ID)
		return archetype.CellsOf[float64](ch, e.Slot)[slot]
	case *ActiveOf:
		ch, slot := p.chunkOf(b.w.p, e.ID)
		return truth(ch.Bit(uint32(slot)))
	case *Local:
		return b.uniform[l.letAt[e.Let]]
	case *Unary:
		return unary(e.Op, b.value(p, l, e.X, step))
	case *Binary:
		return binary(e.Op, b.value(p, l, e.X, step), b.value(p, l, e.Y, step))
	case *If:
		if isTrue(b.value(p, l, e.Cond, step)) {
			return b.value(p, l, e.Then, step)
		}
		return b.value(p, l, e.Else, step)
	}
	return 0
}

// chunkOf is the chunk and slot of an id.
func (p *places) chunkOf(prog *Program, id uint32) (*archetype.Chunk, int) {
	group, slot, _ := prog.GroupOf(id)
	return p.chunk(group, slot)
}

// Part does some chunks: see registry.Task.
//
// Concurrency: a worker, with its own number. Allocates: for the first system that needs so much.
func (b *batch) Part(_ *registry.Frame, worker, part int) {
	l := b.lines[worker]
	for i := part * partChunks; i < min((part+1)*partChunks, len(b.chunks)); i++ {
		b.chunk(l, i)
	}
}

// chunk does the blocks of a chunk in which somebody is active.
func (b *batch) chunk(l *line, index int) {
	ch := b.chunks[index]
	active := ch.Active()
	marked := false
	for from := 0; from < len(active); {
		if active[from] == 0 {
			from++
			continue
		}
		to := from + 1
		for to < len(active) && to < from+blockWords && active[to] != 0 {
			to++
		}
		if !marked {
			marked = true
			b.open(l, ch)
		}
		b.block(l, active[from:to], from, index*len(active))
		from = to
	}
}

// open has the columns of a chunk at hand, and notes which will be written.
func (b *batch) open(l *line, ch *archetype.Chunk) {
	if l.lanes != b.now {
		l.lanes, l.words = b.now, 0
		l.columns = slices.Grow(l.columns[:0], b.now.arity)[:b.now.arity]
		l.vectors = slices.Grow(l.vectors[:0], b.now.vectors)[:b.now.vectors]
		l.masks = slices.Grow(l.masks[:0], b.now.masks)[:b.now.masks]
		l.numbers = slices.Grow(l.numbers[:0], (b.now.vectors-b.now.arity)*blockWords*64)
		l.bits = slices.Grow(l.bits[:0], b.now.masks*blockWords)
	}
	for i := range l.columns {
		l.columns[i] = archetype.CellsOf[float64](ch, i)
	}
	for _, s := range b.now.stores {
		ch.Mark(s.slot)
	}
}

// layOut cuts the vectors and masks for blocks of so many words.
func (l *line) layOut(words int) {
	l.words = words
	const longest = blockWords * 64
	numbers := l.numbers[:cap(l.numbers)]
	for i := len(l.columns); i < len(l.vectors); i++ {
		l.vectors[i], numbers = numbers[:words*64:words*64], numbers[longest:]
	}
	masks := l.bits[:cap(l.bits)]
	for i := range l.masks {
		l.masks[i], masks = masks[:words:words], masks[blockWords:]
	}
}

// block does words of a chunk from one on. Its first word has a place in ended.
func (b *batch) block(l *line, active []uint64, from, place int) {
	words := len(active)
	if l.words != words {
		l.layOut(words)
	}
	for i, column := range l.columns {
		l.vectors[i] = column[from*64 : (from+words)*64]
	}
	for i := range b.now.ops {
		b.now.ops[i].run(l, b.uniform)
	}
	for _, s := range b.now.stores {
		l.refused += storeLanes(l.vectors[s.slot], l.vectors[s.vector], active)
	}
	if b.now.ends < 0 {
		return
	}
	for i, ends := range l.masks[b.now.ends] {
		if ends &= active[i]; ends != 0 {
			if planted.Enabled && planted.Is(planted.BatchEndsTooMany) {
				ends |= ends << 1 & active[i]
			}
			b.ended[place+from+i] = ends
			l.ended = true
		}
	}
}
