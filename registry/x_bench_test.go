package registry_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	benchPos struct{ X, Y float64 }
	benchVel struct{ X, Y float64 }
	benchBox struct {
		Pos benchPos
		Vel benchVel
	}
)

// prototype is the yardstick: the least that an archetype of two columns with handles any
// goroutine can check has to do. One atomic local word, written with one locked operation
// for each entity and step; an Active bit; the lowest free bit is the next slot.
type prototype struct {
	pos    [][1024]benchPos
	vel    [][1024]benchVel
	ent    [][1024]uint64
	active [][16]uint64
	free   [][16]uint64
	lowest int // no chunk below it has a free bit
	words  []atomic.Uint64
	gen    []uint32
	ids    []uint32 // free indices
	dying  []uint64
}

func newPrototype(n int) *prototype {
	chunks := n/1024 + 1
	p := &prototype{
		pos: make([][1024]benchPos, chunks), vel: make([][1024]benchVel, chunks), ent: make([][1024]uint64, chunks),
		active: make([][16]uint64, chunks), free: make([][16]uint64, chunks),
		words: make([]atomic.Uint64, n+2), gen: make([]uint32, n+2),
	}
	for c := range p.free {
		for w := range p.free[c] {
			p.free[c][w] = ^uint64(0)
		}
	}
	for i := n; i > 0; i-- {
		p.ids = append(p.ids, uint32(i))
	}
	return p
}

//go:noinline
func (p *prototype) spawn(b benchBox) uint64 {
	c := p.lowest
	w := 0
	for {
		for w = 0; w < 16 && p.free[c][w] == 0; w++ {
		}
		if w < 16 {
			break
		}
		c++
		p.lowest = c
	}
	bit := bits.TrailingZeros64(p.free[c][w])
	p.free[c][w] &^= 1 << bit
	slot := w<<6 | bit
	id := p.ids[len(p.ids)-1]
	p.ids = p.ids[:len(p.ids)-1]
	p.gen[id]++
	h := uint64(id)<<32 | uint64(p.gen[id])
	p.words[id].Store(uint64(p.gen[id])<<32 | 1<<30 | uint64(c<<10|slot))
	p.pos[c][slot] = b.Pos
	p.vel[c][slot] = b.Vel
	p.ent[c][slot] = h
	p.active[c][w] |= 1 << bit
	return h
}

//go:noinline
func (p *prototype) destroy(h uint64) bool {
	w := &p.words[h>>32]
	old := w.Load()
	if uint32(old>>32) != uint32(h) || old>>30&3 != 1 || !w.CompareAndSwap(old, old&^(3<<30)|2<<30) {
		return false
	}
	place := int(old & (1<<30 - 1))
	p.active[place>>10][place&1023>>6] &^= 1 << (place & 63)
	p.dying = append(p.dying, h)
	return true
}

//go:noinline
func (p *prototype) reclaim() {
	for _, h := range p.dying {
		id := uint32(h >> 32)
		place := int(p.words[id].Load() & (1<<30 - 1))
		p.words[id].Store(uint64(uint32(h)) << 32)
		c, slot := place>>10, place&1023
		p.pos[c][slot], p.vel[c][slot], p.ent[c][slot] = benchPos{}, benchVel{}, 0
		p.free[c][slot>>6] |= 1 << (slot & 63)
		p.lowest = min(p.lowest, c)
		p.ids = append(p.ids, id)
	}
	p.dying = p.dying[:0]
}

// bench is a registry of the same size with one class.
type bench struct {
	r     *registry.Registry
	boxes *registry.Class[benchBox]
	hs    []handles.Local
}

func newBench(n int) *bench {
	r, _ := registry.New(registry.Config{})
	boxes, _ := registry.RegisterClass[benchBox](r)
	return &bench{r: r, boxes: boxes, hs: make([]handles.Local, n)}
}

//go:noinline
func (k *bench) spawn(w *registry.Window) {
	for i := range k.hs {
		k.hs[i], _ = k.boxes.Spawn(w, benchBox{Pos: benchPos{1, 2}, Vel: benchVel{3, 4}})
	}
}

//go:noinline
func (k *bench) spawnBatch(w *registry.Window) {
	k.hs, _ = k.boxes.SpawnBatch(w, len(k.hs), func(i int, e *benchBox) {
		e.Pos, e.Vel = benchPos{1, 2}, benchVel{3, 4}
	})
}

//go:noinline
func (k *bench) destroy(w *registry.Window) {
	for _, h := range k.hs {
		_ = w.Destroy(h)
	}
	w.ProcessDeferredDestructions()
}

