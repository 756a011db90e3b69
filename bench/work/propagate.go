package work

import (
	"math"
	"reflect"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/bench/contest"
)

// propagations go from one frame to the next with entities of 36 bytes in nine columns that were
// written: all of them, or those of as many chunks as a tenth is in. The first chunk of an archetype
// is small, so one chunk of 17 is no tenth. The yardstick copies as many bytes from one plain slice to
// the next, of as many as the ring has frames.
func propagations() []*contest.Workload {
	target := contest.Target{Raw: 1.1}
	return []*contest.Workload{
		{Name: "frame propagation", Sizes: standard(), Bytes: perEntity(400), Target: target,
			Open: func(n int) *contest.Contest { return openPropagation(n, 1, archetype.Volatile, 3) }},
		{Name: "frame propagation, a tenth written", Sizes: []int{k16, k256, m1, m10}, Bytes: perEntity(400), Target: target,
			Open: func(n int) *contest.Contest { return openPropagation(n, 10, archetype.Volatile, 3) }},
		{Name: "frame propagation, ring of 16", Sizes: []int{k1, k16, k256, m1}, Bytes: perEntity(1400), Target: target,
			Open: func(n int) *contest.Contest { return openPropagation(n, 1, archetype.Temporal, ringFrames) }},
	}
}

// nine are 36 bytes in nine columns.
type nine struct{ A, B, C, D, E, F, G, H, I float32 }

const (
	nineColumns = 9
	nineBytes   = 4 * nineColumns
	ringFrames  = 16
)

// advancing is a store of entities with 36 bytes.
type advancing struct {
	store  *archetype.Store
	chunks []*archetype.Chunk
	dirty  int // chunks written in every frame
}

// frames ends frames in which the columns of the dirty chunks were written, and begins the next ones.
//
//go:noinline
func (x *advancing) frames(n int) {
	for range n {
		for _, c := range x.chunks[:x.dirty] {
			for column := range nineColumns {
				c.Mark(column)
			}
		}
		x.store.Close()
		x.store.Advance(x.store.Frame()+1, 1, nil)
	}
}

// cells are a column's cells in slots that were taken: what is to be carried over.
func cells(c *archetype.Chunk, column int) []float32 {
	return archetype.CellsOf[float32](c, column)[:c.Allocated()]
}

// written is how many entities are in the dirty chunks.
func (x *advancing) written() (n int) {
	for _, c := range x.chunks[:x.dirty] {
		n += c.Allocated()
	}
	return n
}

// sum is a checksum of the cells of the frame's dirty chunks.
func (x *advancing) sum() (sum uint64) {
	for _, c := range x.chunks[:x.dirty] {
		for column := range nineColumns {
			sum += sumBits(cells(c, column))
		}
	}
	return sum
}

func sumBits(cells []float32) (sum uint64) {
	for _, v := range cells {
		sum += uint64(math.Float32bits(v))
	}
	return sum
}

// ring is as many bytes in plain slices, one for each frame.
type ring struct {
	frames [][]float32
	at     int
}

//go:noinline
func (r *ring) copies(n int) {
	for range n {
		next := (r.at + 1) % len(r.frames)
		copy(r.frames[next], r.frames[r.at])
		r.at = next
	}
}

func openPropagation(n, part int, tier archetype.Tier, depth int) *contest.Contest {
	c := new(contest.Contest)
	schema := archetype.NewSchema()
	component, err := schema.Register(reflect.TypeFor[nine](), archetype.Options{Tier: tier, Split: true})
	if err != nil {
		c.Check(err)
		return c
	}
	x := &advancing{store: archetype.NewStore(schema, ringFrames)}
	a := x.store.Archetype(0, archetype.Signature{}.With(component.ID), "nine", 0)
	for range n {
		a.Take()
	}
	x.chunks = a.Chunks()
	for x.dirty = 1; x.written() < n/part; x.dirty++ {
	}
	for _, ch := range x.chunks {
		for column := range nineColumns {
			for i := range cells(ch, column) {
				cells(ch, column)[i] = float32(i % 97)
			}
		}
	}
	all := x.dirty
	x.dirty = len(x.chunks)
	x.frames(2 * depth) // every buffer has been written
	x.dirty = all
	x.frames(2 * depth) // and what is not is settled

	c.Ops = x.written()
	r := &ring{}
	for range depth {
		r.frames = append(r.frames, make([]float32, c.Ops*nineColumns))
	}
	at := 0
	for _, ch := range x.chunks[:x.dirty] {
		for column := range nineColumns {
			at += copy(r.frames[0][at:], cells(ch, column))
		}
	}
	c.Ours = contest.Side{Name: "advance", Sum: x.sum, Run: func(t *contest.Timer, reps int) {
		t.Start()
		x.frames(reps)
		t.Stop()
	}}
	c.Raw = &contest.Side{Name: "copy", Sum: func() uint64 { return sumBits(r.frames[r.at]) },
		Run: func(t *contest.Timer, reps int) {
			t.Start()
			r.copies(reps)
			t.Stop()
		}}
	return c
}
