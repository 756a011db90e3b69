package registry_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// crowd is one owner and fifteen others on one registry. What each sees goes into maps that
// say at the end whether it all fits together.
type crowd struct {
	*world
	stop   atomic.Bool
	public [1024]atomic.Uint64 // handles that everybody may use

	issued  sync.Map // handle -> true: given out once
	wins    sync.Map // handle -> true: its one destroyer said nil
	records sync.Map // Global -> the handle it was seen to be of
	names   sync.Map // Net -> the handle it was seen to be of
	faults  atomic.Int64
	fault   sync.Map

	// Owner only.
	born, died map[handles.Local]bool
	spared     map[handles.Local]bool // may have died by Reset or with a parent: nobody was told nil
	resetting  bool
}

// wrong keeps a fault; tests may fail only on their own goroutine.
func (c *crowd) wrong(format string, args ...any) {
	if c.faults.Add(1) <= 8 {
		c.fault.Store(fmt.Sprintf(format, args...), true)
	}
}

func (c *crowd) issue(h handles.Local) {
	if _, twice := c.issued.LoadOrStore(h, true); twice {
		c.wrong("%v was issued twice", h)
	}
}

func (c *crowd) win(h handles.Local) {
	if _, twice := c.wins.LoadOrStore(h, true); twice {
		c.wrong("%v was destroyed twice", h)
	}
}

func (c *crowd) publish(h handles.Local, rnd *rand.Rand) {
	c.public[rnd.IntN(len(c.public))].Store(uint64(h))
}

func (c *crowd) pick(rnd *rand.Rand) handles.Local {
	return handles.Local(c.public[rnd.IntN(len(c.public))].Load())
}

// other is what a goroutine does that owns nothing.
func (c *crowd) other(seed uint64) {
	rnd := rand.New(rand.NewPCG(4, seed))
	var mine []handles.Local
	var observer *registry.Observer
	heard := new(atomic.Int64)
	for n := 0; !c.stop.Load(); n++ {
		h := c.pick(rnd)
		switch rnd.IntN(16) {
		case 0:
			h, err := c.r.Reserve()
			if err != nil {
				if err != registry.ErrExhausted {
					c.wrong("Reserve: %v", err)
				}
				break
			}
			c.issue(h)
			mine = append(mine, h)
			c.publish(h, rnd)
		case 1:
			switch err := c.r.Destroy(h); err {
			case nil:
				c.win(h)
				if c.r.Alive(h) {
					c.wrong("%v is alive after its death", h)
				}
			case registry.ErrStale, registry.ErrInvalidHandle:
			default:
				c.wrong("Destroy: %v", err)
			}
		case 2, 3, 4:
			if g, err := c.r.Resolve(h); err == nil {
				if of, known := c.records.LoadOrStore(g, h); known && of != h {
					c.wrong("record %v is of %v and %v", g, of, h)
				}
			}
		case 5, 6, 7:
			if name, err := c.r.NetOf(h); err == nil && name != 0 {
				if of, known := c.names.LoadOrStore(name, h); known && of != h {
					c.wrong("name %v is of %v and %v", name, of, h)
				}
				if back, err := c.r.ResolveNet(name); err == nil && back != h {
					c.wrong("%v names %v and %v", name, h, back)
				}
				if back, err := c.r.ResolveWire(name.Wire()); err == nil {
					if now, err := c.r.NetOf(back); err == nil && now != 0 && now.Wire() != name.Wire() {
						c.wrong("wire %x names %v, which is %v", name.Wire(), back, now)
					}
				}
			}
		case 8:
			s := c.r.Stats()
			sum, allocated := 0, 0
			for _, a := range s.Archetypes {
				sum, allocated = sum+a.Live, allocated+a.Allocated
			}
			if sum != s.Live || allocated != s.Allocated || s.Live+s.Tombstoned > s.Allocated ||
				s.Inactive > s.Live || s.Live < 0 || s.Local.Pending < 0 {
				c.wrong("impossible statistics: %+v", s)
			}
		case 9:
			c.r.Obituary(h)
			c.r.AliveNet(handles.Net(h))
			c.r.CacheCap()
		case 10:
			if n%64 != 0 {
				break
			}
			if observer != nil {
				if err := observer.Remove(); err != nil {
					c.wrong("Remove: %v", err)
				}
				observer = nil
				break
			}
			var err error
			observer, err = c.r.Observe(registry.EventKind(rnd.IntN(5)), func(_ *registry.Frame, es []registry.Event) {
				heard.Add(int64(len(es)))
			})
			if err != nil {
				c.wrong("Observe: %v", err)
			}
		default:
			c.r.Alive(h)
		}
		if len(mine) > 20 { // reservations must not fill the registry
			if c.r.Destroy(mine[0]) == nil {
				c.win(mine[0])
			}
			mine = mine[1:]
		}
	}
}