// timed gives the nanoseconds an entity that fn takes.
func timed(n int, fn func()) float64 {
	start := time.Now()
	fn()
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func median(x []float64) float64 {
	sort.Float64s(x)
	return x[len(x)/2]
}

// BenchmarkLifecycle compares spawn, batch spawn and destroy with reclaim with the bare
// prototype, in pairs that alternate; ratios are medians of the pairs. The confirm of the
// indices is not part of what the prototype does, and is timed apart.
func BenchmarkLifecycle(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 20} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			k, p := newBench(n), newPrototype(n)
			ph := make([]uint64, n)
			box := benchBox{Pos: benchPos{1, 2}, Vel: benchVel{3, 4}}
			var spawn, batch, destroy, confirm, pspawn, pdestroy []float64
			pairs := max(15, (1<<14)/n*4)
			round := func(keep bool) {
				reps := max(1, 1<<12/n)
				var s, bt, d, c, ps, pd float64
				for range reps {
					_ = k.r.Update(func(w *registry.Window) error {
						s += timed(n, func() { k.spawn(w) })
						return nil
					})
					ps += timed(n, func() {
						for i := range ph {
							ph[i] = p.spawn(box)
						}
					})
					_ = k.r.Update(func(w *registry.Window) error {
						d += timed(n, func() { k.destroy(w) })
						c += timed(n, func() { w.ConfirmLocalRecycles() })
						return nil
					})
					pd += timed(n, func() {
						for _, h := range ph {
							p.destroy(h)
						}
						p.reclaim()
					})
					_ = k.r.Update(func(w *registry.Window) error {
						bt += timed(n, func() { k.spawnBatch(w) })
						return nil
					})
					_ = k.r.Update(func(w *registry.Window) error {
						k.destroy(w)
						w.ConfirmLocalRecycles()
						return nil
					})
				}
				if keep {
					f := float64(reps)
					spawn, batch, destroy, confirm = append(spawn, s/f), append(batch, bt/f), append(destroy, d/f), append(confirm, c/f)
					pspawn, pdestroy = append(pspawn, ps/f), append(pdestroy, pd/f)
				}
			}
			round(false)
			round(false)
			for range b.N {
				spawn, batch, destroy, confirm, pspawn, pdestroy = nil, nil, nil, nil, nil, nil
				for range pairs {
					round(true)
				}
			}
			ratio := func(x, y []float64) float64 {
				q := make([]float64, len(x))
				for i := range x {
					q[i] = x[i] / y[i]
				}
				return median(q)
			}
			b.ReportMetric(ratio(spawn, pspawn), "spawn-ratio")
			b.ReportMetric(ratio(batch, pspawn), "batch-ratio")
			b.ReportMetric(ratio(destroy, pdestroy), "destroy-ratio")
			b.ReportMetric(median(spawn), "spawn-ns")
			b.ReportMetric(median(batch), "batch-ns")
			b.ReportMetric(median(destroy), "destroy-ns")
			b.ReportMetric(median(confirm), "confirm-ns")
			b.ReportMetric(median(pspawn), "proto-spawn-ns")
			b.ReportMetric(median(pdestroy), "proto-destroy-ns")
		})
	}
}

// BenchmarkHoles compares spawning through the holes that random deaths have left with
// spawning into fresh slots of chunks whose memory was used before: 1M entities, half of
// them dead, in pairs that alternate.
func BenchmarkHoles(b *testing.B) {
	const n = 1 << 20
	k := newBench(n)
	rnd := rand.New(rand.NewPCG(1, 2))
	half := &bench{r: k.r, boxes: k.boxes}
	half.hs = make([]handles.Local, n/2)
	update := func(fn func(w *registry.Window)) {
		_ = k.r.Update(func(w *registry.Window) error { fn(w); return nil })
	}
	reset := func() {
		update(func(w *registry.Window) {
			_ = w.Reset()
			w.ConfirmLocalRecycles()
		})
	}
	var fresh, holes, ratio []float64
	round := func() {
		var f, h float64
		reset()
		update(func(w *registry.Window) { f = timed(n, func() { k.spawn(w) }) })
		rnd.Shuffle(n, func(i, j int) { k.hs[i], k.hs[j] = k.hs[j], k.hs[i] })
		update(func(w *registry.Window) {
			w.DestroyBatch(k.hs[:n/2])
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
		})
		update(func(w *registry.Window) { h = timed(n/2, func() { half.spawn(w) }) })
		fresh, holes, ratio = append(fresh, f), append(holes, h), append(ratio, h/f)
	}
	round()
	for b.Loop() {
		fresh, holes, ratio = nil, nil, nil
		for range 15 {
			round()
		}
	}
	b.ReportMetric(median(ratio), "holes-ratio")
	b.ReportMetric(median(fresh), "fresh-ns")
	b.ReportMetric(median(holes), "holes-ns")
}

// BenchmarkDestroyBatchScattered destroys entities of which no two lie side by side, or in an order that has nothing to do with
// their slots: a batch that is no run costs no more than its steps one by one.
func BenchmarkDestroyBatchScattered(b *testing.B) {
	const n = 1 << 16
	for _, order := range []string{"every second", "shuffled"} {
		b.Run(order, func(b *testing.B) {
			r, err := registry.New(registry.Config{})
			if err != nil {
				b.Fatal(err)
			}
			boxes, err := registry.RegisterClass[benchBox](r)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				err := r.Update(func(w *registry.Window) error {
					hs, err := boxes.SpawnBatch(w, n, nil)
					some := make([]handles.Local, 0, n)
					for i := 0; i < n; i += 2 {
						some = append(some, hs[i])
					}
					if order == "shuffled" {
						rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
					}
					b.StartTimer()
					w.DestroyBatch(some)
					b.StopTimer()
					w.DestroyBatch(hs)
					w.ProcessDeferredDestructions()
					w.ConfirmLocalRecycles()
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
