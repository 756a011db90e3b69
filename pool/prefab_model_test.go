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

// prefabsModel is prefabs in plain maps: no blocks of slots, no undo, no handles that end.
type prefabsModel struct {
	pools map[string]*poolOf // of every prefab, with or without a pool
	state modelState         // what a failed callback takes back
}

// poolOf is what is declared and counted, and stays when a callback fails.
type poolOf struct {
	there                bool
	capacity, reach      int // reach: the most that may be in use though there are more slots; unlimited for all
	grow                 pool.Grow
	warm                 bool
	peak, refused, grown int
}

const unlimited = 1 << 30

type modelState struct {
	slots   map[string]int // of the blocks of each prefab
	waiting map[string]int // slots whose entity is dead, and which are not idle yet
	alive   map[handles.Local]being
	links   [][2]handles.Local // to be made at the next window
	outside []handles.Local    // destroyed by others, whose children live until the next window
}

// being is somebody alive.
type being struct {
	prefab string
	pooled bool
	above  handles.Local
}

func (s modelState) clone() modelState {
	return modelState{maps.Clone(s.slots), maps.Clone(s.waiting), maps.Clone(s.alive), slices.Clone(s.links), slices.Clone(s.outside)}
}

// modelPrefabs are the members of each prefab, with the place of their parent.
var modelPrefabs = map[string][]struct {
	id    string
	above int
}{
	"Train": {{"Train", -1}, {"Cart", 0}, {"Wheel", 1}, {"Wheel", 1}, {"Spark", 0}},
	"Cart":  {{"Cart", -1}, {"Wheel", 0}, {"Wheel", 0}},
	"Wheel": {{"Wheel", -1}},
	"Spark": {{"Spark", -1}},
}

func (m *prefabsModel) inUse(id string) int {
	n := m.state.waiting[id]
	for _, b := range m.state.alive {
		if b.pooled && b.prefab == id {
			n++
		}
	}
	return n
}

func (m *prefabsModel) limit(id string) int {
	return min(max(m.pools[id].capacity, m.state.slots[id]), m.pools[id].reach)
}

// demands are how many of each prefab one has, in the order in which they are met.
func demands(id string) (ids []string, n map[string]int) {
	n = map[string]int{}
	for _, member := range modelPrefabs[id] {
		if n[member.id]++; n[member.id] == 1 {
			ids = append(ids, member.id)
		}
	}
	return ids, n
}

// begin gives a prefab the pool that it has by default.
func (m *prefabsModel) begin(id string) *poolOf {
	p := m.pools[id]
	if !p.there && (id == "Spark" || m.state.slots[id] > 0) {
		p.there, p.capacity, p.reach, p.grow, p.warm = true, 16, unlimited, pool.Double(), false
	}
	return p
}

// spawns says whether a prefab can be spawned, and makes room for it.
func (m *prefabsModel) spawns(id string) bool {
	ids, n := demands(id)
	for _, id := range ids {
		p := m.begin(id)
		if !p.there {
			continue
		}
		if limit := m.limit(id); m.inUse(id)+n[id] > limit && p.grow.Next(limit, 0) == limit {
			p.refused++
			return false
		}
	}
	for _, id := range ids {
		p := m.pools[id]
		if !p.there {
			continue
		}
		limit, want := m.limit(id), m.inUse(id)+n[id]
		for limit < want {
			limit = p.grow.Next(limit, 0)
			p.grown++
			if p.reach != unlimited {
				p.reach = limit
			}
		}
		if want > m.state.slots[id] {
			m.state.slots[id] = limit
		}
		if p.reach >= m.state.slots[id] {
			p.reach = unlimited
		}
	}
	return true
}

// spawnsNow says whether a frame can spawn a prefab.
func (m *prefabsModel) spawnsNow(id string) bool {
	ids, n := demands(id)
	for _, id := range ids {
		if m.begin(id); m.state.slots[id]-m.inUse(id) < n[id] {
			m.pools[id].refused++
			return false
		}
	}
	return true
}

