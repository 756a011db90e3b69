package pool_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// entitiesModel is some pools of a class in plain slices. What pools do beside everything else that there is in a registry is
// for a machine of package registry; this one is about what Entities answers.
type entitiesModel struct {
	slots [][]slotModel
	alive map[handles.Local]arrow
}

type slotModel struct {
	h    handles.Local
	used bool
	gone bool  // whoever was there has died, and the next frame has not begun
	idle arrow // components while idle
}

func (m *entitiesModel) clone() *entitiesModel {
	c := &entitiesModel{alive: maps.Clone(m.alive)}
	for _, slots := range m.slots {
		c.slots = append(c.slots, slices.Clone(slots))
	}
	return c
}

type entitiesMachine struct {
	*quiver
	ps   []*pool.Entities[arrow]
	want []pool.Stats
	m    *entitiesModel
	dead map[handles.Local]bool
	all  []handles.Local
}

// spawned checks an answer: of the lowest idle slot, or that there is none.
func (k *entitiesMachine) spawned(t *rapid.T, p int, h handles.Local, ok bool, e func(idle arrow) arrow) {
	slots := k.m.slots[p]
	i := slices.IndexFunc(slots, func(s slotModel) bool { return !s.used && !s.gone })
	require.Equal(t, i >= 0, ok)
	if !ok {
		require.Zero(t, h)
		k.want[p].Refused++
		return
	}
	require.False(t, k.dead[h])
	at, found := k.ps[p].SlotOf(h)
	require.True(t, found)
	require.Equal(t, i, at)
	require.Equal(t, h, k.ps[p].Slot(i))
	k.m.alive[h] = e(slots[i].idle)
	slots[i].h, slots[i].used = h, true
	k.all = append(k.all, h)
	inUse := 0
	for _, s := range slots {
		if s.used || s.gone {
			inUse++
		}
	}
	k.want[p].Peak = max(k.want[p].Peak, inUse)
}

// home has the slot of somebody dead idle again, with another in it.
func (k *entitiesMachine) home(t *rapid.T, p, i int) {
	s := &k.m.slots[p][i]
	h := k.ps[p].Slot(i)
	require.NotEqual(t, s.h, h)
	require.False(t, k.dead[h])
	*s = slotModel{h: h, idle: bare}
}

// end notes a death, and gives the slot.
func (k *entitiesMachine) end(h handles.Local) (i int) {
	delete(k.m.alive, h)
	k.dead[h] = true
	for p := range k.m.slots {
		if i = slices.IndexFunc(k.m.slots[p], func(s slotModel) bool { return s.h == h }); i >= 0 {
			k.m.slots[p][i].used, k.m.slots[p][i].gone = false, true
			return i
		}
	}
	return -1
}

func (k *entitiesMachine) pick(t *rapid.T) handles.Local {
	if len(k.all) == 0 || rapid.IntRange(0, 9).Draw(t, "idle") == 0 {
		return k.ps[0].Slot(rapid.IntRange(-1, k.ps[0].Len()).Draw(t, "slot"))
	}
	return rapid.SampledFrom(k.all[max(0, len(k.all)-20):]).Draw(t, "handle")
}

func (k *entitiesMachine) step(t *rapid.T, w *registry.Window) {
	p := rapid.IntRange(0, len(k.ps)-1).Draw(t, "pool")
	switch rapid.SampledFrom([]string{"spawn", "spawn", "initial", "from", "despawn", "despawn", "where", "destroy", "write"}).Draw(t, "op") {
	case "spawn":
		e := arrow{Place: place{rapid.Float64Range(0, 9).Draw(t, "x"), 0}, Note: note{"new"}}
		h, ok := k.ps[p].Spawn(w, e)
		k.spawned(t, p, h, ok, func(arrow) arrow { return e })
	case "initial":
		h, ok := k.ps[p].SpawnInitial(w)
		k.spawned(t, p, h, ok, func(idle arrow) arrow { return idle })
	case "from":
		from := k.pick(t)
		e, alive := k.m.alive[from]
		if !alive && k.r.Alive(from) {
			return // that of an idle slot
		}
		h, ok := k.ps[p].SpawnFrom(w, from)
		if !alive {
			require.False(t, ok)
			return
		}
		k.spawned(t, p, h, ok, func(arrow) arrow { return e })
	case "despawn":
		h := k.pick(t)
		err := k.ps[p].Despawn(w, h)
		at, ours := k.ps[p].SlotOf(h)
		switch _, alive := k.m.alive[h]; {
		case alive && ours:
			require.NoError(t, err)
			k.end(h)
			k.home(t, p, at)
		case alive:
			require.ErrorIs(t, err, registry.ErrInvalidHandle)
		default:
			require.Error(t, err)
		}
	case "where":
		var want, asked []handles.Local
		for _, s := range k.m.slots[p] {
			if s.used {
				want = append(want, s.h)
			}
		}
		below := rapid.Float64Range(0, 9).Draw(t, "below")
		n := k.ps[p].DespawnWhere(w, func(h handles.Local, e *arrow) bool {
			require.Equal(t, k.m.alive[h], *e)
			asked = append(asked, h)
			return e.Place.X < below
		})
		require.Equal(t, want, asked)
		for _, h := range want {
			if k.m.alive[h].Place.X < below {
				k.home(t, p, k.end(h))
				n--
			}
		}
		require.Zero(t, n)
	case "destroy":
		h := k.pick(t)
		if _, alive := k.m.alive[h]; alive {
			require.NoError(t, w.Destroy(h))
			k.end(h)
		}
	case "write":
		i := rapid.IntRange(0, k.ps[p].Len()-1).Draw(t, "slot")
		s := &k.m.slots[p][i]
		err := registry.Set(w, s.h, note{"written"})
		switch e, alive := k.m.alive[s.h]; {
		case s.gone:
			require.Error(t, err)
		case alive:
			require.NoError(t, err)
			e.Note.Text = "written"
			k.m.alive[s.h] = e
		default:
			require.NoError(t, err)
			s.idle.Note.Text = "written"
		}
	}
}

