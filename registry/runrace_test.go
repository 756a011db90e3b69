package registry_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// melee is a registry whose entities are moved and destroyed, in batches and one by one, while others destroy them one by one.
type melee struct {
	*engine
	r        *registry.Registry
	soldiers *registry.Class[soldier]
	all      []handles.Local
	want     map[handles.Local]look          // of those who live
	parent   map[handles.Local]handles.Local // of everybody
	told     map[handles.Local]int           // deaths that observers heard of
	lies     map[handles.Local]uint32        // where subscribers to moves have everybody who moved
	heard    bool                            // whether there are observers and subscribers
	round    int
}

func newMelee(rt *rapid.T, real testing.TB, c registry.Config, heard bool) *melee {
	k := &melee{
		heard: heard,
		want:  map[handles.Local]look{}, parent: map[handles.Local]handles.Local{}, told: map[handles.Local]int{},
		lies: map[handles.Local]uint32{},
	}
	var err error
	k.r, err = registry.New(c)
	require.NoError(rt, err)
	_, err = registry.RegisterComponent[spot](k.r, registry.Split())
	require.NoError(rt, err)
	_, err = registry.RegisterComponent[frozen](k.r)
	require.NoError(rt, err)
	_, err = registry.RegisterComponent[title](k.r)
	require.NoError(rt, err)
	k.soldiers, err = registry.RegisterClass[soldier](k.r, registry.SlotsPerChunk(128))
	require.NoError(rt, err)
	if heard {
		k.listen(rt, real)
	}
	core, err := k.r.Attach(registry.Hooks{OnError: func(err error) { real.Error(err) }})
	require.NoError(rt, err)
	k.engine = &engine{Core: core, t: real}
	return k
}

// listen observes deaths and subscribes to moves.
func (k *melee) listen(rt *rapid.T, real testing.TB) {
	_, err := k.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) {
		for _, e := range es {
			k.told[e.Entity]++
		}
	})
	require.NoError(rt, err)
	_, err = k.r.OnMove(func(ms []registry.Move) {
		for _, m := range ms {
			if at, known := k.lies[m.Entity]; known && at != m.Old {
				real.Errorf("%v moves from %d, but it went to %d", m.Entity, m.Old, at)
			}
			k.lies[m.Entity] = m.New
		}
	})
	require.NoError(rt, err)
}

// gone says whether h, or somebody it dies with, is among some.
func (k *melee) gone(h handles.Local, some map[handles.Local]bool) bool {
	for ; h != 0; h = k.parent[h] {
		if some[h] {
			return true
		}
	}
	return false
}

// meleeStep is one batch, or its steps one by one; what it does to one entity is told by apply.
type meleeStep struct {
	kind   int
	list   []handles.Local
	single bool
}

func (s meleeStep) do(w *registry.Window, round int) int {
	if s.single {
		return s.each(w, round)
	}
	switch s.kind {
	case 0:
		return registry.AddBatch(w, s.list, frozen{})
	case 1:
		return registry.AddBatch(w, s.list, title{string(rune('a' + round%26))})
	case 2:
		return registry.AddBatch(w, s.list, spot{X: float32(round)})
	case 3:
		return registry.RemoveBatch[frozen](w, s.list)
	case 4:
		return registry.RemoveBatch[title](w, s.list)
	default:
		return w.DestroyBatch(s.list)
	}
}

// each does so one by one.
func (s meleeStep) each(w *registry.Window, round int) (n int) {
	for _, h := range s.list {
		var err error
		switch s.kind {
		case 0:
			err = registry.Add(w, h, frozen{})
		case 1:
			err = registry.Add(w, h, title{string(rune('a' + round%26))})
		case 2:
			err = registry.Add(w, h, spot{X: float32(round)})
		case 3:
			err = registry.Remove[frozen](w, h)
		case 4:
			err = registry.Remove[title](w, h)
		default:
			err = w.Destroy(h)
		}
		if err == nil {
			n++
		}
	}
	return n
}

// apply does to what is wanted of an entity what do does to it, and says whether it lives.
func (s meleeStep) apply(l *look, round int) bool {
	switch s.kind {
	case 0:
		l.Frozen = true
	case 1:
		l.Title = title{string(rune('a' + round%26))}
	case 2:
		l.Spot = spot{X: float32(round)}
	case 3:
		l.Frozen = false
	case 4:
		l.Title = title{}
	default:
		return false
	}
	return true
}

