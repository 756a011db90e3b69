package views_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// cursorCount is how many entities the benchmarks of cursors go round: as many as fit the caches
// of a core with their views.
const cursorCount = 1024

type placeView struct {
	Pos *Position
}

// kept is what a program keeps that does without views: the pointer, and a word that says whether
// it is good.
type kept struct {
	pos  *Position
	word *atomic.Uint64
	want uint64
}

// get is the yardstick as a call: what no method that does the same could do for less.
//
//go:noinline
func (k *kept) get() (*Position, error) {
	if k.word.Load() == k.want {
		return k.pos, nil
	}
	return nil, registry.ErrStale
}

//go:noinline
func pushKept(all []*kept) {
	for _, k := range all {
		if k.word.Load() == k.want {
			k.pos.X++
		}
	}
}

//go:noinline
func pushKeptByCall(all []*kept) {
	for _, k := range all {
		if p, err := k.get(); err == nil {
			p.X++
		}
	}
}

//go:noinline
func pushViews(all []*views.Entity[placeView], a registry.Access) {
	for _, e := range all {
		if v, err := e.Get(a); err == nil {
			v.Pos.X++
		}
	}
}

//go:noinline
func pushFields(all []*views.Field[float64], a registry.Access) {
	for _, f := range all {
		_ = f.Add(a, 1)
	}
}

//go:noinline
func pushCells(cells *registry.Cells[Position], all []handles.Local, a registry.Access) {
	for _, h := range all {
		if p, ok := cells.Get(a, h); ok {
			p.X++
		}
	}
}

// crowd is the same entities in all the ways that the benchmarks compare.
type crowd struct {
	*world
	hs     []handles.Local
	kept   []*kept
	views  []*views.Entity[placeView]
	fields []*views.Field[float64]
	cells  *registry.Cells[Position]
}

func newCrowd(b *testing.B, n int) *crowd {
	w := newWorld(b)
	c := &crowd{world: w, hs: w.spawn(class[Mover](w), n)}
	words := make([]atomic.Uint64, n)
	for i, h := range c.hs {
		e, err := views.NewEntity[placeView](w.Registry, h)
		require.NoError(b, err)
		f, err := views.NewField[Position, float64](w.Registry, h, "X")
		require.NoError(b, err)
		c.views, c.fields = append(c.views, e), append(c.fields, f)
		c.kept = append(c.kept, &kept{&Position{}, &words[i], 0})
	}
	var err error
	c.cells, err = registry.NewCells[Position](w.Registry)
	require.NoError(b, err)
	return c
}

// BenchmarkEntityGet compares views of entities that stay where they are with pointers that are
// kept beside a word to look at: once as a call for each entity, as Get is one, and once with the
// look written out in the loop, which says what the call costs.
func BenchmarkEntityGet(b *testing.B) {
	c := newCrowd(b, cursorCount)
	in := func(b *testing.B, a registry.Access) {
		b.Run("to=call", func(b *testing.B) {
			compare(b, cursorCount, func() { pushKeptByCall(c.kept) }, func() { pushViews(c.views, a) })
		})
		b.Run("to=loop", func(b *testing.B) {
			compare(b, cursorCount, func() { pushKept(c.kept) }, func() { pushViews(c.views, a) })
		})
	}
	b.Run("frame", func(b *testing.B) { c.frame(func(f *registry.Frame) { in(b, f) }) })
	b.Run("window", func(b *testing.B) { c.window(func(w *registry.Window) { in(b, w) }) })
}

// BenchmarkEntityFollow is the first Get of a frame, which fills the view in, beside Cells.Get.
func BenchmarkEntityFollow(b *testing.B) {
	c := newCrowd(b, cursorCount)
	c.frame(func(f *registry.Frame) {
		// Two accesses to one frame: each is a new one to views that were filled in by the other.
		turns, i := [2]*embedding{{f, 0}, {f, 1}}, 0
		compare(b, cursorCount, func() { pushCells(c.cells, c.hs, f) }, func() {
			i++
			pushViews(c.views, turns[i&1])
		})
	})
}

// BenchmarkFieldAdd adds through fields of entities that stay where they are, beside Cells.Get.
func BenchmarkFieldAdd(b *testing.B) {
	c := newCrowd(b, cursorCount)
	c.frame(func(f *registry.Frame) {
		compare(b, cursorCount, func() { pushCells(c.cells, c.hs, f) }, func() { pushFields(c.fields, f) })
	})
}

// BenchmarkFieldAdvance goes through all entities with one field, beside Cells.Get on all.
func BenchmarkFieldAdvance(b *testing.B) {
	c := newCrowd(b, cursorCount)
	field := c.fields[0]
	c.frame(func(f *registry.Frame) {
		compare(b, cursorCount, func() { pushCells(c.cells, c.hs, f) }, func() {
			for _ = field.Bind(0); field.Advance(f); {
				_ = field.Add(f, 1)
			}
		})
	})
}

// embedding is an Access as package logic makes them.
type embedding struct {
	*registry.Frame
	_ float64 // time
}
