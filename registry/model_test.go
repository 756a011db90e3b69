package registry_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	self   struct{ H handles.Local }
	health struct{ Points int64 }
	title  struct{ Text string }
	frozen struct{}
	spot   struct {
		X, Y float32
		In   struct{ N uint8 }
	}
	soldier struct {
		Self   self
		Health health
	}
	scout struct {
		Self  self
		Title title
		Spot  spot
	}
)

// life is what the model knows of an entity.
type life struct {
	class    int // 0 soldier, 1 scout
	reserved bool
	inactive bool
	health   *int64
	title    *string
	spot     *spot
	frozen   bool
	parent   handles.Local
	net      handles.Net
}

// model is the registry in plain maps.
type model struct {
	alive   map[handles.Local]life
	dead    map[handles.Local]bool
	obits   map[handles.Local]registry.Obituary // of the dead, but for those that a failed callback had
	cause   string                              // of the deaths to come
	deadNet map[handles.Net]bool
	dying   int // reclaimed by the next process
	dyingN  int // of these, with a net handle
	pending int
	free    int
	netPend int
	netFree int
}

func newModel() *model {
	return &model{
		alive: map[handles.Local]life{}, dead: map[handles.Local]bool{}, obits: map[handles.Local]registry.Obituary{}, deadNet: map[handles.Net]bool{},
	}
}

func (m *model) clone() *model {
	c := *m
	c.alive, c.dead, c.obits, c.deadNet = maps.Clone(m.alive), maps.Clone(m.dead), maps.Clone(m.obits), maps.Clone(m.deadNet)
	return &c
}

func (m *model) takeIndex() {
	if m.free > 0 {
		m.free--
	}
}

func (m *model) kill(h handles.Local) {
	l := m.alive[h]
	delete(m.alive, h)
	m.dead[h] = true
	m.obits[h] = registry.Obituary{Cause: m.cause}
	m.dying++
	if l.net != 0 {
		m.dyingN++
		m.deadNet[l.net] = true
	}
	for c, cl := range m.alive {
		if cl.parent == h {
			m.kill(c)
		}
	}
}

func (m *model) under(h, ancestor handles.Local) bool {
	for h != 0 {
		if h == ancestor {
			return true
		}
		h = m.alive[h].parent
	}
	return false
}

// machine steps the registry and the model side by side.
type machine struct {
	r        *registry.Registry
	soldiers *registry.Class[soldier]
	scouts   *registry.Class[scout]
	max      int
	m        *model
	all      []handles.Local                     // every handle ever seen
	before   map[handles.Local]registry.Obituary // who died before the state was saved that this one began with
}

