package pool_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// TestEntityCasesInEveryRegistry has the hostile cases of entity pools in registries of every kind.
func TestEntityCasesInEveryRegistry(t *testing.T) {
	for name, c := range map[string]registry.Config{"plain": {}, "deterministic": {Deterministic: true}, "ring": {TemporalFrames: 8}} {
		t.Run(name, func(t *testing.T) {
			t.Run("handles-1", func(t *testing.T) { despawningIsFinal(t, c) })
			t.Run("pool-2", func(t *testing.T) { pooledNotOurs(t, c) })
			t.Run("pool-9", func(t *testing.T) {
				for _, n := range []int{1, 63, 64, 65, 128} {
					aroundAWord(t, c, n)
				}
			})
			t.Run("pool-10", func(t *testing.T) { pooledDiesAnotherWay(t, c) })
		})
	}
}

func pooledNotOurs(t *testing.T, c registry.Config) {
	q := newQuiver(t, c)
	p, other := q.pool(4, bare), q.pool(4, bare)
	var ours, theirs, plain handles.Local
	q.update(func(w *registry.Window) {
		ours, _ = p.Spawn(w, fired)
		theirs, _ = other.Spawn(w, fired)
		var err error
		plain, err = q.arrows.Spawn(w, fired)
		require.NoError(t, err)
		for _, h := range []handles.Local{0, plain, theirs, other.Slot(2), handles.NewLocal(1<<20, 1), handles.NewLocal(ours.Index(), ours.Generation()+100)} {
			require.ErrorIs(t, p.Despawn(w, h), registry.ErrInvalidHandle, "%v", h)
		}
		require.ErrorIs(t, p.Despawn(w, p.Slot(1)), pool.ErrIdle)
	})
	for _, h := range []handles.Local{ours, theirs, plain} {
		require.True(t, q.r.Alive(h))
	}
	require.Equal(t, used(4, 1, 1, 0), p.Stats())
	require.Equal(t, used(4, 1, 1, 0), other.Stats())
	at, ok := other.SlotOf(theirs)
	require.True(t, ok)
	require.Zero(t, at)
	_, ok = p.SlotOf(theirs)
	require.False(t, ok)
}

