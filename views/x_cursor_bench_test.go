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

//go:noinline
func sumKept(all []*kept) (sum float64) {
	for _, k := range all {
		if k.word.Load() == k.want {
			sum += k.pos.X
		}
	}
	return sum
}

//go:noinline
func sumViews(all []*views.Entity[placeView], a registry.Access) (sum float64) {
	for _, e := range all {
		if v, err := e.Get(a); err == nil {
			sum += v.Pos.X
		}
	}
	return sum
}

//go:noinline
func sumFields(all []*views.Field[float64], a registry.Access) (sum float64) {
	for _, f := range all {
		if x, err := f.Get(a); err == nil {
			sum += x
		}
	}
	return sum
}

//go:noinline
func sumCells(cells *registry.Cells[Position], all []handles.Local, a registry.Access) (sum float64) {
	for _, h := range all {
		if p, ok := cells.Get(a, h); ok {
			sum += p.X
		}
	}
	return sum
}

// BenchmarkEntityGet compares views of entities that stay where they are with pointers that are
// kept beside a word to look at.
func BenchmarkEntityGet(b *testing.B) {
	w := newWorld(b)
	hs := w.spawn(class[Mover](w), cursorCount)
	words := make([]atomic.Uint64, cursorCount)
	var plainly []*kept
	var seen []*views.Entity[placeView]
	var fields []*views.Field[float64]
	cells, err := registry.NewCells[Position](w.Registry)
	require.NoError(b, err)
	for i, h := range hs {
		e, err := views.NewEntity[placeView](w.Registry, h)
		require.NoError(b, err)
		f, err := views.NewField[Position, float64](w.Registry, h, "X")
		require.NoError(b, err)
		seen, fields = append(seen, e), append(fields, f)
		plainly = append(plainly, &kept{&Position{X: float64(i)}, &words[i], 0})
	}
	var sum float64
	both := func(b *testing.B, a registry.Access) {
		b.Run("view", func(b *testing.B) {
			compare(b, cursorCount, func() { sum += sumKept(plainly) }, func() { sum += sumViews(seen, a) })
		})
		b.Run("field", func(b *testing.B) {
			compare(b, cursorCount, func() { sum += sumKept(plainly) }, func() { sum += sumFields(fields, a) })
		})
		b.Run("cells", func(b *testing.B) { // for comparison: no view at all
			compare(b, cursorCount, func() { sum += sumKept(plainly) }, func() { sum += sumCells(cells, hs, a) })
		})
	}
	b.Run("frame", func(b *testing.B) { w.frame(func(f *registry.Frame) { both(b, f) }) })
	b.Run("window", func(b *testing.B) { w.window(func(win *registry.Window) { both(b, win) }) })
	require.NotZero(b, sum)
}

// BenchmarkEntityFollow is the first Get of a frame, which fills the view in, beside Cells.Get.
func BenchmarkEntityFollow(b *testing.B) {
	w := newWorld(b)
	hs := w.spawn(class[Mover](w), cursorCount)
	cells, err := registry.NewCells[Position](w.Registry)
	require.NoError(b, err)
	var seen []*views.Entity[placeView]
	for _, h := range hs {
		e, err := views.NewEntity[placeView](w.Registry, h)
		require.NoError(b, err)
		seen = append(seen, e)
	}
	var sum float64
	w.frame(func(f *registry.Frame) {
		// Two accesses to one frame: each is a new one to views that were filled in by the other.
		turns, i := [2]*embedding{{f, 0}, {f, 1}}, 0
		compare(b, cursorCount, func() { sum += sumCells(cells, hs, f) }, func() {
			i++
			sum += sumViews(seen, turns[i&1])
		})
	})
	require.NotZero(b, sum)
}

// embedding is an Access as package logic makes them.
type embedding struct {
	*registry.Frame
	delta float64
}
