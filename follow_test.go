package airlock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// What TestEverybodyFollows is about: views, queries and an outside array, all of which have to follow
// entities that are spawned, destroyed, changed and moved, and to agree with a plain map.
type (
	tag    struct{ Self handles.Local }
	weight struct{ Grams, Drams int64 } // split
	note   struct{ Text string }
	chilly struct{}

	crate struct {
		Tag    tag
		Weight weight
	}
	letter struct {
		Tag  tag
		Note note
	}

	crateView struct {
		Tag   *tag   `ecs:"read"`
		Grams *int64 `ecs:"weight.Grams"`
		Note  *note  `ecs:"optional"`
	}
	letterView struct {
		Tag  *tag `ecs:"read"`
		Note *note
	}
	everything struct {
		Tag   []tag   `ecs:"read"`
		Grams []int64 `ecs:"weight.Grams,read,optional"`
		ID    []handles.Local
		At    []uint32 `ecs:"index"`
	}
)

// item is what the model knows of an entity.
type item struct {
	letter   bool
	grams    int64
	text     string
	inactive bool
	chilly   bool
	noted    bool // a crate with a note
}

// machine is a registry, the views on it, and the model.
type machine struct {
	r       *registry.Registry
	crates  *registry.Class[crate]
	letters *registry.Class[letter]
	all     *views.Query[everything]
	cold    *views.Query[everything]
	model   map[handles.Local]*item
	order   []handles.Local
	crate   map[handles.Local]*views.Entity[crateView]
	letter  map[handles.Local]*views.Entity[letterView]
	grams   map[handles.Local]*views.Field[int64]
	built   map[handles.Local]*views.Construct[crateView]
	outside map[uint32]handles.Local // by cache index
	place   map[handles.Local]uint32
	dead    []handles.Local
	next    int64
}

func newMachine(t require.TestingT) *machine {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	m := &machine{
		r: r, model: map[handles.Local]*item{},
		crate: map[handles.Local]*views.Entity[crateView]{}, letter: map[handles.Local]*views.Entity[letterView]{},
		grams: map[handles.Local]*views.Field[int64]{}, built: map[handles.Local]*views.Construct[crateView]{},
		outside: map[uint32]handles.Local{}, place: map[handles.Local]uint32{},
	}
	_, err = registry.RegisterComponent[weight](r, registry.Split())
	require.NoError(t, err)
	_, err = registry.RegisterComponent[chilly](r)
	require.NoError(t, err)
	m.crates, err = registry.RegisterClass[crate](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	m.letters, err = registry.RegisterClass[letter](r)
	require.NoError(t, err)
	m.all, err = views.NewQuery[everything](r)
	require.NoError(t, err)
	m.cold, err = views.NewQuery[everything](r, views.With[chilly]())
	require.NoError(t, err)
	_, err = r.OnMove(func(ms []registry.Move) {
		for _, mv := range ms {
			if m.outside[mv.Old] != mv.Entity || m.outside[mv.New] != 0 {
				panic(fmt.Sprintf("%+v, but the places hold %v and %v", mv, m.outside[mv.Old], m.outside[mv.New]))
			}
			delete(m.outside, mv.Old)
			m.outside[mv.New], m.place[mv.Entity] = mv.Entity, mv.New
		}
	})
	require.NoError(t, err)
	m.window(t, func(*registry.Window) {})
	return m
}

func (m *machine) window(t require.TestingT, fn func(*registry.Window)) {
	require.NoError(t, m.r.Update(func(w *registry.Window) error { fn(w); return nil }))
}

// born opens every kind of view on a newcomer.
func (m *machine) born(t require.TestingT, w *registry.Window, h handles.Local, it *item) {
	require.NoError(t, registry.Set(w, h, tag{h}))
	m.model[h] = it
	m.order = append(m.order, h)
	at, ok := registry.CacheIndex(w, h)
	require.True(t, ok)
	require.Zero(t, m.outside[at])
	m.outside[at], m.place[h] = h, at
	var err error
	if it.letter {
		m.letter[h], err = views.NewEntity[letterView](m.r, h)
		require.NoError(t, err)
		return
	}
	m.crate[h], err = views.NewEntity[crateView](m.r, h)
	require.NoError(t, err)
	m.grams[h], err = views.NewField[weight, int64](m.r, h, "Grams")
	require.NoError(t, err)
}

func (m *machine) died(hs ...handles.Local) {
	for _, h := range hs {
		delete(m.model, h)
		m.dead = append(m.dead, h)
	}
	m.order = slices.DeleteFunc(m.order, func(h handles.Local) bool { return m.model[h] == nil })
}

// pick draws some of the living.
func (m *machine) pick(t *rapid.T) []handles.Local {
	if len(m.order) == 0 {
		t.Skip("nobody lives")
	}
	lo := rapid.IntRange(0, len(m.order)-1).Draw(t, "lo")
	step := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "step")
	n := rapid.SampledFrom([]int{1, 2, 40}).Draw(t, "n")
	var hs []handles.Local
	for i := lo; i < len(m.order) && len(hs) < n; i += step {
		hs = append(hs, m.order[i])
	}
	return hs
}

