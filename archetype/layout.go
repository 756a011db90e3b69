package archetype

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/handles"
)

// columnAlign is where columns begin in a block: at cache lines, which also serves any Go
// type and the widest vector loads.
const columnAlign = 64

// A copy whose source and target are a multiple of 4096 bytes apart is slower: processors tell loads from earlier stores by
// the low 12 bits of the address, and loads wait that have no reason to. Frames might lie like that, for 1024 slots of
// 4 bytes are 4096, so they are moved apart by some lines. A frame in which all is written costs 7% less at 1k and
// 16k entities (module bench, "frame propagation"); with 64 bytes it was half of that.
const (
	aliasing = 4096
	framePad = 4 * columnAlign
)

// FieldDescriptor says where a column lies in a chunk.
type FieldDescriptor struct {
	Slot                     int // in the field table
	Tier                     Tier
	FrameCount               int
	FrameStride, ElementSize uintptr // bytes from one frame to the next; of one element
	Offset                   uintptr // of frame 0 in the block; 0 for a column of its own
	Type                     reflect.Type
	Pointers                 bool // the column is typed memory of its own, outside the block
}

// FieldLayout is where the columns of a chunk lie: one entry for each field of the archetype's
// components, then the Active plane (ActiveID; one element is a word of 64 slots), then the
// entity column (EntityID). It does not change.
//
// In a block, columns with as many frames lie by the frame: all of them as they are in one, then as they are in the next.
// So what has changed in all of them is copied to the next frame in one piece.
//
// Some chunks may share a block, and then have one layout (see Chunks): in each frame of a
// column their parts lie end to end. Frame 0 of a column of the chunk at place p begins at
// Offset + p*n*ElementSize in the block, where n is the elements of a chunk.
//
// Invariant: entries are sorted by key; entry i has table slot i; frames of columns in the block do not
// overlap and begin at multiples of 64; a stride is 0 exactly when there is one frame.
type FieldLayout struct {
	keys   []FieldKey
	fields []FieldDescriptor // in the order of keys
	slots  int               // of a chunk
	places int               // chunks in a block
	block  uintptr           // bytes of the slab block
	typed  uintptr           // bytes of the typed columns of a chunk
	ringed uintptr           // bytes of a chunk in one frame, of columns that have several

	// What BuildFieldTable needs of each field, side by side.
	rings   []uint8
	strides []uintptr
	parts   []uintptr // bytes of a chunk in one frame
	counts  [rings]uint64
	ring    uint8     // of the plane and the entity column
	mixed   bool      // some columns have another ring than these, and more than one frame
	tables  int       // of a chunk, see Chunk.resolve
	spans   []uintptr // in the block: from where a column of a frame begins to where the next column does, or the next frame
}

// NewLayout lays out chunks of that many slots, each in a block of its own. temporalFrames is the depth of the temporal
// ring; with 0, Temporal columns have the frames of Volatile ones.
//
// The Active plane and the entity column follow the highest tier among the components, but
// are never below Volatile: an older frame of a chunk is complete in itself.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func NewLayout(comps []*Component, slots, temporalFrames int) *FieldLayout {
	return newLayout(comps, slots, 1, temporalFrames)
}

// newLayout lays out blocks with places for some chunks. But for columns with pointers, which
// are outside, all of them together lie as one chunk with the slots of all of them would.
func newLayout(comps []*Component, slots, places, temporalFrames int) *FieldLayout {
	comps = slices.Clone(comps)
	slices.SortFunc(comps, func(a, b *Component) int { return cmp.Compare(a.ID, b.ID) })

	l := &FieldLayout{slots: slots, places: places, counts: ringCounts(temporalFrames)}
	highest, n := Volatile, 2
	for _, c := range comps {
		n += len(c.Fields)
	}
	words := make([]uintptr, 3*n)
	l.keys, l.fields, l.rings = make([]FieldKey, 0, n), make([]FieldDescriptor, 0, n), make([]uint8, 0, n)
	l.parts, l.strides, l.spans = words[:0:n], words[n:2*n:2*n], words[2*n:]
	for _, c := range comps {
		highest = max(highest, c.Tier)
		for i := range c.Fields { // sorted by key as they are
			f := &c.Fields[i]
			l.add(f.Key, c.Tier, f.Type, slots, temporalFrames, f.Pointers)
		}
	}
	l.add(FieldKey{Component: ActiveID}, highest, reflect.TypeFor[uint64](), slots/64, temporalFrames, false)
	l.add(FieldKey{Component: EntityID}, highest, reflect.TypeFor[handles.Local](), slots, temporalFrames, false)
	l.place()
	return l
}