// window is what the owner does in one window. What it undoes or keeps is known after it.
func (c *crowd) window(rnd *rand.Rand) {
	fail := rnd.IntN(5) == 0
	var won, issued []handles.Local
	err := c.r.Update(func(w *registry.Window) error {
		won, issued = won[:0], issued[:0]
		for range 40 {
			h := c.pick(rnd)
			switch rnd.IntN(12) {
			case 0, 1:
				if n, err := c.soldiers.Spawn(w, soldier{}); err == nil {
					issued = append(issued, n)
					_ = registry.Set(w, n, self{n})
					c.publish(n, rnd)
				}
			case 2:
				hs, err := c.scouts.SpawnBatch(w, rnd.IntN(30), nil)
				if err == nil {
					issued = append(issued, hs...)
					for _, n := range hs {
						_ = registry.Set(w, n, self{n})
						c.publish(n, rnd)
					}
				}
			case 3, 4:
				_ = c.soldiers.SpawnReserved(w, h, soldier{Self: self{h}})
			case 5:
				if w.Destroy(h) == nil {
					won = append(won, h)
				}
			case 6:
				_ = registry.Add(w, h, frozen{})
			case 7:
				_ = registry.Remove[health](w, h)
			case 8:
				_, _ = w.AssignNet(h)
			case 9:
				_ = registry.SetActive(w, h, rnd.IntN(2) == 0)
			case 10:
				if p := c.pick(rnd); rnd.IntN(8) == 0 && registry.SetParent(w, h, p) == nil {
					c.spared[h] = true
				}
			case 11:
				if p, err := registry.Get[self](w, h); err == nil && p.H != h {
					c.wrong("%v holds the data of %v", h, p.H)
				}
			}
		}
		if fail {
			return errPlanned
		}
		return nil
	})
	if err != nil && err != errPlanned {
		c.wrong("Update: %v", err)
	}
	for _, h := range issued {
		c.issue(h)
	}
	if !fail {
		for _, h := range won {
			c.win(h)
		}
	}
	if rnd.IntN(3) == 0 {
		c.reclaim(rnd)
	}
}

func (c *crowd) reclaim(rnd *rand.Rand) {
	err := c.r.Update(func(w *registry.Window) error {
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		if rnd.IntN(50) == 0 {
			c.resetting = true
			return w.Reset()
		}
		return nil
	})
	c.resetting = false
	if err != nil {
		c.wrong("Update: %v", err)
	}
}

func TestSixteenGoroutinesAgree(t *testing.T) {
	const windows = 300
	least, most := 20, 2*time.Second // for a slow machine, or the race detector
	if testing.Short() {
		least, most = 5, time.Second/2
	}
	for _, cfg := range []registry.Config{{MaxEntities: 3000}, {}, {Deterministic: true}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			c := &crowd{
				world: newWorld(t, cfg), born: map[handles.Local]bool{},
				died: map[handles.Local]bool{}, spared: map[handles.Local]bool{},
			}
			c.observe(registry.Spawned, func(_ *registry.Frame, es []registry.Event) {
				for _, e := range es {
					if c.born[e.Entity] {
						c.wrong("%v was born twice", e.Entity)
					}
					c.born[e.Entity] = true
				}
			})
			c.observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) {
				for _, e := range es {
					if c.died[e.Entity] || !c.born[e.Entity] {
						c.wrong("%v died twice, or unborn", e.Entity)
					}
					c.died[e.Entity] = true
					if c.resetting {
						c.spared[e.Entity] = true
					}
				}
			})
			var wg sync.WaitGroup
			for i := range 15 {
				wg.Go(func() { c.other(uint64(i)) })
			}
			rnd := rand.New(rand.NewPCG(4, 99))
			start := time.Now()
			for n := range windows {
				c.window(rnd)
				if n > least && time.Since(start) > most {
					break
				}
			}
			c.stop.Store(true)
			wg.Wait()
			c.update(func(*registry.Window) {})
			c.fault.Range(func(f, _ any) bool {
				t.Error(f)
				return true
			})
			require.NoError(t, c.r.Verify())
			s := c.r.Stats()
			require.Equal(t, len(c.born)-len(c.died), s.Live)
			require.NotZero(t, len(c.died))
			for h := range c.born {
				_, won := c.wins.Load(h)
				alive := c.r.Alive(h)
				require.NotEqual(t, alive, c.died[h], "%v", h)
				require.False(t, alive && won, "%v", h)
				require.True(t, !c.died[h] || won || c.spared[h], "%v died, and nobody was told so", h)
			}
			c.update(func(w *registry.Window) { require.NoError(t, w.Reset()) })
			c.recycle()
			s = c.r.Stats()
			require.Zero(t, s.Live+s.Tombstoned+s.Local.Issued+s.Local.Pending+s.Net.Issued+s.Global.Issued)
		})
	}
}
