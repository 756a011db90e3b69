package views_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// followed is what the model knows of an entity, and the cursors on it.
type followed struct {
	x     float64
	y     float32
	name  string
	high  bool // has an Altitude
	named bool
	dead  bool
	alien bool // destroyed by nobody's callback: that is not undone

	view  *views.Entity[moverView]
	field *views.Field[float64]
	low   *views.Field[float32]
}

// herd is entities with cursors, and a plain map of what they must show.
type herd struct {
	*world
	class *registry.Class[Mover]
	all   map[handles.Local]*followed
	order []handles.Local // everybody who ever lived, so that draws are repeatable
	walk  *views.Field[float64]
	query *views.Query[ids]
	next  float64
}

// born puts cursors on newcomers.
func (m *herd) born(hs []handles.Local, x float64) {
	for i, h := range hs {
		m.all[h] = &followed{
			x:     x + float64(i),
			view:  entity[moverView](m.world, h),
			field: field[Position, float64](m.world, h, "X"),
			low:   field[Altitude, float32](m.world, h, "Y"),
		}
		m.order = append(m.order, h)
	}
}

// agree asks the cursors on everybody.
func (m *herd) agree(t *rapid.T, a registry.Access) {
	living := map[handles.Local]bool{}
	for h, e := range m.all {
		v, err := e.view.Get(a)
		x, xerr := e.field.Get(a)
		y, yerr := e.low.Get(a)
		if e.dead {
			require.ErrorIs(t, err, registry.ErrStale)
			require.ErrorIs(t, xerr, registry.ErrStale)
			require.ErrorIs(t, yerr, registry.ErrStale)
			continue
		}
		living[h] = true
		require.NoError(t, err)
		require.NoError(t, xerr)
		require.Equal(t, e.x, x)
		require.Equal(t, e.x, v.Pos.X)
		require.Equal(t, e.named, v.Name != nil)
		if e.named {
			require.Equal(t, e.name, v.Name.Text)
		}
		require.Equal(t, e.high, v.High != nil)
		if e.high {
			require.NoError(t, yerr)
			require.Equal(t, e.y, y)
			require.Equal(t, e.y, *v.High)
		} else {
			require.ErrorIs(t, yerr, registry.ErrNoComponent)
		}
		own, err := registry.Get[Position](a, h)
		require.NoError(t, err)
		require.Same(t, own, v.Pos)
	}
	require.NoError(t, m.walk.Bind(0))
	walked := through(m.walk, a)
	require.Equal(t, visited(m.query, a), walked)
	require.Len(t, walked, len(living))
	for _, h := range walked {
		require.True(t, living[h])
	}
}

// pick draws some of the living.
func (m *herd) pick(t *rapid.T) []handles.Local {
	living := slices.DeleteFunc(slices.Clone(m.order), func(h handles.Local) bool { return m.all[h].dead })
	if len(living) == 0 {
		return nil
	}
	lo := rapid.IntRange(0, len(living)-1).Draw(t, "lo")
	n := rapid.SampledFrom([]int{1, 2, 30, 64, 65}).Draw(t, "n")
	return living[lo:min(lo+n, len(living))]
}

