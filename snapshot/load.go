package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"reflect"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Load puts a saved state into a registry in which no handle was ever issued: all of it, or nothing
// changes. From then on the registry is the one that was saved: the same handles are alive and dead, those that
// were born after the save are nobody's, and the same operations give the same handles in the same slots: so a handle
// that somebody has kept from after the save may come to name an entity that was not meant. The frame
// number is that of the save: a frame in progress has it from here on, else the next frame is the one after. What the
// callback did before is committed, and nothing of it or of the load is undone.
//
// Classes and components are matched by name. Those of the state have to be registered with the same fields, tiers and
// chunk sizes, in any order, and others may be registered beside them. Owner has to be the same, and so has
// whether the registry is deterministic and whether there is a temporal ring; with either, MaxEntities too, and
// without it has to be large enough.
//
// No event tells of the entities. A frame that was published before cannot be acquired any more; who has one keeps it.
// There is no going back to before the load. Reserve may answer ErrExhausted while it runs.
//
// What in says is not believed, whatever its checksums are. But those keep out accidents, not forgers: who gets
// states from others needs a signature round them, and a limit (io.LimitReader) on whatever decompresses them.
//
// Errors: ErrDamaged; ErrVersion; ErrSchema, with the class or component that differs; registry.ErrConfig;
// registry.ErrNotEmpty, also after a Reset, since what was issued before it stays dead; registry.ErrExhausted; ErrNoCodec,
// and what the methods of a component say; registry.ErrIterating in a loop; registry.ErrExpired; what in returns.
// Concurrency: window holder; others may reserve, destroy and read frames. Allocates: yes; for bytes that have arrived, and
// no more indices than MaxEntities allows.
func Load(in io.Reader, w *registry.Window) error {
	r, err := registry.Opened(w)
	if err != nil {
		return err
	}
	c, src, err := openState(in)
	if err != nil {
		return err
	}
	state, initial, err := decodeState(c, r)
	if err != nil {
		return err
	}
	p, err := registry.PrepareRestore(w, state)
	if err != nil {
		return loadError(err)
	}
	cells, err := decodeCells(c, r, state)
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	return p.Run(func(archetypes []*archetype.Archetype) error {
		initial.fill(p.Blocks())
		return cells.read(src, archetypes)
	})
}

// stateSource is the last section of a state. A large one is read when there is a place for it: the cells go where they
// belong without another copy, and if they turn out to be damaged what was built for them is torn down.
type stateSource struct {
	r       io.Reader
	hash    *xxh3.Hasher
	section *section
	got     uint64
	whole   bool // it was read and found right: the bytes are in the section
}

// wholeBytes is the size up to which the cells are read and checked before anything is built for them.
const wholeBytes = 1 << 20

// openState reads all sections but the last, which has to be that of the cells.
func openState(in io.Reader) (*container, *stateSource, error) {
	left, err := remaining(in)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: how much is there to read: %w", err)
	}
	if _, inMemory := in.(interface{ Len() int }); !inMemory {
		in = bufio.NewReaderSize(in, 4<<10) // what is larger goes past it
	}
	c, total, err := readHeader(in)
	if err != nil {
		return nil, nil, err
	}
	ahead := uint64(aheadBytes)
	if left >= 0 && total <= uint64(left) {
		ahead = math.MaxUint64
	}
	hash := xxh3.New()
	last := len(c.sections) - 1
	if last < 0 || c.sections[last].id != sectionCells {
		return nil, nil, fmt.Errorf("%w: section %d is not the last", ErrDamaged, sectionCells)
	}
	for i := range last {
		if err := c.sections[i].read(in, hash, ahead); err != nil {
			return nil, nil, err
		}
	}
	s := &stateSource{r: in, hash: hash, section: &c.sections[last]}
	s.section.opened = true
	if s.whole = s.section.length <= wholeBytes; s.whole {
		if err := s.section.read(in, hash, ahead); err != nil {
			return nil, nil, err
		}
		return c, s, nothingBehind(in)
	}
	hash.ResetSeed(uint64(s.section.id))
	return c, s, nil
}