// declare is told what was declared, and says whether it can be.
func (m *prefabsModel) declare(id string, capacity int, g pool.Grow, warm, prefabKnown bool) bool {
	p := m.pools[id]
	reach, same := unlimited, p.there && p.capacity == capacity && p.grow == g && p.warm == warm
	if p.there {
		switch {
		case same:
			reach = p.reach
		case capacity < p.capacity:
			reach = capacity
		case p.reach != unlimited:
			reach = max(p.reach, capacity)
		}
	}
	if !same && reach >= m.state.slots[id] {
		reach = unlimited
	}
	if !same && m.inUse(id) > reach {
		return false
	}
	p.there, p.capacity, p.reach, p.grow, p.warm = true, capacity, reach, g, warm
	if warm && prefabKnown {
		m.state.slots[id] = max(m.state.slots[id], capacity)
	}
	return true
}

// kill ends h and all below it; home says whether its own slot is idle at once.
func (m *prefabsModel) kill(h handles.Local, home bool) {
	b, ok := m.state.alive[h]
	if !ok {
		return
	}
	delete(m.state.alive, h)
	if b.pooled && !home {
		m.state.waiting[b.prefab]++
	}
	m.killBelow(h)
}

func (m *prefabsModel) killBelow(h handles.Local) {
	for other, b := range maps.Clone(m.state.alive) {
		if b.above == h {
			m.kill(other, false)
		}
	}
}

// window is what happens when one opens.
func (m *prefabsModel) window() {
	for _, h := range m.state.outside {
		m.killBelow(h)
	}
	m.state.outside = nil
	for _, l := range m.state.links {
		child, ok := m.state.alive[l[0]]
		if _, above := m.state.alive[l[1]]; !above {
			m.kill(l[0], false)
		} else if ok {
			child.above = l[1]
			m.state.alive[l[0]] = child
		}
	}
	m.state.links = nil
}

// stats are those that a pool should have.
func (m *prefabsModel) stats(id string) pool.Stats {
	p, inUse := m.pools[id], m.inUse(id)
	p.peak = max(p.peak, inUse)
	limit := max(m.limit(id), inUse)
	return pool.Stats{
		Cap: limit, InUse: inUse, Free: limit - inUse, Peak: p.peak, Built: m.state.slots[id],
		Refused: p.refused, Grown: p.grown, Grow: p.grow, Warm: p.warm,
	}
}

// prefabMachine is prefabs and their model.
type prefabMachine struct {
	*worlds
	m     *prefabsModel
	dead  []handles.Local
	born  []handles.Local         // told by an observer since the last window opened
	frame func(f *registry.Frame) // to be run in a frame, once
}

func newPrefabMachine(t *rapid.T, tb testing.TB) *prefabMachine {
	kind := rapid.SampledFrom(slices.Sorted(maps.Keys(everyRegistry))).Draw(t, "registry")
	s := &prefabMachine{worlds: newWorlds(tb, everyRegistry[kind]), m: &prefabsModel{pools: map[string]*poolOf{}}}
	require.NoError(t, pool.Define(s.Prefabs, "Spark", s.glints, glint{}, pool.Pooled()))
	s.m.state = modelState{slots: map[string]int{}, waiting: map[string]int{}, alive: map[handles.Local]being{}}
	for id := range modelPrefabs {
		s.m.pools[id] = &poolOf{}
	}
	_, err := s.reg.Observe(registry.Spawned, func(f *registry.Frame, events []registry.Event) {
		for _, e := range events {
			s.born = append(s.born, e.Entity)
		}
		if fn := s.frame; fn != nil {
			s.frame = nil
			fn(f)
		}
	})
	require.NoError(t, err)
	return s
}

func (s *prefabMachine) pick(t *rapid.T) handles.Local {
	if len(s.m.state.alive) == 0 {
		t.Skip("nobody is alive")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(s.m.state.alive))).Draw(t, "who")
}

// update opens a window in both.
func (s *prefabMachine) update(t *rapid.T, fn func(w *registry.Window) error) {
	s.born = s.born[:0]
	s.changed(func() { s.m.window() })
	require.NoError(t, s.reg.Update(fn))
}

