package defrag_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	pos   struct{ X, Y float64 }
	vel   struct{ X, Y float64 }
	mover struct {
		Pos pos
		Vel vel
	}
)

const (
	benchEntities = 1_000_000
	benchLiving   = benchEntities / 10
)

// thinned is a registry of a million entities of which a random tenth is left.
func thinned(b *testing.B, seed uint64) *registry.Registry {
	r, err := registry.New(registry.Config{})
	require.NoError(b, err)
	class, err := registry.RegisterClass[mover](r)
	require.NoError(b, err)
	require.NoError(b, r.Update(func(w *registry.Window) error {
		hs, err := class.SpawnBatch(w, benchEntities, nil)
		rng := rand.New(rand.NewPCG(seed, 1))
		rng.Shuffle(len(hs), func(i, k int) { hs[i], hs[k] = hs[k], hs[i] })
		w.DestroyBatch(hs[benchLiving:])
		w.ProcessDeferredDestructions()
		return err
	}))
	return r
}

// plainCopy is what a compaction cannot do without: the cells and the handle of each mover copied, and
// one locked operation.
type plainCopy struct {
	pos   []pos
	vel   []vel
	self  []handles.Local
	words []atomic.Uint64
	moves []registry.Move
}

//go:noinline
func (p *plainCopy) run() {
	for _, m := range p.moves {
		w := &p.words[m.Entity.Index()]
		w.CompareAndSwap(w.Load(), uint64(m.New))
		p.pos[m.New], p.vel[m.New], p.self[m.New] = p.pos[m.Old], p.vel[m.Old], p.self[m.Old]
	}
}

// evict leaves the caches to somebody else's data, so that both sides begin alike.
//
//go:noinline
func evict(other []byte) {
	for i := 0; i < len(other); i += 64 {
		other[i]++
	}
}

// BenchmarkCompact compares a full compaction with a plain copy of the same cells, by turns.
func BenchmarkCompact(b *testing.B) {
	var ratios, each []float64
	cold := make([]byte, 128<<20)
	for b.Loop() {
		b.StopTimer()
		r := thinned(b, uint64(len(ratios)))
		d, err := defrag.New(r, defrag.Config{})
		require.NoError(b, err)
		moves := make([]registry.Move, 0, benchLiving)
		var rep defrag.Report
		_, err = r.OnMove(func(ms []registry.Move) { moves = append(moves, ms...) })
		require.NoError(b, err)
		p := &plainCopy{
			pos: make([]pos, r.CacheCap()), vel: make([]vel, r.CacheCap()), self: make([]handles.Local, r.CacheCap()),
			words: make([]atomic.Uint64, benchEntities+1),
		}
		for i := range p.pos { // so that no page is touched for the first time below
			p.pos[i].X, p.vel[i].X, p.self[i] = 1, 1, 1
		}
		for i := range p.words {
			p.words[i].Store(1)
		}
		evict(cold)
		b.StartTimer()
		require.NoError(b, r.Update(func(w *registry.Window) error { rep, err = d.Run(w); return err }))
		b.StopTimer()
		require.Len(b, moves, rep.Moved)
		p.moves = moves
		evict(cold)
		began := time.Now()
		p.run()
		plain := time.Since(began)
		ratios = append(ratios, float64(rep.Time)/float64(plain))
		each = append(each, float64(rep.Time)/float64(rep.Moved))
		b.StartTimer()
	}
	b.ReportMetric(median(ratios), "of-plain-copy")
	b.ReportMetric(median(each), "ns/move")
	b.ReportMetric(0, "ns/op")
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}
