package archetype_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
)

// nine are 36 bytes in nine columns.
type nine struct{ A, B, C, D, E, F, G, H, I float32 }

const advanced = 100_000 // entities

// advancing is a store of entities with 36 bytes, beside the same bytes in plain slices: one for each
// frame of the ring, so that both walk through as much memory.
type advancing struct {
	store  *archetype.Store
	chunks []*archetype.Chunk
	plain  [][]byte
	at     int
}

func newAdvancing(b *testing.B, tier archetype.Tier, frames int) *advancing {
	s := archetype.NewSchema()
	c, err := s.Register(reflect.TypeFor[nine](), archetype.Options{Tier: tier, Split: true})
	if err != nil {
		b.Fatal(err)
	}
	x := &advancing{store: archetype.NewStore(s, 16)}
	a := x.store.Archetype(0, archetype.Signature{}.With(c.ID), "nine", 0)
	for range advanced {
		a.Take()
	}
	x.chunks = a.Chunks()
	for range frames {
		plain := make([]byte, advanced*36)
		for i := range plain {
			plain[i] = byte(i)
		}
		x.plain = append(x.plain, plain)
	}
	for range 2 * frames { // every buffer has been written
		x.frame(len(x.chunks))
	}
	for range 2 * frames {
		x.frame(0)
	}
	return x
}

// frame ends a frame in which all columns of some chunks were written, and begins the next.
//
//go:noinline
func (x *advancing) frame(dirty int) {
	for _, c := range x.chunks[:dirty] {
		for column := range 9 {
			c.Mark(column)
		}
	}
	x.store.Close()
	x.store.Advance(x.store.Frame()+1, 1, nil)
}

// copy is the yardstick: as many bytes, from one frame's buffer to the next one's.
//
//go:noinline
func (x *advancing) copy() {
	next := (x.at + 1) % len(x.plain)
	copy(x.plain[next], x.plain[x.at])
	x.at = next
}

// BenchmarkAdvance goes from frame to frame with all chunks written, the same hundredth of them, and none,
// and copies as many bytes as all of them have in turn with it. ratio is the median of the ratios of the pairs.
func BenchmarkAdvance(b *testing.B) {
	for _, tier := range []struct {
		tier   archetype.Tier
		frames int
	}{{archetype.Volatile, 3}, {archetype.Temporal, 16}} {
		for _, part := range []struct {
			name   string
			dirty  func(chunks int) int
			frames int // for each copy: what is short is not measured with the caches that a copy leaves
		}{
			{"all", func(n int) int { return n }, 1},
			{"hundredth", func(n int) int { return (n + 99) / 100 }, 100},
			{"settled", func(int) int { return 0 }, 100},
		} {
			b.Run(fmt.Sprintf("%s/%s", tier.tier, part.name), func(b *testing.B) {
				x := newAdvancing(b, tier.tier, tier.frames)
				dirty := part.dirty(len(x.chunks))
				for range 2 * tier.frames {
					x.frame(dirty)
					x.copy()
				}
				b.ReportAllocs()
				var ratios, times, copies []float64
				for b.Loop() {
					begin := time.Now()
					for range part.frames {
						x.frame(dirty)
					}
					took := time.Since(begin) / time.Duration(part.frames)
					begin = time.Now()
					x.copy()
					plain := time.Since(begin)
					ratios = append(ratios, float64(took)/float64(plain))
					times, copies = append(times, float64(took)), append(copies, float64(plain))
				}
				for _, m := range []struct {
					name   string
					values []float64
				}{{"ratio", ratios}, {"ns/frame", times}, {"ns/copy", copies}} {
					slices.Sort(m.values)
					b.ReportMetric(m.values[len(m.values)/2], m.name)
				}
			})
		}
	}
}
