package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// How a state becomes a number. The unit is the block: 64 slots of an archetype that begin at a multiple
// of 64. Chunks are whole blocks, so that it does not matter how many of them a chunk has. The blocks
// of an archetype are numbered in the order of its chunks; those in which nobody exists have no number, so
// that it does not matter either when the memory of an empty chunk is given back.
//
// A block has a record, some words: what the archetype is, its number, who of the 64 exists, who of those
// is active, a hash of their handles, and for each Temporal column one of their canonical bytes. The hash
// of a record is the block's value, and the state's is the hash of the sum of all values. A sum does not
// mind in which order archetypes are met, and a chunk's part of it can be kept: for as long as nothing in
// the chunk changes that is one number, and for a column that changes its words in the records are made
// anew.
//
// That sum is one of pseudo-random numbers that depend on all of a record, its number included: records
// cannot change places or cancel out, but by chance. All hashes are XXH3 with 64 bits.

// Words of a record. What a column adds comes after.
const (
	recordKey    = 8 * iota // what the archetype is
	recordNumber            // of the block; these two when it is summed up
	recordExists
	recordActive
	recordHandles
	recordColumns
)

// hashVersion is hashed with every state: another way to hash them has another one.
const hashVersion = 1

// Hash gives a number that tells two states apart. Equal states have equal hashes: in any process, on hosts
// of either byte order and any GOAMD64 level, for any number of workers, and whatever the chunk sizes, the
// history of free slots, and the order in which archetypes came into being.
//
// What it is about: of every archetype of a class that is not Cosmetic, every entity that exists, with its
// place in the order of iteration, its handle, whether it is active, and its Temporal components, also when
// Config.TemporalFrames is 0. Idle slots of pools exist, and are not active. An archetype is what the class and the components are called, and what those
// consist of: names and kinds of fields, tier, split or not; Cold, Volatile and tag components among them,
// though not their values; and which of the pools it is, in the order of their making. Floats go by their bits: 0 and -0 differ, and so do two NaNs with different
// bits. Blank fields count, padding does not. An int has the size of the host, so 32-bit hosts agree with
// each other only.
//
// What is not in it: the number of the frame; Cold and Volatile values; dead entities, free lists and
// generations that were burned; which inactive slots of a pool are idle; cache indices; parents and net handles, which a published frame does not
// show. So an emptied registry hashes like a fresh one, and a published frame like the window after it
// before anything has changed. Whoever keeps state in Cold components, or decides by parents, does not find
// the difference here.
//
// It costs what has changed. What has rested since it was last hashed, in earlier frames, is remembered:
// once for windows and frames, and once for snapshots. One call at a time has that memory, for each of
// the two; who comes meanwhile does not wait, and hashes everything. In a registry that never begins a frame
// nothing is known to have rested.
//
// Errors: registry.ErrExpired; registry.ErrNotPublished, with the archetype, for an older frame of which
// only the archetypes with a Temporal component are left, if there are others.
// Concurrency: as the token; of a frame nobody may write meanwhile. Never waits for Logic, nor Logic for
// it. Allocates: no, but for growth.
func Hash(a registry.Access) (uint64, error) {
	r, isPublished, err := registry.Source(a)
	if err != nil {
		return 0, err
	}
	w := hasherOf(r).take(isPublished)
	defer w.mu.Unlock()
	return w.hashOf(a)
}

// hasher is what a registry's hashes have in common; it stays with the registry.
type hasher struct {
	r     *registry.Registry
	plans *xsync.MapOf[planKey, *plan]
	sides [2]side // windows and frames, and snapshots: they never meet
}

// side is the walks of one kind. The first has a memory; the others are for who finds it busy.
type side [4]walk

type hasherKey struct{}

func hasherOf(r *registry.Registry) *hasher {
	return r.Lodger(hasherKey{}, func() any { return newHasher(r) }).(*hasher)
}

func newHasher(r *registry.Registry) *hasher {
	h := &hasher{r: r, plans: xsync.NewMapOf[planKey, *plan]()}
	for i := range h.sides {
		for k := range h.sides[i] {
			h.sides[i][k].h, h.sides[i][k].remember = h, k == 0
		}
	}
	return h
}