func newMachine(t require.TestingT, c registry.Config) *machine {
	r, err := registry.New(c)
	require.NoError(t, err)
	_, err = registry.RegisterComponent[spot](r, registry.Split(), registry.InTier(1))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[frozen](r)
	require.NoError(t, err)
	k := &machine{r: r, max: r.Config().MaxEntities, m: newModel()}
	k.soldiers, err = registry.RegisterClass[soldier](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	k.scouts, err = registry.RegisterClass[scout](r)
	require.NoError(t, err)
	return k
}

var errPlanned = errors.New("planned failure")

// pick draws a handle: mostly a living one.
func (k *machine) pick(t *rapid.T) handles.Local {
	if len(k.all) == 0 {
		return handles.Local(rapid.Uint64().Draw(t, "forged"))
	}
	from := max(0, len(k.all)-rapid.IntRange(1, 200).Draw(t, "window"))
	return rapid.SampledFrom(k.all[from:]).Draw(t, "handle")
}

func (k *machine) born(h handles.Local, l life) {
	k.all = append(k.all, h)
	k.m.takeIndex()
	k.m.alive[h] = l
}

// inWindow does one random operation in a window, on both sides.
func (k *machine) inWindow(t *rapid.T, w *registry.Window) {
	m := k.m
	h := k.pick(t)
	l, known := m.alive[h]
	alive := known && !l.reserved
	deadErr := func(err error) {
		switch {
		case known:
			require.ErrorIs(t, err, registry.ErrNotSpawned)
		case m.dead[h]:
			require.ErrorIs(t, err, registry.ErrStale)
		default:
			require.Error(t, err)
		}
	}
	switch rapid.SampledFrom([]string{"spawn", "spawn", "scout", "batch", "reserved", "destroy", "destroy", "outside", "add", "remove", "set", "frozen", "active", "parent", "net", "untitle", "named"}).Draw(t, "op") {
	case "spawn":
		p := rapid.Int64().Draw(t, "points")
		n, err := k.soldiers.Spawn(w, soldier{Health: health{p}})
		if len(m.alive) >= k.max {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		require.NoError(t, err)
		require.NoError(t, registry.Set(w, n, self{n}))
		k.born(n, life{health: &p})
	case "scout":
		s := rapid.String().Draw(t, "text")
		n, err := k.scouts.Spawn(w, scout{Title: title{s}, Spot: spot{X: 1, Y: 2}})
		if len(m.alive) >= k.max {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		require.NoError(t, err)
		require.NoError(t, registry.Set(w, n, self{n}))
		k.born(n, life{class: 1, title: &s, spot: &spot{X: 1, Y: 2}})
	case "batch":
		n := rapid.IntRange(0, 80).Draw(t, "n")
		hs, err := k.soldiers.SpawnBatch(w, n, func(i int, e *soldier) { e.Health.Points = int64(i) })
		if len(m.alive)+n > k.max {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		require.NoError(t, err)
		for i, h := range hs {
			require.NoError(t, registry.Set(w, h, self{h}))
			p := int64(i)
			k.born(h, life{health: &p})
		}
	case "reserved":
		err := k.soldiers.SpawnReserved(w, h, soldier{Self: self{h}})
		if !known || !l.reserved {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		var zero int64
		m.alive[h] = life{health: &zero}
	case "destroy", "outside":
		err := w.Destroy(h)
		if !known {
			deadErr(err)
			return
		}
		require.NoError(t, err)
		m.kill(h)
	case "add", "set":
		p := rapid.Int64().Draw(t, "points")
		add := rapid.Bool().Draw(t, "add")
		var err error
		if add {
			err = registry.Add(w, h, health{p})
		} else {
			err = registry.Set(w, h, health{p})
		}
		switch {
		case !alive:
			deadErr(err)
		case !add && l.health == nil:
			require.ErrorIs(t, err, registry.ErrNoComponent)
		default:
			require.NoError(t, err)
			l.health = &p
			m.alive[h] = l
		}
	case "remove":
		err := registry.Remove[health](w, h)
		switch {
		case !alive:
			deadErr(err)
		case l.health == nil:
			require.ErrorIs(t, err, registry.ErrNoComponent)
		default:
			require.NoError(t, err)
			l.health = nil
			m.alive[h] = l
		}
	case "untitle":
		n := registry.RemoveBatch[title](w, []handles.Local{h, h, 0})
		want := 0
		if alive && l.title != nil {
			want = 1
			l.title = nil
			m.alive[h] = l
		}
		require.Equal(t, want, n)
	case "frozen":
		err := registry.Add(w, h, frozen{})
		if !alive {
			deadErr(err)
			return
		}
		require.NoError(t, err)
		l.frozen = true
		m.alive[h] = l
	case "active":
		on := rapid.Bool().Draw(t, "on")
		err := registry.SetActive(w, h, on)
		if !alive {
			deadErr(err)
			return
		}
		require.NoError(t, err)
		l.inactive = !on
		m.alive[h] = l
	case "parent":
		p := k.pick(t)
		pl, ok := m.alive[p]
		err := registry.SetParent(w, h, p)
		switch {
		case !alive:
			deadErr(err)
		case p != 0 && (!ok || pl.reserved):
			require.Error(t, err)
		case p != 0 && m.under(p, h):
			require.ErrorIs(t, err, registry.ErrCycle)
		default:
			require.NoError(t, err)
			l.parent = p
			m.alive[h] = l
		}
	case "named":
		m.cause = rapid.SampledFrom([]string{"the arrow", "the flood", ""}).Draw(t, "cause")
		w.Named(m.cause)
	case "net":
		n, err := w.AssignNet(h)
		if !alive {
			deadErr(err)
			return
		}
		require.NoError(t, err)
		if l.net != 0 {
			require.Equal(t, l.net, n)
			return
		}
		require.False(t, m.deadNet[n])
		if m.netFree > 0 {
			m.netFree--
		}
		l.net = n
		m.alive[h] = l
	}
}

// update runs some operations in one window, which fails now and then.
func (k *machine) update(t *rapid.T) {
	fail := rapid.IntRange(0, 4).Draw(t, "fail") == 0
	before, seen := k.m.clone(), len(k.all)
	run := func(w *registry.Window) error {
		for range rapid.IntRange(1, 6).Draw(t, "ops") {
			k.inWindow(t, w)
		}
		if fail {
			return errPlanned
		}
		return nil
	}
	err := k.r.Update(run)
	k.m.cause = ""
	if !fail {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, errPlanned)
	issued := k.all[seen:]
	for _, n := range k.m.alive {
		if n.net != 0 {
			before.markNet(n.net)
		}
	}
	k.m = before
	for _, h := range issued {
		k.m.dead[h] = true
	}
}

// markNet notes a net handle that a failed callback issued, unless somebody has it.
func (m *model) markNet(n handles.Net) {
	for _, l := range m.alive {
		if l.net == n {
			return
		}
	}
	m.deadNet[n] = true
}

// agree compares everything.
func (k *machine) agree(t *rapid.T) {
	require.NoError(t, k.r.Verify())
	s := k.r.Stats()
	live, reserved, inactive, nets := 0, 0, 0, 0
	for _, l := range k.m.alive {
		switch {
		case l.reserved:
			reserved++
		default:
			live++
		}
		if l.inactive {
			inactive++
		}
		if l.net != 0 {
			nets++
		}
	}
	require.Equal(t, live, s.Live, "live")
	require.Equal(t, inactive, s.Inactive, "inactive")
	require.Equal(t, k.m.dying, s.PendingDestructions, "pending destructions")
	require.Equal(t, live+reserved+k.m.dying, s.Local.Issued, "local issued")
	require.Equal(t, k.m.free, s.Local.Free, "local free")
	require.Equal(t, k.m.pending, s.Local.Pending, "local pending")
	require.Equal(t, nets+k.m.dyingN, s.Net.Issued, "net issued")
	require.Equal(t, k.m.netPend, s.Net.Pending, "net pending")
	require.Equal(t, k.m.netFree, s.Net.Free, "net free")
	sum := 0
	for _, a := range s.Archetypes {
		sum += a.Live
	}
	require.Equal(t, s.Live, sum)
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		for _, h := range k.all[max(0, len(k.all)-100):] {
			k.compare(t, w, h)
		}
		return nil
	}))
}

func (k *machine) compare(t *rapid.T, w *registry.Window, h handles.Local) {
	l, ok := k.m.alive[h]
	if !ok || l.reserved {
		want := registry.ErrStale
		if ok {
			want = registry.ErrNotSpawned
		}
		_, err := registry.Get[self](w, h)
		require.ErrorIs(t, err, want)
		_, err = k.r.Resolve(h)
		require.ErrorIs(t, err, want)
		require.False(t, k.r.Alive(h))
		if _, ok := k.before[h]; ok { // obituaries are in no state
			return
		}
		if want, ok := k.m.obits[h]; ok { // there are fewer deaths than are remembered
			got, ok := k.r.Obituary(h)
			require.True(t, ok, "%v has no obituary", h)
			require.Equal(t, want, got)
			return
		}
	}
	_, ok = k.r.Obituary(h)
	require.False(t, ok, "%v is not dead, or never was alive", h)
	if l, ok := k.m.alive[h]; !ok || l.reserved {
		return
	}
	require.True(t, k.r.Alive(h))
	require.Equal(t, !l.inactive, registry.Active(w, h))
	s, err := registry.Get[self](w, h)
	require.NoError(t, err)
	require.Equal(t, h, s.H)
	p, err := registry.Peek[health](w, h)
	if l.health == nil {
		require.ErrorIs(t, err, registry.ErrNoComponent)
	} else {
		require.NoError(t, err)
		require.Equal(t, *l.health, p.Points)
	}
	require.Equal(t, l.title != nil, registry.Has[title](w, h))
	if l.title != nil {
		got, err := registry.Peek[title](w, h)
		require.NoError(t, err)
		require.Equal(t, *l.title, got.Text)
	}
	if l.spot != nil {
		got, err := registry.Peek[spot](w, h)
		require.NoError(t, err)
		require.Equal(t, *l.spot, got)
	}
	require.Equal(t, l.frozen, registry.Has[frozen](w, h))
	n, err := k.r.NetOf(h)
	require.NoError(t, err)
	require.Equal(t, l.net, n)
	if n != 0 {
		back, err := k.r.ResolveNet(n)
		require.NoError(t, err)
		require.Equal(t, h, back)
	}
}

func TestLifecycleAgreesWithPlainMaps(t *testing.T) {
	for _, c := range []registry.Config{{MaxEntities: 150}, {}, {Deterministic: true, MaxEntities: 300}} {
		rapid.Check(t, func(t *rapid.T) {
			k := newMachine(t, c)
			t.Repeat(map[string]func(*rapid.T){
				"update":  k.update,
				"update2": k.update,
				"reserve": func(t *rapid.T) {
					h, err := k.r.Reserve()
					if len(k.m.alive) >= k.max {
						require.ErrorIs(t, err, registry.ErrExhausted)
						return
					}
					require.NoError(t, err)
					k.born(h, life{reserved: true})
				},
				"destroy": func(t *rapid.T) {
					h := k.pick(t)
					_, known := k.m.alive[h]
					err := k.r.Destroy(h)
					require.Equal(t, known, err == nil)
					if known {
						require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
						k.m.kill(h)
					}
				},
				"process": func(t *rapid.T) {
					require.NoError(t, k.r.Update(func(w *registry.Window) error {
						require.Equal(t, k.m.dying, w.ProcessDeferredDestructions())
						return nil
					}))
					k.m.pending += k.m.dying
					k.m.netPend += k.m.dyingN
					k.m.dying, k.m.dyingN = 0, 0
				},
				"confirm": func(t *rapid.T) {
					require.NoError(t, k.r.Update(func(w *registry.Window) error {
						require.Equal(t, k.m.pending, w.ConfirmLocalRecycles())
						require.Equal(t, k.m.netPend, w.ConfirmNetRecycles())
						return nil
					}))
					k.m.free += k.m.pending
					k.m.netFree += k.m.netPend
					k.m.pending, k.m.netPend = 0, 0
				},
				"": k.agree,
			})
		})
	}
}