// agree looks at everybody through every view.
func (m *machine) agree(t require.TestingT) {
	require.NoError(t, m.r.Verify())
	m.window(t, func(w *registry.Window) {
		for h, v := range m.crate {
			it := m.model[h]
			got, err := v.Get(w)
			if it == nil {
				require.ErrorIs(t, err, registry.ErrStale, "for ever")
				_, err = m.grams[h].Get(w)
				require.ErrorIs(t, err, registry.ErrStale)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, h, got.Tag.Self)
			require.Equal(t, it.grams, *got.Grams)
			require.Equal(t, it.noted, got.Note != nil)
			if it.noted {
				require.Equal(t, it.text, got.Note.Text)
			}
			g, err := m.grams[h].Get(w)
			require.NoError(t, err)
			require.Equal(t, it.grams, g)
		}
		for h, v := range m.letter {
			got, err := v.Get(w)
			if m.model[h] == nil {
				require.ErrorIs(t, err, registry.ErrStale)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, tag{h}, *got.Tag)
			require.Equal(t, m.model[h].text, got.Note.Text)
		}
		for h, v := range m.built {
			got, err := v.Get(w)
			if m.model[h] == nil {
				require.ErrorIs(t, err, registry.ErrStale)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, m.model[h].grams, *got.Grams)
		}
		m.queries(t, w)
		require.Len(t, m.place, len(m.model)+len(m.dead))
		for h := range m.model {
			at, _ := registry.CacheIndex(w, h)
			require.Equal(t, at, m.place[h])
			require.Equal(t, h, m.outside[at])
		}
	})
}

func (m *machine) queries(t require.TestingT, w *registry.Window) {
	for q, match := range map[*views.Query[everything]]func(*item) bool{
		m.all:  func(it *item) bool { return !it.inactive },
		m.cold: func(it *item) bool { return !it.inactive && it.chilly },
	} {
		want := 0
		for _, it := range m.model {
			if match(it) {
				want++
			}
		}
		seen := map[handles.Local]bool{}
		for s := range q.Runs(w) {
			for i, h := range s.ID {
				it := m.model[h]
				require.True(t, it != nil && match(it) && !seen[h])
				seen[h] = true
				require.Equal(t, h, s.Tag[i].Self)
				require.Equal(t, m.place[h], s.At[i])
				require.Equal(t, it.letter, s.Grams == nil)
				if !it.letter {
					require.Equal(t, it.grams, s.Grams[i])
				}
			}
		}
		require.Len(t, seen, want)
		require.Equal(t, want, q.Count(w))
		spans := 0
		for s, mask := range q.Spans(w) {
			for _, i := range mask.Live() {
				require.True(t, seen[s.ID[i]])
				require.Equal(t, mask.Base()+uint32(i), s.At[i])
				spans++
			}
		}
		require.Equal(t, want, spans)
	}
}

func TestEverybodyFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		failure := errors.New("fails")
		t.Repeat(map[string]func(*rapid.T){
			"spawn": func(t *rapid.T) {
				n, letter := rapid.SampledFrom([]int{1, 20, 70}).Draw(t, "n"), rapid.Bool().Draw(t, "letter")
				m.window(t, func(w *registry.Window) {
					for range n {
						m.next++
						it := &item{letter: letter, grams: m.next, text: fmt.Sprint(m.next)}
						var h handles.Local
						var err error
						if letter {
							h, err = m.letterSpawn(w, it)
						} else {
							h, err = m.crates.Spawn(w, crate{Weight: weight{Grams: it.grams}})
						}
						require.NoError(t, err)
						m.born(t, w, h, it)
					}
				})
			},
			"construct": func(t *rapid.T) {
				m.window(t, func(w *registry.Window) {
					m.next++
					v, err := views.NewConstruct[crateView](w, m.crates, crate{Weight: weight{Grams: m.next}})
					require.NoError(t, err)
					m.built[v.Entity()] = v
					m.born(t, w, v.Entity(), &item{grams: m.next, text: fmt.Sprint(m.next)})
				})
			},
			"close": func(t *rapid.T) {
				for _, h := range m.order {
					if v := m.built[h]; v != nil {
						v.Close()
						v.Close()
						delete(m.built, h)
						m.died(h)
						return
					}
				}
			},
			"destroy": func(t *rapid.T) {
				hs := m.pick(t)
				m.window(t, func(w *registry.Window) { require.Equal(t, len(hs), w.DestroyBatch(hs)) })
				m.died(hs...)
			},
			"destroy all the cold": func(t *rapid.T) {
				var hs []handles.Local
				for _, h := range m.order {
					if it := m.model[h]; it.chilly && !it.inactive {
						hs = append(hs, h)
					}
				}
				m.window(t, func(w *registry.Window) { require.Equal(t, len(hs), m.cold.DestroyAll(w)) })
				m.died(hs...)
			},
			"reclaim": func(t *rapid.T) {
				m.window(t, func(w *registry.Window) { w.ProcessDeferredDestructions(); w.ConfirmLocalRecycles() })
				for _, h := range m.dead {
					delete(m.outside, m.place[h])
					delete(m.place, h)
				}
				m.dead = m.dead[:0]
			},
			"flip": func(t *rapid.T) {
				hs, what := m.pick(t), rapid.IntRange(0, 2).Draw(t, "what")
				m.window(t, func(w *registry.Window) {
					for _, h := range hs {
						m.flip(t, w, h, what)
					}
				})
			},
			"fail": func(t *rapid.T) {
				hs, what := m.pick(t), rapid.IntRange(0, 2).Draw(t, "what")
				before := map[handles.Local]item{}
				for _, h := range hs {
					before[h] = *m.model[h]
				}
				require.ErrorIs(t, m.r.Update(func(w *registry.Window) error {
					for _, h := range hs {
						m.flip(t, w, h, what)
						if f := m.grams[h]; f != nil {
							require.NoError(t, f.Set(w, -1))
						}
					}
					return failure
				}), failure)
				for h, it := range before {
					*m.model[h] = it
				}
			},
			"write": func(t *rapid.T) {
				hs := m.pick(t)
				m.window(t, func(w *registry.Window) {
					for _, h := range hs {
						it := m.model[h]
						if it.letter {
							continue
						}
						require.NoError(t, m.grams[h].Add(w, 5))
						v, err := m.crate[h].Get(w)
						require.NoError(t, err)
						*v.Grams += 2
						it.grams += 7
					}
				})
			},
			"compact": func(t *rapid.T) {
				d, err := defrag.New(m.r, defrag.Config{Moves: rapid.SampledFrom([]int{0, 1, 50, 300}).Draw(t, "limit")})
				require.NoError(t, err)
				m.window(t, func(w *registry.Window) {
					_, err := d.Run(w)
					require.NoError(t, err)
				})
			},
			"": func(t *rapid.T) { m.agree(t) },
		})
	})
}

func (m *machine) letterSpawn(w *registry.Window, it *item) (handles.Local, error) {
	return m.letters.Spawn(w, letter{Note: note{it.text}})
}

// flip changes one thing about an entity.
func (m *machine) flip(t require.TestingT, w *registry.Window, h handles.Local, what int) {
	it := m.model[h]
	switch {
	case what == 0:
		it.inactive = !it.inactive
		require.NoError(t, registry.SetActive(w, h, !it.inactive))
	case what == 1 && !it.letter:
		if it.noted = !it.noted; it.noted {
			require.NoError(t, registry.Add(w, h, note{it.text}))
		} else {
			require.NoError(t, registry.Remove[note](w, h))
		}
	default:
		if it.chilly = !it.chilly; it.chilly {
			require.NoError(t, registry.Add(w, h, chilly{}))
		} else {
			require.NoError(t, registry.Remove[chilly](w, h))
		}
	}
}