func (k *entitiesMachine) update(t *rapid.T) {
	fail := rapid.IntRange(0, 3).Draw(t, "fails") == 0
	before, died, from := k.m.clone(), maps.Clone(k.dead), len(k.all)
	err := k.r.Update(func(w *registry.Window) error {
		for range rapid.IntRange(1, 8).Draw(t, "ops") {
			k.step(t, w)
		}
		if fail {
			return errPlanned
		}
		return nil
	})
	require.Equal(t, fail, err != nil)
	if !fail {
		return
	}
	k.m, k.dead = before, died
	for _, h := range k.all[from:] {
		k.dead[h] = true
	}
	for p := range k.ps {
		for i := range k.m.slots[p] {
			if s := &k.m.slots[p][i]; !s.used && !s.gone {
				s.h = k.ps[p].Slot(i) // another one if the first was given to somebody
			}
		}
	}
}

func (k *entitiesMachine) agree(t *rapid.T) {
	require.NoError(t, k.r.Verify())
	for h := range k.dead {
		require.False(t, k.r.Alive(h), "%v lives again", h)
	}
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		for p, slots := range k.m.slots {
			want := &k.want[p]
			want.InUse = 0
			for i, s := range slots {
				require.Equal(t, s.h, k.ps[p].Slot(i))
				require.Equal(t, !s.gone, k.r.Alive(s.h))
				require.Equal(t, s.used, registry.Active(w, s.h))
				switch {
				case s.used:
					require.Equal(t, k.m.alive[s.h], read(k.t, w, s.h))
				case !s.gone:
					require.False(t, k.dead[s.h])
					require.Equal(t, s.idle, read(k.t, w, s.h))
				}
				if s.used || s.gone {
					want.InUse++
				}
			}
			want.Free = want.Cap - want.InUse
			require.Equal(t, *want, k.ps[p].Stats())
		}
		return nil
	}))
	require.Equal(t, len(k.m.alive), k.r.Stats().Live)
}

func TestEntitiesAgreeWithPlainSlices(t *testing.T) {
	configs := []registry.Config{{}, {MaxEntities: 40}, {Deterministic: true}, {TemporalFrames: 8}}
	rapid.Check(t, func(rt *rapid.T) {
		q := newQuiver(t, rapid.SampledFrom(configs).Draw(rt, "config"))
		k := &entitiesMachine{quiver: q, m: &entitiesModel{alive: map[handles.Local]arrow{}}, dead: map[handles.Local]bool{}}
		for _, n := range []int{5, rapid.IntRange(1, 30).Draw(rt, "slots")} {
			p := q.pool(n, bare)
			k.ps, k.want = append(k.ps, p), append(k.want, used(n, 0, 0, 0))
			slots := make([]slotModel, n)
			for i := range slots {
				slots[i] = slotModel{h: p.Slot(i), idle: bare}
			}
			k.m.slots = append(k.m.slots, slots)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"update": k.update, "update2": k.update,
			"outside": func(t *rapid.T) {
				h := k.pick(t)
				if _, alive := k.m.alive[h]; alive {
					require.NoError(t, k.r.Destroy(h))
					require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
					k.end(h)
				}
			},
			"process": func(t *rapid.T) {
				require.NoError(t, k.r.Update(func(w *registry.Window) error {
					w.ProcessDeferredDestructions()
					w.ConfirmLocalRecycles()
					return nil
				}))
				for p := range k.m.slots {
					for i, s := range k.m.slots[p] {
						if s.gone {
							k.home(t, p, i)
						}
					}
				}
			},
			"": k.agree,
		})
	})
}