// nothingBehind checks that a reader is at its end.
func nothingBehind(r io.Reader) error {
	var behind [1]byte
	switch _, err := io.ReadFull(r, behind[:]); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("%w: there are bytes behind the end", ErrDamaged)
	default:
		return readError("the end", 0, 0, err)
	}
}

// columnBytes is what is read at a time at least, unless it goes into a column at once.
const columnBytes = 16 << 10

// read fills b with the next bytes.
func (s *stateSource) read(b []byte) error {
	if s.whole {
		s.got += uint64(copy(b, s.section.data[s.got:]))
		return nil
	}
	for part := range slices.Chunk(b, hashBytes) {
		n, err := io.ReadFull(s.r, part)
		if s.got += uint64(n); err != nil {
			return readError(s.section.name(), int(s.got), int(s.section.length), err)
		}
		s.hash.Write(part)
	}
	return nil
}

// end checks that what was read is what was written, and that nothing comes behind it.
func (s *stateSource) end() error {
	if s.whole {
		return nil
	}
	var sum [sumBytes]byte
	if n, err := io.ReadFull(s.r, sum[:]); err != nil {
		return readError("checksum of "+s.section.name(), n, sumBytes, err)
	}
	if binary.LittleEndian.Uint64(sum[:]) != s.hash.Sum64() {
		return fmt.Errorf("%w: %s: the checksum differs", ErrDamaged, s.section.name())
	}
	return nothingBehind(s.r)
}

// LoadFile is Load from a file.
//
// Errors: as Load, and what the file system says.
// Concurrency: as Load. Allocates: as Load.
func LoadFile(path string, w *registry.Window) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("snapshot: load: %w", err)
	}
	defer f.Close() // it was read only
	if err := Load(f, w); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// decodeState reads all but the cells.
func decodeState(c *container, r *registry.Registry) (*registry.State, initialValues, error) {
	s := &registry.State{}
	var types *schema
	for _, part := range []struct {
		id   uint32
		read func(d *decoder) error
	}{
		{sectionMeta, func(d *decoder) error {
			if v := d.u32(); d.err == nil && v != stateVersion {
				return fmt.Errorf("%w: state version %d, and this is %d", ErrVersion, v, stateVersion)
			}
			s.Frame = d.u64()
			return nil
		}},
		{sectionSchema, func(d *decoder) error { types = getSchema(d); return nil }},
		{sectionLocals, func(d *decoder) (err error) {
			s.Locals, err = getLocals(d, 2*r.Config().MaxEntities+1<<17)
			return err
		}},
		{sectionGlobals, func(d *decoder) error { s.Globals = getGlobals(d); return nil }},
		{sectionNets, func(d *decoder) error { s.Nets = getNets(d); return nil }},
		{sectionNames, func(d *decoder) error { getNames(d, s); return nil }},
		{sectionDeaths, func(d *decoder) error { getDeaths(d, s); return nil }},
	} {
		d, err := c.open(part.id)
		if err != nil {
			return nil, nil, err
		}
		if err := part.read(d); err != nil {
			return nil, nil, err
		}
		if err := d.end(); err != nil {
			return nil, nil, err
		}
	}
	if err := types.match(r); err != nil {
		return nil, nil, err
	}
	d, err := c.open(sectionStores)
	if err != nil {
		return nil, nil, err
	}
	s.Stores = getStores(d, types)
	if err := d.end(); err != nil {
		return nil, nil, err
	}
	if d, err = c.open(sectionPools); err != nil {
		return nil, nil, err
	}
	initial, err := getPools(d, r, s)
	if err != nil {
		return nil, nil, err
	}
	return s, initial, d.end()
}

