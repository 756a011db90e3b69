package work

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// lookups go from a handle to the entity's record, in random order, while another goroutine writes
// what is looked up: entities that gain and lose a component here, entries that are stored there.
func lookups() []*contest.Workload {
	return []*contest.Workload{{Name: "lookup beside a writer", Sizes: standard(), Bytes: perEntity(400), Open: openLookups,
		Target: contest.Target{Peer: 0.15}}}
}

//go:noinline
func resolveAll(r *registry.Registry, hs []handles.Local) (found uint64) {
	for _, h := range hs {
		if _, err := r.Resolve(h); err == nil {
			found++
		}
	}
	return found
}

//go:noinline
func loadAll(m *xsync.MapOf[handles.Local, handles.Global], hs []handles.Local) (found uint64) {
	for _, h := range hs {
		if _, ok := m.Load(h); ok {
			found++
		}
	}
	return found
}

//go:noinline
func wordsAll(words []atomic.Uint64, hs []handles.Local) (found uint64) {
	for _, h := range hs {
		if uint32(words[h.Index()].Load()>>32) == h.Generation() {
			found++
		}
	}
	return found
}

// beside is a side that looks everything up while a writer works. write is one step of the writer,
// which it does again and again.
func beside(name string, look func() uint64, write func(fault *contest.Fault, step int)) contest.Side {
	var found uint64
	return contest.Side{Name: name, Sum: func() uint64 { return found },
		Run: func(t *contest.Timer, reps int) {
			var (
				over  atomic.Bool
				fault contest.Fault
				began = make(chan struct{})
				done  = make(chan struct{})
			)
			go func() {
				defer close(done)
				for step := 0; !over.Load(); step++ {
					write(&fault, step)
					if step == 0 {
						close(began)
					}
				}
			}()
			<-began
			t.Start()
			for range reps {
				found = look()
			}
			t.Stop()
			over.Store(true)
			<-done
			t.Check(fault.Err)
		}}
}

// written is how many entities one step of a writer touches.
const written = 64

func openLookups(n int) *contest.Contest {
	c := &contest.Contest{Ops: n}
	w := newWorld(&c.Fault, n)
	cells := class[Still](&c.Fault, w)
	_, err := registry.RegisterComponent[Velocity](w.Registry)
	c.Check(err)
	var hs []handles.Local
	w.window(&c.Fault, func(win *registry.Window) {
		hs, err = cells.SpawnBatch(win, n, nil)
		c.Check(err)
	})
	m := xsync.NewMapOf[handles.Local, handles.Global](xsync.WithPresize(n))
	words := make([]atomic.Uint64, n+1)
	for _, h := range hs {
		g, err := w.Resolve(h)
		c.Check(err)
		m.Store(h, g)
		if int(h.Index()) < len(words) {
			words[h.Index()].Store(uint64(h.Generation()) << 32)
		}
	}
	// part is what a step writes: neighbours, going round.
	part := func(step int) []handles.Local {
		parts := max(1, n/written)
		at := step % parts * written
		return hs[at:min(n, at+written)]
	}
	mixed := inOrder(hs, order(n))
	c.Ours = beside("Resolve", func() uint64 { return resolveAll(w.Registry, mixed) },
		func(fault *contest.Fault, step int) {
			w.window(fault, func(win *registry.Window) {
				registry.AddBatch(win, part(step), Velocity{3, 4})
				registry.RemoveBatch[Velocity](win, part(step))
			})
		})
	c.Peers = []contest.Side{beside("xsync.MapOf", func() uint64 { return loadAll(m, mixed) },
		func(_ *contest.Fault, step int) {
			for _, h := range part(step) {
				m.Store(h, handles.NewGlobal(uint32(step), 1))
			}
		})}
	raw := beside("atomic words", func() uint64 { return wordsAll(words, mixed) },
		func(_ *contest.Fault, step int) {
			for _, h := range part(step) {
				words[h.Index()].Store(uint64(h.Generation())<<32 | uint64(uint32(step)))
			}
		})
	c.Raw = &raw
	return c
}
