package archetype_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

type (
	benchPos struct{ X, Y float64 }
	benchVel struct{ X, Y float64 }
)

var scales = []int{1 << 10, 16 << 10, 1 << 20}

// benchStore has one archetype of two 16-byte columns, with n slots taken.
func benchStore(b *testing.B, n int) (*archetype.Store, *archetype.Archetype) {
	s := archetype.NewSchema()
	comps, err := s.RegisterAll([]reflect.Type{reflect.TypeFor[benchPos](), reflect.TypeFor[benchVel]()})
	if err != nil {
		b.Fatal(err)
	}
	store := archetype.NewStore(s, 0)
	a := store.Archetype(0, archetype.Signature{}.With(comps[0].ID).With(comps[1].ID), "bench", 0)
	for range n {
		c, slot, _ := a.Take()
		c.Entities()[slot] = 1
		c.SetBit(slot)
	}
	return store, a
}

// perSlot reports the time of one slot; a step of the loop handles n.
func perSlot(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/slot")
}

// BenchmarkFresh takes n slots that were never taken and takes it back, chunks and all.
func BenchmarkFresh(b *testing.B) {
	for _, n := range scales {
		b.Run(fmt.Sprintf("slots=%d", n), func(b *testing.B) {
			_, a := benchStore(b, 0)
			for b.Loop() {
				takeAll(a, n)
				a.Clear()
			}
			perSlot(b, n)
		})
	}
}

// BenchmarkReuse gives n slots back and takes n slots, in order and shuffled, beside a bare
// prototype that does the same: one archetype, two columns known at compile time, bits.
// "x" is the median over the rounds of the time it takes times that of the prototype.
func BenchmarkReuse(b *testing.B) {
	for _, order := range []string{"ordered", "shuffled"} {
		for _, n := range scales {
			b.Run(fmt.Sprintf("%s/slots=%d", order, n), func(b *testing.B) {
				store, a := benchStore(b, n)
				places := make([]uint32, 0, n)
				for _, c := range a.Chunks() {
					for slot := range c.Allocated() {
						places = append(places, c.Base()+uint32(slot))
					}
				}
				bare := newBareStore(n)
				barePlaces := make([]uint32, n)
				for i := range barePlaces {
					barePlaces[i] = uint32(i)
				}
				if order == "shuffled" {
					rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) {
						places[i], places[j] = places[j], places[i]
						barePlaces[i], barePlaces[j] = barePlaces[j], barePlaces[i]
					})
				}
				b.ReportAllocs()
				var reclaim, take ratios
				for b.Loop() {
					reclaim.add(n, func() { bareReclaimAll(bare, barePlaces) }, func() { reclaimAll(store, places) })
					take.add(n, func() { bareTakeAll(bare, n) }, func() { takeAll(a, n) })
				}
				reclaim.report(b, "reclaim")
				take.report(b, "take")
			})
		}
	}
}

// ratios collects the times of a yardstick and of what is measured with it, turn by turn.
type ratios struct{ ratio, ns []float64 }

func (r *ratios) add(n int, yardstick, candidate func()) {
	start := time.Now()
	yardstick()
	middle := time.Now()
	candidate()
	took := float64(time.Since(middle))
	r.ratio = append(r.ratio, took/float64(middle.Sub(start)))
	r.ns = append(r.ns, took/float64(n))
}

func (r *ratios) report(b *testing.B, name string) {
	slices.Sort(r.ratio)
	slices.Sort(r.ns)
	b.ReportMetric(r.ratio[len(r.ratio)/2], name+"-x")
	b.ReportMetric(r.ns[len(r.ns)/2], name+"-ns/slot")
}

// bareStore is the least that takes slots lowest first and gives them back zeroed.
type bareStore struct {
	chunks []*bareChunk
	hole   int // no chunk below it has holes
}

type bareChunk struct {
	pos       [1024]benchPos
	vel       [1024]benchVel
	entities  [1024]handles.Local
	active    [16]uint64
	holes     [16]uint64
	holeWords uint64
}

func newBareStore(n int) *bareStore {
	s := &bareStore{}
	for range (n + 1023) / 1024 {
		s.chunks = append(s.chunks, &bareChunk{})
	}
	return s
}

//go:noinline
func bareTakeAll(s *bareStore, n int) {
	for range n {
		for s.chunks[s.hole].holeWords == 0 {
			s.hole++
		}
		c := s.chunks[s.hole]
		w := bits.TrailingZeros64(c.holeWords) & 15
		i := bits.TrailingZeros64(c.holes[w])
		if c.holes[w] &= c.holes[w] - 1; c.holes[w] == 0 {
			c.holeWords &= c.holeWords - 1
		}
		c.entities[w<<6|i&63] = 1
		c.active[w] |= 1 << i
	}
}

//go:noinline
func bareReclaimAll(s *bareStore, places []uint32) {
	for _, p := range places {
		c, slot := s.chunks[p>>10], p&1023
		c.active[slot>>6] &^= 1 << (slot & 63)
		c.pos[slot], c.vel[slot], c.entities[slot] = benchPos{}, benchVel{}, 0
		c.holes[slot>>6] |= 1 << (slot & 63)
		c.holeWords |= 1 << (slot >> 6)
		s.hole = min(s.hole, int(p>>10))
	}
}

// BenchmarkUndo takes n slots and takes that back one by one.
func BenchmarkUndo(b *testing.B) {
	const n = 1 << 10
	_, a := benchStore(b, 64)
	type taken struct {
		c    *archetype.Chunk
		slot uint32
	}
	var out [n]taken
	b.ReportAllocs()
	for b.Loop() {
		for i := range out {
			c, slot, _ := a.Take()
			out[i] = taken{c, slot}
		}
		for i := n - 1; i >= 0; i-- {
			a.Untake(out[i].c, out[i].slot, true)
		}
	}
	perSlot(b, n)
}

// BenchmarkCopyShared moves slots between archetypes of two and three columns.
func BenchmarkCopyShared(b *testing.B) {
	_, a := benchStore(b, 1<<10)
	c := a.Chunks()[0]
	n := c.Slots()
	b.ReportAllocs()
	for b.Loop() {
		for slot := range uint32(n) {
			a.CopyShared(c, slot, c, uint32(n)-1-slot)
		}
	}
	perSlot(b, n)
}

// BenchmarkCopier moves and zeroes one cell of each kind.
func BenchmarkCopier(b *testing.B) {
	for _, typ := range []reflect.Type{
		arrayType(8), arrayType(16), arrayType(24), arrayType(100),
		reflect.TypeFor[string](), reflect.TypeFor[nested](), reflect.TypeFor[record](),
	} {
		b.Run(typ.String(), func(b *testing.B) {
			c := archetype.NewCopier(typ)
			dst, src := reflect.New(typ).UnsafePointer(), reflect.New(typ).UnsafePointer()
			for b.Loop() {
				copyMany(&c, dst, src)
			}
			perSlot(b, copies)
		})
	}
}

const copies = 1000

//go:noinline
func copyMany(c *archetype.Copier, dst, src unsafe.Pointer) {
	for range copies {
		c.Copy(dst, src)
	}
}

//go:noinline
func takeAll(a *archetype.Archetype, n int) {
	for range n {
		c, slot, _ := a.Take()
		c.Entities()[slot] = 1
		c.SetBit(slot)
	}
}

//go:noinline
func reclaimAll(s *archetype.Store, places []uint32) {
	for _, p := range places {
		c := s.ChunkAt(p)
		c.ClearBit(p - c.Base())
		c.Archetype().Reclaim(c, p-c.Base())
	}
}