// take gives a walk to the caller, who unlocks it.
func (h *hasher) take(isPublished bool) *walk {
	s := &h.sides[0]
	if isPublished {
		s = &h.sides[1]
	}
	for i := range s {
		if s[i].mu.TryLock() {
			return &s[i]
		}
	}
	return h.fresh()
}

// fresh is a walk that nobody else has, without a memory.
func (h *hasher) fresh() *walk {
	w := &walk{h: h}
	w.mu.Lock()
	return w
}

// planKey names an archetype of a registry, whether it was dropped and made again or not.
type planKey struct {
	class int
	sig   archetype.Signature
	pool  int // number of the pool, 0 if it is none
}

// plan is what is hashed of an archetype. It does not change.
type plan struct {
	cosmetic bool   // nothing is
	name     string // class and names of the components, sorted
	class    string
	comps    []described // by name
	pool     int         // number of the pool, 0 if it is none
	key      uint64      // hash of class and comps
	entities column
	columns  []column // Temporal ones, by component name and field
}

// described is a component's name, and what it consists of.
type described struct{ name, layout string }

// column is a column to hash.
type column struct {
	slot   int // in the field table
	comp   string
	field  string // "" for a whole component
	typ    reflect.Type
	leaves leaves
}

func (h *hasher) planOf(a *archetype.Archetype) *plan {
	key := planKey{a.Class(), a.Signature(), a.Pooled()}
	if p, ok := h.plans.Load(key); ok {
		return p
	}
	p, _ := h.plans.LoadOrStore(key, newPlan(a, h.r.CosmeticClass(a.Class())))
	return p
}

func newPlan(a *archetype.Archetype, cosmetic bool) *plan {
	p := &plan{cosmetic: cosmetic, class: a.ClassName()}
	comps := slices.Clone(a.Components())
	slices.SortFunc(comps, func(a, b *archetype.Component) int { return cmp.Compare(a.Name, b.Name) })
	text := strconv.AppendQuote(nil, p.class)
	p.name = p.class + "["
	for i, c := range comps {
		layout := layoutOf(c)
		p.comps = append(p.comps, described{c.Name, layout})
		text = strconv.AppendQuote(append(text, ' '), c.Name)
		text = append(append(text, ' '), layout...)
		if i > 0 {
			p.name += " "
		}
		p.name += c.Name
		if c.Tier != archetype.Temporal {
			continue
		}
		for k := range c.Fields {
			f := &c.Fields[k]
			if planted.Enabled && planted.Is(planted.FieldNotHashed) && k > 0 {
				continue
			}
			p.columns = append(p.columns, column{a.Column(c.ID) + k, c.Name, f.Name, f.Type, leavesOf(f.Type)})
		}
	}
	p.name += "]"
	if p.pool = a.Pooled(); p.pool != 0 {
		text = strconv.AppendInt(append(text, " pool "...), int64(p.pool), 10)
		p.name += " pool " + strconv.Itoa(p.pool)
	}
	p.key = xxh3.Hash(text)
	handle := reflect.TypeFor[handles.Local]()
	p.entities = column{slot: a.ColumnOf(archetype.FieldKey{Component: archetype.EntityID}), typ: handle, leaves: leavesOf(handle)}
	return p
}

// layoutOf says what a component consists of: equal components of two programs have equal layouts.
func layoutOf(c *archetype.Component) string {
	b := append([]byte(c.Tier.String()), ' ')
	if c.Split {
		b = append(b, "split "...)
	}
	return string(appendType(b, c.Type))
}

// recordBytes is how long a record is.
func (p *plan) recordBytes() int { return recordColumns + 8*len(p.columns) }

// walk is one way over all chunks. It belongs to whoever has locked it.
type walk struct {
	mu       sync.Mutex // guards all that follows; taken with TryLock only
	h        *hasher
	remember bool

	sum    uint64 // of the values of all blocks
	blocks uint64 // how many there are
	arch   *archetype.Archetype
	plan   *plan  // of arch
	next   uint64 // number of its next block

	// Chunks of arch whose columns are still to be hashed, and what those contain, as many entries for each
	// as there are columns; nil for one that has not changed.
	group    []*chunkHash
	contents [][]byte

	scratch []byte
	hash    xxh3.Hasher
	spare   [groupChunks]chunkHash // without a memory: of the chunks of a group

	// The memory: by cache index / 64 of its first slot, which no two chunks have at a time.
	chunks  []*chunkHash
	kept    int    // how many are not nil
	met     int    // how many chunks there were
	passage uint64 // of walks
}