// changed notes who dies in the model by fn.
func (s *prefabMachine) changed(fn func()) {
	before := slices.Collect(maps.Keys(s.m.state.alive))
	fn()
	for _, h := range before {
		if _, ok := s.m.state.alive[h]; !ok {
			s.dead = append(s.dead, h)
		}
	}
}

// spawned tells the model who the members of a prefab are, and looks at them in another window.
func (s *prefabMachine) spawned(t *rapid.T, id string, hs []handles.Local, later bool) {
	members := modelPrefabs[id]
	require.Len(t, hs, len(members))
	hs = slices.Clone(hs)
	for i, member := range members {
		require.NotContains(t, s.dead, hs[i])
		require.NotContains(t, s.m.state.alive, hs[i])
		b := being{prefab: member.id, pooled: later || s.m.pools[member.id].there}
		if member.above >= 0 && !later {
			b.above = hs[member.above]
		} else if member.above >= 0 {
			s.m.state.links = append(s.m.state.links, [2]handles.Local{hs[i], hs[member.above]})
		}
		s.m.state.alive[hs[i]] = b
		s.m.stats(member.id) // notes the peak
	}
	s.update(t, func(w *registry.Window) error {
		for i, member := range members {
			want := map[string]site{"Train": {1, 2}, "Cart": {1, 2}, "Wheel": {3, 4}}[member.id]
			got, err := registry.Peek[site](w, hs[i])
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.False(t, registry.Has[soaked](w, hs[i]))
			require.NoError(t, registry.Set(w, hs[i], site{float32(i), -1})) // not what the next one is to find
		}
		return nil
	})
}

var prefabIDs = slices.Sorted(maps.Keys(modelPrefabs))

func (s *prefabMachine) spawn(t *rapid.T, w *registry.Window) (id string, h handles.Local, ok bool) {
	id = rapid.SampledFrom(prefabIDs).Draw(t, "prefab")
	want := s.m.spawns(id)
	h, err := s.Spawn(w, id)
	if !want {
		require.ErrorIs(t, err, pool.ErrExhausted)
		return id, 0, false
	}
	require.NoError(t, err)
	return id, h, true
}

func (s *prefabMachine) giveBack(t *rapid.T, w *registry.Window) {
	h := s.pick(t)
	require.NoError(t, s.GiveBack(w, h))
	s.changed(func() { s.m.kill(h, s.m.state.alive[h].pooled) })
	require.ErrorIs(t, s.GiveBack(w, h), registry.ErrStale)
}

func (s *prefabMachine) declares(t *rapid.T, w *registry.Window) {
	id := rapid.SampledFrom(append(prefabIDs, "Train")).Draw(t, "prefab")
	capacity := rapid.IntRange(0, 9).Draw(t, "capacity")
	g := rapid.SampledFrom([]pool.Grow{pool.Fixed(), pool.Additive(1), pool.Additive(3), pool.Double()}).Draw(t, "grow")
	warm := rapid.Bool().Draw(t, "warm")
	want := s.m.declare(id, capacity, g, warm, true)
	err := s.Declare(w, id, capacity, g, warm)
	if !want {
		require.ErrorIs(t, err, pool.ErrInUse)
		return
	}
	require.NoError(t, err)
}

// agree compares all that can be seen.
func (s *prefabMachine) agree(t *rapid.T) {
	want := map[string]pool.Stats{}
	for id, p := range s.m.pools {
		if p.there {
			want[id] = s.m.stats(id)
		}
	}
	got, ids := map[string]pool.Stats{}, []string{}
	for id, st := range s.Stats() {
		got[id] = st
		ids = append(ids, id)
	}
	require.Equal(t, want, got)
	require.True(t, slices.IsSorted(ids))
	for h := range s.m.state.alive {
		require.True(t, s.reg.Alive(h), "%v", h)
	}
	for _, h := range s.dead {
		require.False(t, s.reg.Alive(h), "%v", h)
	}
	require.NoError(t, s.reg.Verify())
}