// getLocals reads spaces of local indices, of which no registry with room for so many entities has more than most.
func getLocals(d *decoder, most int) (spaces []handles.LocalsState, err error) {
	for range d.count(2, 38) {
		l := handles.LocalsState{First: d.u32()}
		if l.Words, err = getWords(d, most); err != nil {
			return nil, err
		}
		l.Retired = d.u64()
		l.Free = getNumbers[handles.Local](d)
		l.Pending = getNumbers[handles.Local](d)
		l.PendingFrames = getNumbers[uint64](d)
		l.Returned = getNumbers[handles.Local](d)
		l.Burned = getNumbers[handles.Local](d)
		l.Burnt = getIndices(d)
		l.Over = d.flag()
		spaces = append(spaces, l)
	}
	return spaces, nil
}

// getWords reads words of local indices. A few bytes may be the runs of many, so their number is checked first.
func getWords(d *decoder, most int) ([]uint64, error) {
	n := uint64(d.u32())
	runs := *d
	for sum := uint64(0); sum < n && runs.err == nil; {
		k := runs.uvarint() >> 1
		runs.u64()
		if sum += k; k == 0 || k > n || sum > n {
			runs.fail("a run of %d words, of %d", k, n)
		}
	}
	if runs.err != nil || n == 0 {
		d.err = runs.err
		return nil, nil
	}
	if n > uint64(most) {
		return nil, fmt.Errorf("%w: MaxEntities: the state has %d local indices", registry.ErrConfig, n)
	}
	words := make([]uint64, 0, n)
	for uint64(len(words)) < n {
		k := d.uvarint()
		w, step := d.u64(), k&1
		for range k >> 1 {
			words = append(words, w)
			w += step
		}
	}
	return words, nil
}

func getGlobals(d *decoder) (g handles.GlobalsState) {
	g.Runs = make([]handles.GlobalRun, d.count(math.MaxInt, 9))
	for i := range g.Runs {
		g.Runs[i] = handles.GlobalRun{First: d.u32(), Count: d.u32(), Use: d.u8()}
	}
	g.Ended = make([]handles.GlobalEnd, d.count(math.MaxInt, 12))
	for i := range g.Ended {
		g.Ended[i] = handles.GlobalEnd{Index: d.u32(), Times: d.u64()}
	}
	return g
}

func getNets(d *decoder) handles.NetsState {
	n := handles.NetsState{
		Owner:         d.u8(),
		First:         d.u32(),
		Words:         getNumbers[uint64](d),
		Deaths:        d.u64(),
		Free:          getNumbers[handles.Net](d),
		Pending:       getNumbers[handles.Net](d),
		PendingFrames: getNumbers[uint64](d),
		Returned:      getNumbers[handles.Net](d),
		Burned:        getNumbers[handles.Net](d),
		Burnt:         getIndices(d),
	}
	n.Foreign = make([]handles.ForeignNet, d.count(math.MaxInt, 16))
	for i := range n.Foreign {
		n.Foreign[i] = handles.ForeignNet{Name: handles.Net(d.u64()), Local: d.u32(), Before: d.u32()}
	}
	return n
}

func getNames(d *decoder, s *registry.State) {
	s.Records = make([]registry.IndexRecord, d.count(math.MaxInt, 8))
	for i := range s.Records {
		s.Records[i] = registry.IndexRecord{Index: d.u32(), Record: d.u32()}
	}
	s.Parted = getIndices(d)
	s.Named = make([]registry.IndexNet, d.count(math.MaxInt, 12))
	for i := range s.Named {
		s.Named[i] = registry.IndexNet{Index: d.u32(), Net: handles.Net(d.u64())}
	}
	s.Links = make([]registry.Link, d.count(math.MaxInt, 8))
	for i := range s.Links {
		s.Links[i] = registry.Link{Parent: d.u32(), Child: d.u32()}
	}
}