// chunkHash is the records of a chunk.
type chunkHash struct {
	id      uint64 // of the chunk
	passage uint64 // when it was last met
	records []byte // one for each word of slots; where nobody exists nothing of it counts but that
	stamps  []uint64
	blocks  int // where somebody exists

	summed bool   // sum is of these records and first
	first  uint64 // number of the first block
	sum    uint64 // of their values
}

// groupChunks is how many chunks are hashed together, column by column. A column of neighbouring chunks is
// one piece of memory, as a rule. With all columns of a chunk before the next chunk, what is too large for
// the caches took half as long again: each change of place waits for memory.
const groupChunks = 64

// unsettled stands for the stamp of what may change without another one. There is no such stamp.
const unsettled = ^uint64(0)

// hashOf walks over all there is.
func (w *walk) hashOf(a registry.Access) (uint64, error) {
	w.begin()
	if err := registry.EachChunk(a, func(l *registry.Look) bool {
		w.visit(l, nil)
		return true
	}); err != nil {
		return 0, err
	}
	w.flush(nil)
	return w.end(), nil
}

func (w *walk) begin() {
	for _, c := range w.group { // a walk did not come to its end, and these stayed without their hashes
		c.id = 0
	}
	w.sum, w.blocks, w.met, w.arch = 0, 0, 0, nil
	w.group, w.contents = w.group[:0], w.contents[:0]
	w.passage++
}

// visit adds a chunk. If to is not nil, its records are appended there.
func (w *walk) visit(l *registry.Look, to *image) {
	if a := l.Chunk.Archetype(); a != w.arch || len(w.group) == groupChunks {
		w.flush(to)
		if a != w.arch {
			w.arch, w.plan, w.next = a, w.h.planOf(a), 0
		}
	}
	if w.plan.cosmetic {
		return
	}
	c := w.chunk(l.Chunk)
	w.look(c, l)
	if c.first != w.next {
		c.first, c.summed = w.next, false
	}
	w.blocks += uint64(c.blocks)
	w.next += uint64(c.blocks)
	if c.summed && to == nil { // as it was the last time
		w.sum += c.sum
		w.contents = w.contents[:len(w.group)*(1+len(w.plan.columns))]
		return
	}
	w.group = append(w.group, c)
}

// flush hashes the columns of the group, and adds up.
func (w *walk) flush(to *image) {
	if len(w.group) == 0 {
		return
	}
	p := w.plan
	n := 1 + len(p.columns)
	for i := range n {
		col, word := &p.entities, recordHandles
		if i > 0 {
			col, word = &p.columns[i-1], recordColumns+8*(i-1)
		}
		for k, c := range w.group {
			if content := w.contents[k*n+i]; content != nil {
				w.cells(c, content, col, word)
			}
		}
	}
	for _, c := range w.group {
		if !c.summed {
			c.sumUp(p)
		}
		w.sum += c.sum
		if to != nil {
			to.add(p, c.records)
		}
	}
	clear(w.contents) // they are the registry's
	w.group, w.contents = w.group[:0], w.contents[:0]
}

// chunk finds what is remembered of a chunk.
func (w *walk) chunk(ch *archetype.Chunk) *chunkHash {
	w.met++
	c := &w.spare[len(w.group)]
	if w.remember {
		at := int(ch.Base() >> 6)
		if at >= len(w.chunks) {
			w.chunks = append(w.chunks, make([]*chunkHash, at+1-len(w.chunks))...)
		}
		if w.chunks[at] == nil {
			w.chunks[at] = new(chunkHash) // no chunk has the ID 0
			w.kept++
		}
		c = w.chunks[at]
		c.passage = w.passage
		if c.id == ch.ID() {
			return c
		}
	}
	c.begin(ch, w.plan)
	return c
}