func TestPrefabsAgreeWithAPlainModel(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		s := newPrefabMachine(t2, t)
		require.NoError(t2, pool.Define(s.Prefabs, "Train", s.carts, newCart(), pool.Child("Cart"), pool.Child("Spark")))
		t2.Repeat(map[string]func(*rapid.T){
			"spawn": func(t *rapid.T) {
				var id string
				ok := false
				s.update(t, func(w *registry.Window) error {
					id, _, ok = s.spawn(t, w)
					return nil
				})
				if ok {
					s.spawned(t, id, s.born, false)
				}
			},
			"spawn in a frame": func(t *rapid.T) {
				id := rapid.SampledFrom(prefabIDs).Draw(t, "prefab")
				var trigger handles.Local
				var err error
				want := false
				s.frame = func(f *registry.Frame) {
					want = s.m.spawnsNow(id)
					_, err = s.SpawnNow(f, id)
				}
				s.update(t, func(w *registry.Window) error {
					trigger = sure(s.glints.Spawn(w, glint{}))
					return nil
				})
				members := slices.DeleteFunc(slices.Clone(s.born), func(h handles.Local) bool { return h == trigger })
				if want {
					require.NoError(t, err)
					s.spawned(t, id, members, true)
				} else {
					require.ErrorIs(t, err, pool.ErrExhausted)
					require.Empty(t, members)
				}
				s.update(t, func(w *registry.Window) error { return w.Destroy(trigger) })
			},
			"give back": func(t *rapid.T) {
				s.update(t, func(w *registry.Window) error { s.giveBack(t, w); return nil })
			},
			"destroy": func(t *rapid.T) {
				h := s.pick(t)
				s.update(t, func(w *registry.Window) error {
					if _, ok := s.m.state.alive[h]; ok { // else it has died just now
						require.NoError(t, w.Destroy(h))
						s.changed(func() { s.m.kill(h, false) })
					}
					return nil
				})
			},
			"destroy from outside": func(t *rapid.T) {
				h := s.pick(t)
				require.NoError(t, s.reg.Destroy(h))
				s.dead = append(s.dead, h)
				if b := s.m.state.alive[h]; b.pooled {
					s.m.state.waiting[b.prefab]++
				}
				delete(s.m.state.alive, h)
				s.m.state.outside = append(s.m.state.outside, h)
			},
			"change": func(t *rapid.T) {
				h := s.pick(t)
				s.update(t, func(w *registry.Window) error {
					if _, ok := s.m.state.alive[h]; ok {
						require.NoError(t, registry.Add(w, h, soaked{1}))
						require.NoError(t, registry.Remove[soaked](w, h))
						require.NoError(t, registry.Add(w, h, soaked{2}))
					}
					return nil
				})
			},
			"declare": func(t *rapid.T) {
				s.update(t, func(w *registry.Window) error { s.declares(t, w); return nil })
			},
			"fail": func(t *rapid.T) {
				s.born = s.born[:0]
				s.changed(s.m.window)
				was, dead := s.m.state.clone(), slices.Clone(s.dead)
				var burnt []handles.Local
				require.ErrorIs(t, s.reg.Update(func(w *registry.Window) error {
					for range rapid.IntRange(1, 4).Draw(t, "steps") {
						switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
						case step < 2:
							if id, h, ok := s.spawn(t, w); ok {
								burnt = append(burnt, h)
								ids, n := demands(id)
								for _, id := range ids { // they were in use, if not for long
									if p := s.m.pools[id]; p.there {
										p.peak = max(p.peak, s.m.inUse(id)+n[id])
									}
								}
								return errFailed // whose children are is not known before it ends
							}
						case step == 2 && len(s.m.state.alive) > 0:
							s.giveBack(t, w)
						default:
							s.declares(t, w)
						}
					}
					return errFailed
				}), errFailed)
				s.m.state, s.dead = was, append(dead, burnt...)
			},
			"settle": func(t *rapid.T) {
				s.update(t, func(w *registry.Window) error { w.ProcessDeferredDestructions(); return nil })
				clear(s.m.state.waiting)
			},
			"": s.agree,
		})
	})
}