func getDeaths(d *decoder, s *registry.State) {
	var causes []string
	known := map[string]bool{}
	for range d.count(math.MaxInt, 4) {
		cause := d.string()
		if known[cause] {
			d.fail("cause %q is there twice", cause)
		}
		known[cause] = true
		causes = append(causes, cause)
	}
	used := uint32(0) // causes are in the order in which they are met
	s.Deaths = make([]registry.Death, d.count(math.MaxInt, 26))
	for i := range s.Deaths {
		death := &s.Deaths[i]
		death.Entity, death.Place = handles.Local(d.u64()), d.u32()
		cause := d.u32()
		if death.WasActive = d.flag(); cause > used || uint64(cause) >= uint64(len(causes)) {
			d.fail("cause %d of %d, after %d", cause, len(causes), used)
		}
		if d.err != nil {
			return
		}
		used = max(used, cause+1)
		death.Cause = causes[cause]
		death.Replaced, death.Net = d.flag(), handles.Net(d.u64())
	}
	if uint64(used) < uint64(len(causes)) {
		d.fail("%d causes, and %d are met", len(causes), used)
	}
	s.Outside = getNumbers[handles.Local](d)
	s.Ringed, s.Kept = d.flag(), d.flag()
	s.Vacated = getIndices(d)
	s.Ring = make([]registry.RingFrame, d.count(math.MaxInt, 16))
	for i := range s.Ring {
		s.Ring[i] = registry.RingFrame{Frame: d.u64(), Deaths: int(d.u32()), Vacated: int(d.u32())}
	}
}

func getStores(d *decoder, types *schema) []registry.ArchetypeState {
	stores := make([]registry.ArchetypeState, 0, d.count(math.MaxInt, 17))
	for range cap(stores) {
		class := d.u32()
		components := getIndices(d)
		st := registry.ArchetypeState{}
		if uint64(class) >= uint64(len(types.classes)) {
			d.fail("class %d of %d", class, len(types.classes))
		}
		for i, n := range components {
			if uint64(n) >= uint64(len(types.components)) || i > 0 && n <= components[i-1] {
				d.fail("component %d of %d", n, len(types.components))
			}
			if d.err != nil {
				return nil
			}
			st.Components = st.Components.With(types.components[n].id)
		}
		if d.err != nil {
			return nil
		}
		st.Class = types.classes[class].index
		st.LargeFirst = d.flag()
		st.Pooled = int(d.u32())
		st.Chunks = make([]archetype.ChunkState, d.count(math.MaxInt, 21))
		for k := range st.Chunks {
			st.Chunks[k] = archetype.ChunkState{
				Base: d.u32(), Slots: int(d.u32()), Allocated: int(d.u32()), Emptied: archetype.EmptyState(d.u8()),
				Holes: getNumbers[uint64](d), Active: getNumbers[uint64](d),
			}
		}
		stores = append(stores, st)
	}
	return stores
}