// begin forgets what is known of another chunk.
func (c *chunkHash) begin(ch *archetype.Chunk, p *plan) {
	c.id, c.blocks, c.summed = ch.ID(), 0, false
	c.stamps = slices.Grow(c.stamps[:0], 1+len(p.columns))[:1+len(p.columns)]
	for i := range c.stamps {
		c.stamps[i] = unsettled
	}
	n := ch.Slots() / 64 * p.recordBytes()
	c.records = slices.Grow(c.records[:0], n)[:n] // what counts of them is written before it is read
}

// look notes who exists in the chunk, and appends to contents those columns that are not what they were.
func (w *walk) look(c *chunkHash, l *registry.Look) {
	p := w.plan
	var handles []byte
	if stamp, ok := l.Settled(p.entities.slot); !ok || c.stamps[0] != stamp {
		if c.structure(l, p.recordBytes()) { // of others than before: the values are to be read again
			for i := range c.stamps[1:] {
				c.stamps[1+i] = unsettled
			}
		}
		handles = l.Chunk.Bytes(p.entities.slot)
		c.note(0, stamp, ok)
	}
	w.contents = append(w.contents, handles)
	for i := range p.columns {
		var content []byte
		if stamp, ok := l.Settled(p.columns[i].slot); !ok || c.stamps[1+i] != stamp {
			content = l.Chunk.Bytes(p.columns[i].slot)
			c.note(1+i, stamp, ok)
		}
		w.contents = append(w.contents, content)
	}
}

// note says of which stamp a column's part of the records will be.
func (c *chunkHash) note(column int, stamp uint64, settled bool) {
	if !settled {
		stamp = unsettled
	}
	c.stamps[column], c.summed = stamp, planted.Enabled && planted.Is(planted.HashRemembered) && c.summed && column > 0
}

// structure notes who exists in the chunk, and who is active. It says whether others exist than before.
func (c *chunkHash) structure(l *registry.Look, size int) (changed bool) {
	c.blocks = 0
	words := (l.Chunk.Allocated() + 63) / 64
	for i := range l.Chunk.Slots() / 64 {
		record := c.records[i*size:][:recordActive+8]
		exists, active := uint64(0), uint64(0)
		if i < words {
			if active = l.Active(i); active == ^uint64(0) {
				exists = active
			} else {
				exists = l.Exists(i)
				active &= exists
			}
		}
		changed = changed || binary.LittleEndian.Uint64(record[recordExists:]) != exists
		binary.LittleEndian.PutUint64(record[recordExists:], exists)
		binary.LittleEndian.PutUint64(record[recordActive:], active)
		if exists != 0 {
			c.blocks++
		}
	}
	return changed
}

// cells hashes the cells of a column, and notes the hashes in the word of the records that is the column's.
func (w *walk) cells(c *chunkHash, content []byte, col *column, word int) {
	size, part, dense := w.plan.recordBytes(), 64*col.leaves.cell, col.leaves.dense
	for at, first := 0, 0; at < len(c.records); at, first = at+size, first+part {
		record := c.records[at:]
		switch exists := binary.LittleEndian.Uint64(record[recordExists:]); {
		case exists == ^uint64(0) && dense:
			binary.LittleEndian.PutUint64(record[word:], xxh3.Hash(content[first:first+part]))
		case exists != 0:
			binary.LittleEndian.PutUint64(record[word:], w.block(content[first:first+part], exists, &col.leaves))
		}
	}
}

// gathered is how many bytes are gathered to be hashed in one go; more are hashed as they come.
const gathered = 64 << 10

// block hashes the canonical bytes of those of 64 cells that exist.
func (w *walk) block(cells []byte, exists uint64, l *leaves) uint64 {
	stream := bits.OnesCount64(exists)*l.size > gathered
	if stream {
		w.hash.Reset()
	}
	buf := w.scratch[:0]
	for exists != 0 { // run by run of neighbours
		lo := bits.TrailingZeros64(exists)
		n := bits.TrailingZeros64(^(exists >> lo))
		exists &^= (1<<n - 1) << lo
		run := cells[lo*l.cell : (lo+n)*l.cell]
		if l.dense {
			if stream {
				w.hash.Write(run)
			} else {
				buf = append(buf, run...)
			}
			continue
		}
		for ; len(run) > 0; run = run[l.cell:] {
			buf = l.append(buf, run[:l.cell])
			if stream {
				w.hash.Write(buf)
				buf = buf[:0]
			}
		}
	}
	w.scratch = buf[:0]
	if stream {
		return w.hash.Sum64()
	}
	return xxh3.Hash(buf)
}