// Batches and single steps move and destroy while other goroutines destroy in the middle of them, in callbacks that fail and in others: who was
// destroyed by others is dead for good, everybody else is as if nobody had been there, and all books agree.
func TestBatchesAreExactWhileOthersDestroy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := newMelee(rt, t, rapid.SampledFrom([]registry.Config{{}, {}, {Deterministic: true}, {TemporalFrames: 8}}).Draw(rt, "config"), rapid.Bool().Draw(rt, "heard"))
		defer k.Detach()
		pick := func(rt *rapid.T, name string, most int) []handles.Local {
			if len(k.all) == 0 {
				rt.Skip("nobody")
			}
			lo := rapid.IntRange(0, len(k.all)-1).Draw(rt, name+" from")
			return k.all[lo : lo+rapid.IntRange(0, min(most, len(k.all)-lo)).Draw(rt, name)]
		}
		rt.Repeat(map[string]func(*rapid.T){
			"spawn": func(rt *rapid.T) {
				n := rapid.IntRange(1, 300).Draw(rt, "n")
				require.NoError(rt, k.frame(func(w *registry.Window) error {
					born, err := k.soldiers.SpawnBatch(w, n, func(i int, s *soldier) { s.Health.Points = int64(i) })
					for i, h := range born {
						require.NoError(rt, registry.Set(w, h, self{h}))
						k.want[h] = look{Alive: true, Active: true, Self: self{h}, Health: health{int64(i)}}
					}
					k.all = append(k.all, born...)
					return err
				}))
			},
			"sleep": func(rt *rapid.T) {
				some := pick(rt, "sleepers", 3)
				require.NoError(rt, k.frame(func(w *registry.Window) error {
					for _, h := range some {
						if l, lives := k.want[h]; lives {
							l.Active = !l.Active
							k.want[h] = l
							require.NoError(rt, registry.SetActive(w, h, l.Active))
						}
					}
					return nil
				}))
			},
			"adopt": func(rt *rapid.T) {
				family := pick(rt, "family", 3)
				if len(family) < 2 || rapid.IntRange(0, 3).Draw(rt, "seldom") != 0 {
					rt.Skip("alone")
				}
				require.NoError(rt, k.frame(func(w *registry.Window) error {
					for i, h := range family[1:] { // an older one is the parent
						if registry.SetParent(w, h, family[i]) == nil {
							k.parent[h] = family[i]
						}
					}
					return nil
				}))
			},
			"batches": func(rt *rapid.T) {
				k.round++
				var steps []meleeStep
				for range rapid.IntRange(1, 3).Draw(rt, "steps") {
					steps = append(steps, meleeStep{rapid.IntRange(0, 6).Draw(rt, "kind"), pick(rt, "batch", 600), rapid.Bool().Draw(rt, "one by one")})
				}
				fail, loop := rapid.Bool().Draw(rt, "fail"), rapid.Bool().Draw(rt, "in a loop")
				waits, commits := rapid.Bool().Draw(rt, "wait inside"), !fail && rapid.IntRange(0, 3).Draw(rt, "commit") == 0
				victims := [][]handles.Local{pick(rt, "victims", 100), pick(rt, "more victims", 100)}
				k.race(rt, steps, victims, fail, loop, waits, commits)
			},
			"": func(rt *rapid.T) {
				require.NoError(rt, k.frame(func(w *registry.Window) error {
					registry.Iterate(w) // sees whom others have destroyed
					registry.Finish(w)
					for _, h := range k.all {
						require.Equal(rt, k.want[h], lookAt(w, h), "%v", h)
						if at, ok := registry.CacheIndex(w, h); ok && k.lies[h] != 0 {
							require.Equal(rt, at, k.lies[h])
						}
					}
					return nil
				}))
				require.Equal(rt, len(k.want), k.r.Stats().Live)
				if k.heard {
					require.Len(rt, k.told, len(k.all)-len(k.want))
				}
				for h, n := range k.told {
					require.Equal(rt, 1, n, "%v died", h)
				}
				require.NoError(rt, k.r.Verify())
			},
		})
	})
}

// race does the steps in one callback while others destroy their victims.
func (k *melee) race(rt *rapid.T, steps []meleeStep, victims [][]handles.Local, fail, loop, waits, commits bool) {
	var all sync.WaitGroup
	var begun atomic.Int32
	begin, won := make(chan struct{}), make([]map[handles.Local]bool, len(victims))
	for i, list := range victims {
		won[i] = map[handles.Local]bool{}
		all.Go(func() {
			<-begin
			begun.Add(1)
			for _, h := range list {
				if k.r.Destroy(h) == nil {
					won[i][h] = true
				}
				runtime.Gosched()
			}
		})
	}
	err := k.frame(func(w *registry.Window) error {
		if loop {
			registry.Iterate(w)
			defer registry.Finish(w)
		}
		close(begin)
		for begun.Load() < int32(len(victims)) { // else it would all be over before they wake up
			runtime.Gosched()
		}
		for i, s := range steps {
			s.do(w, k.round)
			if commits && i == 0 {
				w.ProcessDeferredDestructions()
			}
		}
		if waits {
			all.Wait()
		}
		if fail {
			return errPlanned
		}
		return nil
	})
	all.Wait()
	require.Equal(rt, fail, errors.Is(err, errPlanned))
	dead := map[handles.Local]bool{}
	for _, some := range won {
		for h := range some {
			require.False(rt, dead[h], "%v was destroyed twice", h)
			dead[h] = true
		}
	}
	if !fail {
		for _, s := range steps {
			for _, h := range s.list {
				if l, lives := k.want[h]; lives && !k.gone(h, dead) {
					if !s.apply(&l, k.round) {
						dead[h] = true
					}
					k.want[h] = l
				}
			}
		}
	}
	for _, h := range k.all {
		if k.gone(h, dead) {
			delete(k.want, h)
		}
	}
}