// getNumbers reads a list of words.
func getNumbers[N ~uint64](d *decoder) []N {
	n := d.count(math.MaxInt, 8)
	if n == 0 {
		return nil
	}
	list, b := make([]N, n), d.bytes(8*n)
	for i := range list {
		list[i] = N(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return list
}

func getIndices(d *decoder) []uint32 {
	n := d.count(math.MaxInt, 4)
	if n == 0 {
		return nil
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = d.u32()
	}
	return list
}

// loadedCells is where the cells of all archetypes go.
type loadedCells struct {
	stores  []registry.ArchetypeState
	columns [][]loadedColumn // by store
	scratch []byte
}

// loadedColumn is a column, and what a codec has made of its bytes: a slice of values for each chunk.
type loadedColumn struct {
	savedColumn
	values []reflect.Value
}

// decodeCells has the cells made that codecs have written, and checks that the others are as many as there are living
// entities.
func decodeCells(c *container, r *registry.Registry, s *registry.State) (*loadedCells, error) {
	d, err := c.open(sectionCoded)
	if err != nil {
		return nil, err
	}
	l := &loadedCells{stores: s.Stores, columns: make([][]loadedColumn, len(s.Stores))}
	plain := uint64(0)
	for i := range s.Stores {
		st := &s.Stores[i]
		var comps []*archetype.Component
		for id := range st.Components.All() {
			comp, _ := r.Schema().ByID(id)
			comps = append(comps, comp)
		}
		n := living(st)
		columns, err := columnsOf(comps, n)
		if err != nil {
			return nil, err
		}
		for k := range columns {
			col := loadedColumn{savedColumn: columns[k]}
			plain += uint64(n) * uint64(col.leaves.size)
			for c := range st.Chunks {
				if err := col.decode(d, st.LiveIn(c)); err != nil {
					return nil, err
				}
			}
			l.columns[i] = append(l.columns[i], col)
		}
	}
	if last := c.sections[len(c.sections)-1]; last.length != plain {
		return nil, fmt.Errorf("%w: %s has %d bytes, and the cells %d", ErrDamaged, last.name(), last.length, plain)
	}
	return l, d.end()
}

// decode has the cells of a chunk made of their bytes, if it has a codec.
func (c *loadedColumn) decode(d *decoder, live []uint64) error {
	if c.codec == nil {
		return nil
	}
	n := 0
	for _, word := range live {
		n += bits.OnesCount64(word)
	}
	if d.left()/4 < n {
		d.fail("%d values are wanted, and %d bytes are left", n, d.left())
		return d.err
	}
	values := reflect.MakeSlice(reflect.SliceOf(c.comp.Type), n, n)
	for i := range n {
		b := d.bytes(d.count(math.MaxInt, 1))
		if d.err != nil {
			return d.err
		}
		if err := c.codec.decode(b, values.Index(i).Addr()); err != nil {
			return err
		}
	}
	c.values = append(c.values, values)
	return nil
}

// read reads all other cells, and puts each where it belongs.
func (l *loadedCells) read(src *stateSource, archetypes []*archetype.Archetype) error {
	for i, a := range archetypes {
		for k := range l.columns[i] {
			col := &l.columns[i][k]
			for c, ch := range a.Chunks() {
				live := l.stores[i].LiveIn(c)
				if col.codec != nil {
					col.store(ch, c, live)
					continue
				}
				if err := l.readColumn(src, col, ch.Bytes(a.Column(col.comp.ID)+col.field), live); err != nil {
					return err
				}
			}
		}
	}
	return src.end()
}

// store puts the values of a chunk into their cells.
func (c *loadedColumn) store(ch *archetype.Chunk, chunk int, live []uint64) {
	n := 0
	for from, to := range runsOf(live) {
		for slot := from; slot < to; slot++ {
			ch.StoreComponent(c.comp, uint32(slot), c.values[chunk].Index(n).Addr())
			n++
		}
	}
}

// readColumn reads the cells of a chunk in a column.
func (l *loadedCells) readColumn(src *stateSource, col *loadedColumn, cells []byte, live []uint64) error {
	size, cell := col.leaves.size, col.leaves.cell
	for from, to := range runsOf(live) {
		if col.leaves.dense {
			part := cells[from*cell : to*cell]
			if err := src.read(part); err != nil {
				return err
			}
			if err := col.checkBools(part); err != nil {
				return err
			}
			continue
		}
		for slot := from; slot < to; {
			n := min(to-slot, max(columnBytes/max(size, 1), 1))
			l.scratch = slices.Grow(l.scratch[:0], n*size)[:n*size]
			if err := src.read(l.scratch); err != nil {
				return err
			}
			if err := col.checkBools(l.scratch); err != nil {
				return err
			}
			for i := range n {
				col.leaves.put(cells[slot*cell:], l.scratch[i*size:])
				slot++
			}
		}
	}
	return nil
}

// checkBools checks that what is to be a bool is one.
func (c *savedColumn) checkBools(b []byte) error {
	for at := 0; len(c.bools) > 0 && at < len(b); at += c.leaves.size {
		for _, k := range c.bools {
			if b[at+k] > 1 {
				return fmt.Errorf("%w: component %s: a bool of %d", ErrDamaged, c.comp.Name, b[at+k])
			}
		}
	}
	return nil
}

// loadError makes damage of what no registry can have written.
func loadError(err error) error {
	if errors.Is(err, registry.ErrState) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