// sumUp completes the records, and adds up their values.
func (c *chunkHash) sumUp(p *plan) {
	size, number, sum := p.recordBytes(), c.first, uint64(0)
	for at := 0; at < len(c.records); at += size {
		if record := c.records[at : at+size]; binary.LittleEndian.Uint64(record[recordExists:]) != 0 {
			binary.LittleEndian.PutUint64(record[recordKey:], p.key)
			binary.LittleEndian.PutUint64(record[recordNumber:], number)
			sum += xxh3.Hash(record)
			number++
		}
	}
	c.sum, c.summed = sum, true
}

// end ends the walk, forgets chunks that are gone when they are the greater part, and gives the hash.
func (w *walk) end() uint64 {
	var words [24]byte
	binary.LittleEndian.PutUint64(words[:], hashVersion)
	binary.LittleEndian.PutUint64(words[8:], w.blocks)
	binary.LittleEndian.PutUint64(words[16:], w.sum)
	if w.remember && w.kept > 2*w.met+keptAnyway {
		w.forget()
	}
	w.arch = nil // it may be dropped
	return xxh3.Hash(words[:])
}

// keptAnyway is how many chunks are remembered without a look at whether they are still there.
const keptAnyway = 64

// forget drops what is remembered of chunks that this walk has not met.
func (w *walk) forget() {
	last := 0
	for i, c := range w.chunks {
		switch {
		case c == nil:
		case c.passage != w.passage:
			w.chunks[i] = nil
			w.kept--
		default:
			last = i + 1
		}
	}
	w.chunks = slices.Clip(slices.Clone(w.chunks[:last]))
}

// image is the records of a state, for a comparison.
type image struct{ archetypes []archetypeImage }

// archetypeImage is the records of an archetype, in order, those only in which somebody exists.
type archetypeImage struct {
	plan    *plan
	records []byte
}

// add appends a chunk's records.
func (m *image) add(p *plan, records []byte) {
	n := len(m.archetypes)
	if n == 0 || m.archetypes[n-1].plan != p {
		m.archetypes = append(m.archetypes, archetypeImage{plan: p})
		n++
	}
	a := &m.archetypes[n-1]
	for record := range slices.Chunk(records, p.recordBytes()) {
		if binary.LittleEndian.Uint64(record[recordExists:]) != 0 {
			a.records = append(a.records, record...)
		}
	}
}

// imageOf takes the image of what a token shows, its archetypes in canonical order, without those in
// which nobody exists.
func imageOf(a registry.Access, each func(registry.Access, func(*registry.Look) bool) error) (*image, error) {
	r, _, err := registry.Source(a)
	if err != nil {
		return nil, err
	}
	w, m := hasherOf(r).fresh(), &image{}
	if err := each(a, func(l *registry.Look) bool {
		w.visit(l, m)
		return true
	}); err != nil {
		return nil, err
	}
	w.flush(m)
	m.archetypes = slices.DeleteFunc(m.archetypes, func(a archetypeImage) bool { return len(a.records) == 0 })
	slices.SortFunc(m.archetypes, func(a, b archetypeImage) int { return a.plan.compare(b.plan) })
	return m, nil
}

// compare orders archetypes by class, then by the names of their components.
func (p *plan) compare(q *plan) int {
	return cmp.Or(cmp.Compare(p.class, q.class), slices.CompareFunc(p.comps, q.comps, func(a, b described) int {
		return cmp.Compare(a.name, b.name)
	}), cmp.Compare(p.pool, q.pool))
}

// equalRecord says whether two records differ in their number at most.
func equalRecord(a, b []byte) bool {
	return bytes.Equal(a[:recordNumber], b[:recordNumber]) && bytes.Equal(a[recordExists:], b[recordExists:])
}