// do is one step inside a window, of the kind that is undone with it unless it may commit.
func (m *herd) do(t *rapid.T, win *registry.Window, commit bool) {
	steps := []string{"spawn", "destroy", "destroy from outside", "write", "name", "raise", "broken batch"}
	if commit {
		steps = append(steps, "reclaim", "compact")
	}
	switch step := rapid.SampledFrom(steps).Draw(t, "step"); step {
	case "spawn":
		n := rapid.SampledFrom([]int{1, 2, 63, 64, 65, 130}).Draw(t, "n")
		if len(m.order) > 250 {
			n = 1 // asking everybody after every step is what takes the time
		}
		hs, err := m.class.SpawnBatch(win, n, func(i int, e *Mover) { e.Pos.X = m.next + float64(i) })
		require.NoError(t, err)
		m.born(hs, m.next)
		m.next += float64(n)
	case "destroy", "destroy from outside":
		for _, h := range m.pick(t) {
			if step == "destroy" {
				require.NoError(t, win.Destroy(h))
			} else {
				require.NoError(t, m.Destroy(h))
			}
			m.all[h].dead, m.all[h].alien = true, step != "destroy"
		}
	case "reclaim":
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
	case "compact":
		compact(t, win)
	case "write":
		for _, h := range m.pick(t) {
			e := m.all[h]
			v, err := e.view.Get(win)
			require.NoError(t, err)
			require.NoError(t, e.field.Set(win, v.Pos.X+1))
			require.NoError(t, e.field.Add(win, 1))
			e.x += 2
			if e.high {
				require.NoError(t, e.low.Add(win, 3))
				e.y += 3
			}
		}
	case "name":
		for _, h := range m.pick(t) {
			e := m.all[h]
			if e.named = !e.named; e.named {
				e.name = h.String()
				require.NoError(t, registry.Add(win, h, Name{Text: e.name}))
			} else {
				require.NoError(t, registry.Remove[Name](win, h))
			}
		}
	case "raise":
		for _, h := range m.pick(t) {
			e := m.all[h]
			if e.high = !e.high; e.high {
				e.y = 1
				require.NoError(t, registry.Add(win, h, Altitude{Y: 1}))
			} else {
				require.NoError(t, registry.Remove[Altitude](win, h))
			}
		}
	case "broken batch": // undone within the window
		require.Panics(t, func() {
			_, _ = m.class.SpawnBatch(win, 70, func(i int, _ *Mover) {
				if i == 66 {
					panic("broken")
				}
			})
		})
	}
}

// undone puts the model back to what it was before a callback that failed.
func (m *herd) undone(before map[handles.Local]followed) {
	for h, e := range m.all {
		was, old := before[h]
		if !old {
			e.dead = true // its generation is burned
			continue
		}
		was.dead, was.alien = was.dead || e.alien, e.alien
		*e = was
	}
}

func TestCursorsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		registered[Altitude](t, r, registry.Split())
		registered[Name](t, r)
		w := &world{r, t}
		m := &herd{
			world: w, class: class[Mover](w, registry.SlotsPerChunk(64)),
			all:  map[handles.Local]*followed{},
			walk: field[Position, float64](w, 0, "X"), query: query[ids](w),
		}
		t.Repeat(map[string]func(*rapid.T){
			"window": func(t *rapid.T) {
				m.window(func(win *registry.Window) {
					for range rapid.IntRange(1, 5).Draw(t, "steps") {
						m.do(t, win, true)
						m.agree(t, win)
					}
				})
			},
			"window that fails": func(t *rapid.T) {
				before := map[handles.Local]followed{}
				for h, e := range m.all {
					before[h] = *e
				}
				m.fails(func(win *registry.Window) {
					for range rapid.IntRange(1, 5).Draw(t, "steps") {
						m.do(t, win, false)
						m.agree(t, win)
					}
				})
				m.undone(before)
			},
			"frame": func(t *rapid.T) {
				hs := m.pick(t)
				m.frame(func(f *registry.Frame) {
					for i, h := range hs {
						e := m.all[h]
						switch i % 3 {
						case 0:
							require.NoError(t, e.field.Add(f, 10))
							e.x += 10
						case 1:
							v, err := e.view.Get(f)
							require.NoError(t, err)
							v.Pos.X *= 2
							e.x *= 2
						case 2:
							require.NoError(t, f.Destroy(h))
							e.dead = true
						}
					}
					m.agree(t, f)
				})
			},
			"reclaim": func(*rapid.T) { m.reclaim() },
			"compact": func(t *rapid.T) {
				m.window(func(win *registry.Window) {
					m.agree(t, win)
					compact(t, win)
					m.agree(t, win)
				})
			},
			"": func(t *rapid.T) { require.NoError(t, m.Verify()) },
		})
	})
}
