package registry_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// side is one of several registries to which the same happens, in batches and one by one, while somebody observes and
// while nobody does.
type side struct {
	*world
	batch  bool
	heard  bool
	events []registry.Event
	moved  []handles.Local
}

func newSide(t *rapid.T, real testing.TB, batch, heard bool) *side {
	s := &side{world: newWorld(real, registry.Config{}), batch: batch, heard: heard}
	if !heard {
		return s
	}
	for _, kind := range []registry.EventKind{registry.Added, registry.Removed, registry.Moved, registry.Destroyed} {
		_, err := s.r.Observe(kind, func(_ *registry.Frame, es []registry.Event) { s.events = append(s.events, es...) })
		require.NoError(t, err)
	}
	_, err := s.r.OnMove(func(ms []registry.Move) {
		for _, m := range ms {
			s.moved = append(s.moved, m.Entity)
		}
	})
	require.NoError(t, err)
	return s
}

func addAll[C any](s *side, w *registry.Window, hs []handles.Local, v C) (n int) {
	if s.batch {
		return registry.AddBatch(w, hs, v)
	}
	for _, h := range hs {
		if registry.Add(w, h, v) == nil {
			n++
		}
	}
	return n
}

func removeAll[C any](s *side, w *registry.Window, hs []handles.Local) (n int) {
	if s.batch {
		return registry.RemoveBatch[C](w, hs)
	}
	for _, h := range hs {
		if registry.Remove[C](w, h) == nil {
			n++
		}
	}
	return n
}

func (s *side) destroyAll(w *registry.Window, hs []handles.Local) (n int) {
	if s.batch {
		return w.DestroyBatch(hs)
	}
	for _, h := range hs {
		if w.Destroy(h) == nil {
			n++
		}
	}
	return n
}

// look is what one can see of an entity.
type look struct {
	Alive, Active, Frozen bool
	Health                health
	Title                 title
	Self                  self
	Spot                  spot
}

func lookAt(w *registry.Window, h handles.Local) (l look) {
	l.Alive, l.Active, l.Frozen = w.Registry().Alive(h), registry.Active(w, h), registry.Has[frozen](w, h)
	l.Health, _ = registry.Peek[health](w, h)
	l.Title, _ = registry.Peek[title](w, h)
	l.Self, _ = registry.Peek[self](w, h)
	l.Spot, _ = registry.Peek[spot](w, h)
	return l
}

// A batch does what its steps would have done one after another, for those that lie side by side, for holes, doubles,
// the dead and the inactive, inside a loop, in a callback that fails, and while others destroy.
func TestABatchIsItsStepsOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sides := []*side{newSide(rt, t, true, true), newSide(rt, t, false, true), newSide(rt, t, true, false), newSide(rt, t, false, false)}
		var hs []handles.Local
		both := func(fail bool, fn func(s *side, w *registry.Window) any) {
			var first any
			for i, s := range sides {
				do, answer := s.update, any(nil)
				if fail {
					do = s.fails
				}
				do(func(w *registry.Window) { answer = fn(s, w) })
				if i == 0 {
					first = answer
				}
				require.Equal(rt, first, answer)
			}
		}
		steps := 0
		pick := func() []handles.Local {
			if len(hs) == 0 {
				rt.Skip("nobody")
			}
			some := slices.Clone(hs)
			lo := rapid.IntRange(0, len(some)-1).Draw(rt, "from")
			some = some[lo : lo+rapid.IntRange(0, min(200, len(some)-lo)).Draw(rt, "n")]
			for range rapid.IntRange(0, 3).Draw(rt, "swaps") {
				if len(some) > 1 {
					i, j := rapid.IntRange(0, len(some)-1).Draw(rt, "i"), rapid.IntRange(0, len(some)-1).Draw(rt, "j")
					some[i] = some[j] // a double
				}
			}
			return some
		}
		rt.Repeat(map[string]func(*rapid.T){
			"spawn": func(rt *rapid.T) {
				n, scouts := rapid.IntRange(1, 150).Draw(rt, "n"), rapid.Bool().Draw(rt, "scouts")
				both(false, func(s *side, w *registry.Window) any {
					var born []handles.Local
					if scouts {
						born, _ = s.scouts.SpawnBatch(w, n, func(i int, e *scout) { e.Spot.X, e.Title.Text = float32(i), "scout" })
					} else {
						born, _ = s.soldiers.SpawnBatch(w, n, func(i int, e *soldier) { e.Health.Points = int64(i) })
					}
					if s == sides[0] {
						hs = append(hs, born...)
					}
					return born
				})
			},
			"batches": func(rt *rapid.T) {
				var lists [][]handles.Local
				var kinds []int
				for range rapid.IntRange(1, 4).Draw(rt, "steps") {
					lists, kinds = append(lists, pick()), append(kinds, rapid.IntRange(0, 9).Draw(rt, "kind"))
				}
				steps++
				loop := rapid.Bool().Draw(rt, "in a loop")
				both(rapid.IntRange(0, 3).Draw(rt, "fail") == 0, func(s *side, w *registry.Window) any {
					if loop {
						registry.Iterate(w)
						defer registry.Finish(w)
					}
					var ns []int
					for i, list := range lists {
						n := 0
						switch kinds[i] {
						case 0, 1:
							n = addAll(s, w, list, frozen{})
						case 2:
							n = addAll(s, w, list, title{"batch"})
						case 3:
							n = addAll(s, w, list, spot{X: float32(steps)})
						case 4:
							n = removeAll[health](s, w, list)
						case 5, 6:
							n = removeAll[frozen](s, w, list)
						case 7:
							n = s.destroyAll(w, list)
						case 8:
							for _, h := range list[:min(5, len(list))] {
								_ = registry.SetActive(w, h, n%2 == 0)
								n++
							}
						case 9:
							for _, h := range list[:min(5, len(list))] {
								if s.r.Destroy(h) == nil { // as another goroutine would
									n++
								}
							}
						}
						ns = append(ns, n)
					}
					return ns
				})
			},
			"recycle": func(*rapid.T) {
				for _, s := range sides {
					s.recycle()
				}
			},
			"": func(rt *rapid.T) {
				both(false, func(s *side, w *registry.Window) any {
					looks, places := make([]look, len(hs)), make([]uint32, len(hs))
					for i, h := range hs {
						looks[i] = lookAt(w, h)
						places[i], _ = registry.CacheIndex(w, h)
					}
					return []any{looks, places}
				})
				for _, s := range sides {
					if s.heard {
						require.Equal(rt, sides[0].events, s.events)
						require.Equal(rt, sides[0].moved, s.moved)
					}
					require.Equal(rt, sides[0].r.Stats(), s.r.Stats())
					require.NoError(rt, s.r.Verify())
				}
			},
		})
	})
}

// A batch into an archetype that has no chunk yet makes the same chunks as single steps: a small one first.
func TestABatchBeginsAnArchetypeAsOneDoes(t *testing.T) {
	var stats []registry.Stats
	for _, batch := range []bool{true, false} {
		k := newWorld(t, registry.Config{})
		k.update(func(w *registry.Window) {
			hs, err := k.scouts.SpawnBatch(w, 150, nil)
			require.NoError(t, err)
			if batch {
				require.Equal(t, 144, registry.AddBatch(w, hs[:144], frozen{}))
				return
			}
			for _, h := range hs[:144] {
				require.NoError(t, registry.Add(w, h, frozen{}))
			}
		})
		require.NoError(t, k.r.Verify())
		stats = append(stats, k.r.Stats())
	}
	require.Equal(t, stats[1], stats[0])
}
