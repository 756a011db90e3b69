package pool_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/pool"
)

// poolModel is a pool without any of what makes one fast or safe. It knows which instance each take
// has to return: the one that was given back last, a new one if that place is empty.
type poolModel struct {
	want pool.Stats
	free []*widget // nil in places that are still to be filled; the last is taken first
	open int       // places in free or in use

	held   map[pool.Handle[widget]]*widget
	ended  []pool.Handle[widget]
	names  map[*widget]string // what its owner wrote into it
	resets map[*widget]int32
}

// place is what the next take gets, nil to be built; false if there is no place.
func (m *poolModel) place() (*widget, bool) {
	if n := len(m.free); n > 0 {
		w := m.free[n-1]
		m.free = slices.Delete(m.free, n-1, n) // clears it: a model must not keep alive what is lost
		return w, true
	}
	if m.open == m.want.Cap {
		next := m.want.Grow.Next(m.want.Cap, m.want.Max)
		if next == m.want.Cap {
			m.want.Refused++
			return nil, false
		}
		m.want.Cap = next
		m.want.Grown++
	}
	m.open++
	return nil, true
}

// use counts n more in use, or less.
func (m *poolModel) use(n int) {
	m.want.InUse += n
	m.want.Peak = max(m.want.Peak, m.want.InUse)
}

// pick is one of the guards in use.
func (m *poolModel) pick(t *rapid.T) pool.Handle[widget] {
	if len(m.held) == 0 {
		t.Skip("nothing is in use")
	}
	hs := make([]pool.Handle[widget], 0, len(m.held))
	for h := range m.held {
		hs = append(hs, h)
	}
	slices.SortFunc(hs, func(a, b pool.Handle[widget]) int {
		return len(m.names[m.held[a]]) - len(m.names[m.held[b]]) // any order that is the same in each run
	})
	return hs[rapid.IntRange(0, len(hs)-1).Draw(t, "guard")] // an index: rapid keeps what it has drawn
}

// end forgets a guard whose place is free again, with w in it.
func (m *poolModel) end(h pool.Handle[widget], w *widget) {
	delete(m.held, h)
	m.ended = append(m.ended, h)
	m.free = append(m.free, w)
	m.use(-1)
}

func TestAPoolAgreesWithAPlainModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pool.Config[widget]{
			Capacity: rapid.IntRange(0, 5).Draw(t, "capacity"),
			Grow:     rapid.SampledFrom([]pool.Grow{pool.Fixed(), pool.Additive(1), pool.Additive(3), pool.Double()}).Draw(t, "grow"),
			Lazy:     rapid.Bool().Draw(t, "lazy"),
			OnLeak:   func(pool.Leak) {},
		}
		if rapid.Bool().Draw(t, "bounded") {
			c.Max = c.Capacity + rapid.SampledFrom([]int{0, 1, 2, 4, 7}).Draw(t, "room") // growth by two, by three and by doubling ends behind some of them
		}
		var newest *widget
		newEnds, resetEnds := ending(""), ending("") // how the next ones fail, "" if they do not
		c.New = func() (*widget, error) {
			if newEnds != "" {
				return nil, fail(newEnds)
			}
			var err error
			newest, err = newWidget()
			return newest, err
		}
		c.Reset = func(w *widget) {
			w.Reset()
			if resetEnds != "" {
				_ = fail(resetEnds)
			}
		}
		m := &poolModel{held: map[pool.Handle[widget]]*widget{}, names: map[*widget]string{}, resets: map[*widget]int32{}}
		m.want = pool.Stats{Cap: c.Capacity, Max: c.Max, Grow: c.Grow, Warm: !c.Lazy}
		if m.want.Warm {
			build := c.New
			c.New = func() (*widget, error) {
				w, err := build()
				if m.want.Built < c.Capacity {
					m.free = append(m.free, w)
					m.want.Built++
					m.open++
				}
				return w, err
			}
		}
		p, err := pool.New(c)
		require.NoError(t, err)
		other, err := pool.New(pool.Config[widget]{})
		require.NoError(t, err)
		foreign, err := other.Take()
		require.NoError(t, err)
		names := 0

		// got checks an instance against the place it has to come from.
		got := func(t *rapid.T, w, place *widget) {
			if place == nil {
				place = newest
				m.want.Built++
			}
			require.Same(t, place, w)
			require.Empty(t, w.Name)
			require.Equal(t, m.resets[w], w.resets.Load())
		}
		badly := rapid.SampledFrom([]ending{returned, panicked, exited})

		take := func(t *rapid.T) bool {
			place, ok := m.place()
			h, err := p.Take()
			if !ok {
				require.ErrorIs(t, err, pool.ErrExhausted)
				require.Zero(t, h)
				return false
			}
			require.NoError(t, err)
			m.use(1)
			got(t, h.Ptr(), place)
			names++
			h.Ptr().Name = fmt.Sprintf("%0*d", names, 0) // its length is its name
			m.held[h], m.names[h.Ptr()] = h.Ptr(), h.Ptr().Name
			return true
		}

		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) { take(t) },
			"take to the limit": func(t *rapid.T) {
				for n := 0; n < 16 && take(t); n++ {
				}
			},
			"take with a New that fails": func(t *rapid.T) {
				if n := len(m.free); n > 0 && m.free[n-1] != nil {
					t.Skip("nothing would be built")
				}
				_, ok := m.place()
				newEnds = badly.Draw(t, "new")
				how := endingOf(func() {
					_, err := p.Take()
					if ok {
						require.ErrorIs(t, err, errBroken)
					} else {
						require.ErrorIs(t, err, pool.ErrExhausted)
					}
				})
				if ok {
					require.Equal(t, newEnds, how)
					m.use(1)
					m.use(-1)
					m.free = append(m.free, nil)
				}
				newEnds = ""
			},
			"release": func(t *rapid.T) {
				h := m.pick(t)
				w := m.held[h]
				if rapid.Bool().Draw(t, "to the pool") {
					require.NoError(t, p.GiveBack(h))
				} else {
					require.NoError(t, h.Release())
				}
				m.resets[w]++
				require.Equal(t, m.resets[w], w.resets.Load())
				m.end(h, w)
			},
			"release with a reset that fails": func(t *rapid.T) {
				h := m.pick(t)
				resetEnds = rapid.SampledFrom([]ending{panicked, exited}).Draw(t, "reset")
				require.Equal(t, resetEnds, endingOf(func() { _ = h.Release() }))
				resetEnds = ""
				m.end(h, nil)
			},
			"release again": func(t *rapid.T) {
				if len(m.ended) == 0 {
					t.Skip("nothing was released")
				}
				h := m.ended[rapid.IntRange(0, len(m.ended)-1).Draw(t, "guard")]
				require.ErrorIs(t, h.Release(), pool.ErrReleased)
				_, err := h.Value()
				require.ErrorIs(t, err, pool.ErrReleased)
			},
			"give back what is not ours": func(t *rapid.T) {
				require.ErrorIs(t, p.GiveBack(foreign), pool.ErrForeign)
				require.ErrorIs(t, p.GiveBack(pool.Handle[widget]{}), pool.ErrForeign)
				if len(m.held) > 0 {
					require.ErrorIs(t, other.GiveBack(m.pick(t)), pool.ErrForeign)
				}
			},
			"with": func(t *rapid.T) {
				place, ok := m.place()
				how := rapid.SampledFrom([]ending{"", returned, panicked, exited}).Draw(t, "callback")
				var seen *widget
				ended := endingOf(func() {
					err := p.With(func(w *widget) error {
						if seen = w; how == "" {
							return nil
						}
						return fail(how)
					})
					switch {
					case !ok:
						require.ErrorIs(t, err, pool.ErrExhausted)
					case how == "":
						require.NoError(t, err)
					default:
						require.ErrorIs(t, err, errBroken)
					}
				})
				if !ok {
					require.Nil(t, seen)
					return
				}
				if how == "" {
					how = returned
				}
				require.Equal(t, how, ended)
				m.use(1)
				m.resets[seen]++
				got(t, seen, place)
				m.free = append(m.free, seen)
				m.use(-1)
			},
			"trim": func(t *rapid.T) {
				target := rapid.IntRange(-1, 20).Draw(t, "target")
				m.want.Cap = min(m.want.Cap, max(m.open, target))
				for len(m.free) > 0 && m.want.Cap > target {
					m.free = slices.Delete(m.free, len(m.free)-1, len(m.free))
					m.want.Cap--
					m.open--
				}
				require.Equal(t, m.want.Cap, p.Trim(target))
			},
			"lose": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "seldom") != 0 {
					t.Skip("collecting garbage takes long")
				}
				h := m.pick(t)
				w := m.held[h]
				delete(m.held, h)
				delete(m.names, w)
				delete(m.resets, w)
				m.ended = slices.DeleteFunc(m.ended, func(old pool.Handle[widget]) bool { return old.Holds(w) })
				if newest == w {
					newest = nil
				}
				h, w = pool.Handle[widget]{}, nil
				m.want.Leaked++
				eventually(t, "leaked", func() bool { return p.Stats().Leaked == m.want.Leaked })
				m.free = append(m.free, nil)
				m.use(-1)
			},
			"": func(t *rapid.T) {
				for h, w := range m.held {
					require.Same(t, w, h.Ptr())
					require.Equal(t, m.names[w], w.Name)
				}
				m.want.Free = m.want.Cap - m.want.InUse
				require.Equal(t, m.want, p.Stats())
				if c.Max > 0 { // what the model grows to it asks the pool's own rule
					require.LessOrEqual(t, m.want.Cap, c.Max)
				}
				require.NoError(t, p.Verify())
			},
		})
	})
}