// add appends a column of n elements a frame and chunk.
func (l *FieldLayout) add(key FieldKey, tier Tier, t reflect.Type, n, temporalFrames int, pointers bool) {
	d := FieldDescriptor{
		Slot:        len(l.fields),
		Tier:        tier,
		FrameCount:  tier.frames(temporalFrames),
		ElementSize: t.Size(),
		Type:        t,
		Pointers:    pointers,
	}
	part := uintptr(n) * d.ElementSize
	if d.FrameCount > 1 {
		l.ringed += part
	}
	if pointers {
		l.typed += part * uintptr(d.FrameCount)
	}
	l.keys = append(l.keys, key)
	l.fields = append(l.fields, d)
	l.rings = append(l.rings, ringOf(tier, temporalFrames))
	l.parts = append(l.parts, part)
}

// place says where the columns lie that are in the block, and how far apart frames are.
func (l *FieldLayout) place() {
	for k, count := range l.counts {
		begin, last := l.block, -1
		for i := range l.fields {
			f := &l.fields[i]
			switch {
			case int(l.rings[i]) != k:
			case f.Pointers && count > 1:
				f.FrameStride = l.parts[i]
			case !f.Pointers:
				// A frame of a column begins at a cache line. For cells this rounds nothing: 64 slots of any size are
				// whole lines, so a typed column stays a plain array over all its frames.
				f.Offset, l.spans[i] = l.block, alignUp(l.parts[i]*uintptr(l.places), columnAlign)
				l.block += l.spans[i]
				last = i
			}
		}
		if last < 0 || count == 1 {
			continue
		}
		if (l.block-begin)%aliasing == 0 {
			l.spans[last] += framePad
			l.block += framePad
		}
		frame := l.block - begin
		l.block = begin + frame*uintptr(count)
		for i := range l.fields {
			if int(l.rings[i]) == k && !l.fields[i].Pointers {
				l.fields[i].FrameStride = frame
			}
		}
	}
	l.ring = l.rings[len(l.rings)-1]
	l.tables = int(l.counts[l.ring])
	for i := range l.fields {
		l.strides[i] = l.fields[i].FrameStride
		if k := l.rings[i]; k != ringCold && k != l.ring {
			l.mixed, l.tables = true, 2
		}
	}
}

// Lookup finds a column.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) Lookup(key FieldKey) (FieldDescriptor, bool) {
	i, ok := slices.BinarySearchFunc(l.keys, key, func(a, b FieldKey) int { return cmp.Compare(a.order(), b.order()) })
	if !ok {
		return FieldDescriptor{}, false
	}
	return l.fields[i], true
}

// All yields the columns in the order of their keys, which is that of the field table.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) All() iter.Seq2[FieldKey, FieldDescriptor] {
	return func(yield func(FieldKey, FieldDescriptor) bool) {
		for i, key := range l.keys {
			if !yield(key, l.fields[i]) {
				return
			}
		}
	}
}

// Len is the number of columns, the plane and the entity column among them.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) Len() int { return len(l.fields) }

// Slots is how many slots a chunk has that is laid out like this.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) Slots() int { return l.slots }

// Chunks is how many chunks lie end to end in a block: 1 in what NewLayout makes.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) Chunks() int { return l.places }

// Bytes is the memory of as many chunks as share a block: all frames of all columns, those
// outside the block as well.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) Bytes() int { return int(l.block + uintptr(l.places)*l.typed) }

// BuildFieldTable resolves every column for a storage frame: out[slot] is where that frame
// of the column begins, given where its frame 0 begins. There is one formula for all tiers;
// Cold has one frame and stride 0.
//
// out and bases have Len elements; they may be the same slice only for frame 0.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *FieldLayout) BuildFieldTable(out, bases []unsafe.Pointer, frame uint64) {
	n := len(l.rings)
	out, bases, strides := out[:n], bases[:n], l.strides[:n]
	at := l.buffers(frame)
	for i, k := range l.rings {
		// Sound: (frame % count) * stride is the beginning of a frame of that column, and all
		// of them lie in the one object that bases[i] points into.
		out[i] = unsafe.Add(bases[i], at[k&3]*strides[i])
	}
}

// buffers is which buffer of each ring belongs to a frame: frame % count, which takes only as many
// values as there are rings, so that there is no division for each column. The length is a power of two,
// so that a mask spares a bounds check.
func (l *FieldLayout) buffers(frame uint64) (at [4]uintptr) {
	for k, count := range l.counts {
		at[k] = uintptr(frame % count)
	}
	return at
}

// shifts is how far each column is from its frame 0, in buffers numbered like this for each ring. It is appended to buf.
func (l *FieldLayout) shifts(buf []uintptr, at [4]uintptr) []uintptr {
	n := len(l.rings)
	buf = slices.Grow(buf, n)[:n]
	strides := l.strides[:n]
	for i, k := range l.rings {
		buf[i] = at[k&3] * strides[i]
	}
	return buf
}

// alignUp is n rounded up to a multiple of align, a power of two.
func alignUp(n, align uintptr) uintptr { return (n + align - 1) &^ (align - 1) }