// despawningIsFinal cycles the index of one who was despawned, until somebody else has it.
func despawningIsFinal(t *testing.T, c registry.Config) {
	for name, despawn := range map[string]func(q *quiver, p *pool.Entities[arrow], h handles.Local){
		"in a window": func(q *quiver, p *pool.Entities[arrow], h handles.Local) {
			q.update(func(w *registry.Window) { require.NoError(t, p.Despawn(w, h)) })
		},
		"in a frame": func(q *quiver, p *pool.Entities[arrow], h handles.Local) {
			q.frame(func(f *registry.Frame) { require.NoError(t, p.DespawnNow(f, h)) })
		},
		"by a question": func(q *quiver, p *pool.Entities[arrow], h handles.Local) {
			q.update(func(w *registry.Window) {
				require.Equal(t, 1, p.DespawnWhere(w, func(other handles.Local, _ *arrow) bool { return other == h }))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuiver(t, c)
			p := q.pool(1, bare)
			var h handles.Local
			var n handles.Net
			spawn := func() (h handles.Local) {
				q.update(func(w *registry.Window) {
					var ok bool
					h, ok = p.Spawn(w, fired)
					require.True(t, ok)
				})
				return h
			}
			h = spawn()
			q.update(func(w *registry.Window) {
				var err error
				n, err = w.AssignNet(h)
				require.NoError(t, err)
			})
			dead := func() {
				t.Helper()
				require.False(t, q.r.Alive(h))
				require.False(t, q.r.AliveNet(n))
				_, err := q.r.Resolve(h)
				require.ErrorIs(t, err, registry.ErrStale)
				require.ErrorIs(t, q.r.Destroy(h), registry.ErrStale)
			}
			despawn(q, p, h)
			dead()
			cycled := false
			for range 5 {
				q.update(func(w *registry.Window) {
					w.ProcessDeferredDestructions()
					w.ConfirmLocalRecycles()
					w.ConfirmNetRecycles()
				})
				next := spawn()
				cycled = cycled || next.Index() == h.Index()
				dead()
				require.True(t, q.r.Alive(next))
				despawn(q, p, next)
				require.False(t, q.r.Alive(next))
			}
			require.True(t, cycled, "the index came back")
			dead()
		})
	}
}

// sight is who a loop over the whole registry meets.
func (q *quiver) sight(w *registry.Window) map[handles.Local]bool {
	seen := map[handles.Local]bool{}
	for _, a := range registry.Iterate(w).Archetypes() {
		for _, ch := range a.Chunks() {
			for slot, h := range ch.Entities() {
				if ch.Bit(uint32(slot)) {
					seen[h] = true
				}
			}
		}
	}
	registry.Finish(w)
	return seen
}

func aroundAWord(t *testing.T, c registry.Config, n int) {
	q := newQuiver(t, c)
	events := map[registry.EventKind]int{}
	for _, kind := range []registry.EventKind{registry.Spawned, registry.Destroyed, registry.Added, registry.Removed, registry.Moved} {
		_, err := q.r.Observe(kind, func(_ *registry.Frame, batch []registry.Event) { events[kind] += len(batch) })
		require.NoError(t, err)
	}
	p := q.pool(n, bare)
	q.update(func(w *registry.Window) { require.Empty(t, q.sight(w)) })
	s := q.r.Stats()
	require.Zero(t, s.Live+s.Inactive+s.Tombstoned)
	require.Equal(t, n, s.Idle)
	require.Empty(t, events)
	require.Equal(t, used(n, 0, 0, 0), p.Stats())

	hs := make([]handles.Local, n)
	q.update(func(w *registry.Window) {
		for i := range hs {
			var ok bool
			hs[i], ok = p.Spawn(w, fired)
			require.True(t, ok)
		}
		h, ok := p.Spawn(w, fired)
		require.False(t, ok)
		require.Zero(t, h)
		require.Len(t, q.sight(w), n)
	})
	require.Equal(t, map[registry.EventKind]int{registry.Spawned: n}, events)
	require.Equal(t, n, q.r.Stats().Live)
	require.Equal(t, used(n, n, n, 1), p.Stats())

	var freed []int
	for _, i := range []int{64, 62, 63, 0} { // in no order
		if i < n {
			freed = append(freed, i)
		}
	}
	q.update(func(w *registry.Window) {
		for _, i := range freed {
			require.NoError(t, p.Despawn(w, hs[i]))
			require.Equal(t, bare, read(t, w, p.Slot(i)))
		}
		seen := q.sight(w)
		require.Len(t, seen, n-len(freed))
		for _, i := range freed {
			require.False(t, seen[hs[i]] || seen[p.Slot(i)])
		}
	})
	require.Equal(t, len(freed), events[registry.Destroyed])
	q.update(func(w *registry.Window) {
		last := -1
		for range freed {
			h, ok := p.Spawn(w, fired)
			require.True(t, ok)
			i, ok := p.SlotOf(h)
			require.True(t, ok)
			require.Greater(t, i, last)
			require.Contains(t, freed, i)
			last = i
		}
		_, ok := p.Spawn(w, fired)
		require.False(t, ok)
	})
	require.Equal(t, used(n, n, n, 2), p.Stats())
	require.Equal(t, n+len(freed), events[registry.Spawned])
	require.Equal(t, len(freed), events[registry.Destroyed])
}

func pooledDiesAnotherWay(t *testing.T, c registry.Config) {
	const n = 3
	q := newQuiver(t, c)
	p := q.pool(n, bare)
	ways := map[string]func(w *registry.Window, h handles.Local){
		"from outside": func(_ *registry.Window, h handles.Local) { require.NoError(t, q.r.Destroy(h)) },
		"in a window":  func(w *registry.Window, h handles.Local) { require.NoError(t, w.Destroy(h)) },
		"in a batch": func(w *registry.Window, h handles.Local) {
			require.Equal(t, 1, w.DestroyBatch([]handles.Local{h, h, 0}))
		},
		"despawned": func(w *registry.Window, h handles.Local) { require.NoError(t, p.Despawn(w, h)) },
		"somewhere else": func(w *registry.Window, h handles.Local) {
			require.NoError(t, registry.Add(w, h, lit{}))
			require.NoError(t, w.Destroy(h))
		},
		"despawned from there": func(w *registry.Window, h handles.Local) {
			require.NoError(t, registry.Remove[note](w, h))
			require.NoError(t, p.Despawn(w, h))
		},
		"with its parent": func(w *registry.Window, h handles.Local) {
			parent, err := q.stones.Spawn(w, stone{})
			require.NoError(t, err)
			require.NoError(t, registry.SetParent(w, h, parent))
			require.NoError(t, w.Destroy(parent))
		},
		"with one of the pool": func(w *registry.Window, h handles.Local) {
			parent, ok := p.Spawn(w, fired)
			require.True(t, ok)
			_, err := w.AssignNet(h)
			require.NoError(t, err)
			require.NoError(t, registry.SetParent(w, h, parent))
			require.NoError(t, p.Despawn(w, parent))
		},
		"with a child": func(w *registry.Window, h handles.Local) {
			child, err := q.stones.Spawn(w, stone{})
			require.NoError(t, err)
			require.NoError(t, registry.SetParent(w, child, h))
			require.NoError(t, p.Despawn(w, h))
			require.False(t, q.r.Alive(child))
		},
		"all at once": func(w *registry.Window, h handles.Local) { require.NoError(t, w.Reset()) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			var h handles.Local
			q.update(func(w *registry.Window) {
				h, _ = p.Spawn(w, fired)
				way(w, h)
				require.False(t, q.r.Alive(h))
				require.ErrorIs(t, p.Despawn(w, h), registry.ErrStale)
			})
			before := p.Stats().Refused
			q.update(func(w *registry.Window) { w.ProcessDeferredDestructions() })
			require.Equal(t, n, p.Stats().Free)
			q.update(func(w *registry.Window) { // ordinary spawns go elsewhere
				w.ConfirmLocalRecycles()
				for range 100 {
					plain, err := q.arrows.Spawn(w, bare)
					require.NoError(t, err)
					_, ok := p.SlotOf(plain)
					require.False(t, ok)
				}
				for range n {
					again, ok := p.Spawn(w, fired)
					require.True(t, ok)
					require.NotEqual(t, h, again)
					net, err := q.r.NetOf(again)
					require.NoError(t, err)
					require.Zero(t, net)
				}
				_, ok := p.Spawn(w, fired)
				require.False(t, ok)
			})
			require.Equal(t, used(n, n, n, before+1), p.Stats())
			q.update(func(w *registry.Window) {
				require.Equal(t, n, p.DespawnWhere(w, func(_ handles.Local, e *arrow) bool { return *e == fired }))
			})
			require.False(t, q.r.Alive(h))
		})
	}
	t.Run("in a callback that fails", func(t *testing.T) {
		var h handles.Local
		q.fails(func(w *registry.Window) { h, _ = p.Spawn(w, fired) })
		require.False(t, q.r.Alive(h))
		require.Equal(t, n, p.Stats().Free)
		require.ErrorIs(t, q.r.Destroy(h), registry.ErrStale)
	})
}

// TestOthersLookOnAsThePoolIsUsed has eight goroutines destroy and ask while the owner spawns and despawns.
func TestOthersLookOnAsThePoolIsUsed(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		const n = 100
		q := newQuiver(t, c)
		p := q.pool(n, bare)
		var done atomic.Bool
		var ended [9]map[handles.Local]bool // whom each has destroyed
		var wg sync.WaitGroup
		for g := range 8 {
			ended[g] = map[handles.Local]bool{}
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(g)))
				for !done.Load() {
					h := p.Slot(rnd.IntN(n))
					if q.r.Alive(h) && rnd.IntN(50) == 0 && q.r.Destroy(h) == nil {
						ended[g][h] = true
						if q.r.Alive(h) {
							t.Errorf("%v lives on", h)
						}
					}
					if s := p.Stats(); s.InUse < 0 || s.Free < 0 || s.InUse+s.Free != n || s.Cap != n || s.InUse > s.Peak {
						t.Errorf("impossible counters: %+v", s)
					}
					if _, err := q.r.Resolve(h); err == nil && h == 0 {
						t.Error("the zero handle names somebody")
					}
				}
			})
		}
		ended[8] = map[handles.Local]bool{}
		until := time.Now().Add(150 * time.Millisecond)
		rnd := rand.New(rand.NewPCG(2, 3))
		for frames := 0; frames < 20 || time.Now().Before(until); frames++ {
			fail := frames%5 == 4
			var gone []handles.Local
			err := q.r.Update(func(w *registry.Window) error {
				for range 30 {
					h, ok := p.Spawn(w, fired)
					if !ok {
						break
					}
					if fail {
						gone = append(gone, h)
					}
				}
				for range 25 {
					if h := p.Slot(rnd.IntN(n)); p.Despawn(w, h) == nil && !fail {
						gone = append(gone, h)
					}
				}
				if fail {
					return errPlanned
				}
				return nil
			})
			require.Equal(t, fail, err != nil)
			for _, h := range gone {
				require.False(t, q.r.Alive(h))
				require.False(t, ended[8][h], "%v has died twice", h)
				ended[8][h] = true
			}
			if frames%3 == 0 {
				q.update(func(w *registry.Window) {
					w.ProcessDeferredDestructions()
					w.ConfirmLocalRecycles()
				})
			}
		}
		done.Store(true)
		wg.Wait()
		for g := range ended {
			for h := range ended[g] {
				require.False(t, q.r.Alive(h), "%v lives again", h)
			}
		}
		q.update(func(*registry.Window) {})
		q.update(func(w *registry.Window) {
			w.ProcessDeferredDestructions()
			p.DespawnWhere(w, func(handles.Local, *arrow) bool { return true })
		})
		require.Equal(t, n, p.Stats().Free)
		require.NoError(t, q.r.Verify())
	}
}
