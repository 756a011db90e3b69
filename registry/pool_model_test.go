package registry_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// The herd is a registry with pools of two classes, plain entities beside them, and a model of all that in plain maps.

type (
	wide  struct{ A, B uint64 } // a pair of words
	bag   struct{ Items []int }
	medal struct{ N int64 } // of no class, added

	fighter struct {
		Wide   wide
		Title  title
		Bag    bag
		Spot   spot
		Frozen frozen
	}
	dart struct {
		Health health
		Wide   wide
	}
	rock struct { // never in a pool
		Health health
		Title  title
		Bag    bag
	}
)

// cells are the components of somebody; nil: has none.
type cells struct {
	Wide   *wide
	Health *health
	Title  *title
	Bag    *bag
	Spot   *spot
	Medal  *medal
	Frozen bool
}

// The classes, by number. Each makes cells of a value: 0 gives zeros.
var herdCells = []func(n int) cells{
	func(n int) cells {
		return cells{Wide: wideOf(n), Title: titleOf(n), Bag: bagOf(n), Spot: spotOf(n), Frozen: true}
	},
	func(n int) cells { return cells{Health: healthOf(n), Wide: wideOf(n)} },
	func(n int) cells { return cells{Health: healthOf(n), Title: titleOf(n), Bag: bagOf(n)} },
}

const (
	fighters = iota
	darts
	rocks
)

func wideOf(n int) *wide     { return &wide{uint64(n), uint64(2 * n)} }
func healthOf(n int) *health { return &health{int64(n)} }
func medalOf(n int) *medal   { return &medal{int64(n)} }
func spotOf(n int) *spot     { return &spot{X: float32(n), Y: 1 + float32(n)} }
func titleOf(n int) *title {
	if n == 0 {
		return &title{}
	}
	return &title{fmt.Sprint(n)}
}
func bagOf(n int) *bag {
	if n == 0 {
		return &bag{}
	}
	return &bag{[]int{n, n}}
}

func (c cells) fighter() *fighter {
	return &fighter{Wide: *c.Wide, Title: *c.Title, Bag: *c.Bag, Spot: *c.Spot}
}
func (c cells) dart() *dart { return &dart{Health: *c.Health, Wide: *c.Wide} }

// shareWith gives c the components of another that both have.
func (c *cells) shareWith(o cells) {
	share(c.Wide, o.Wide, &c.Wide)
	share(c.Health, o.Health, &c.Health)
	share(c.Title, o.Title, &c.Title)
	share(c.Bag, o.Bag, &c.Bag)
	share(c.Spot, o.Spot, &c.Spot)
}

func share[C any](mine, theirs *C, to **C) {
	if mine != nil && theirs != nil {
		*to = theirs
	}
}

// one is who is alive, but for those of idle slots.
type one struct {
	class     int
	cells     cells
	pen, slot int // -1: plain
	reserved  bool
	inactive  bool
	parent    handles.Local
	net       handles.Net
}

// stall is a slot of a pool.
type stall struct {
	h     handles.Local
	state stallState
	cells cells // while idle
}

type stallState int

const (
	idle    stallState = iota
	used               // by somebody alive
	waiting            // its entity has died
	retired            // and there was no name for another one
)

type herdModel struct {
	pens   [][]stall
	living map[handles.Local]one
}

func (m *herdModel) clone() *herdModel {
	c := &herdModel{living: maps.Clone(m.living)}
	for _, pen := range m.pens {
		c.pens = append(c.pens, slices.Clone(pen))
	}
	return c
}

// pen is a pool.
type pen struct {
	class         int
	block         *registry.Block
	initial       cells
	peak, refused int // never taken back
}

// herd steps the registry and the model side by side.
type herd struct {
	r        *registry.Registry
	fighters *registry.Class[fighter]
	darts    *registry.Class[dart]
	rocks    *registry.Class[rock]
	last     uint32 // generation
	max      int
	late     bool
	ringed   bool

	pens  []*pen
	m     *herdModel
	saved *herdModel // what a failing callback goes back to
	made  int        // pens that there were then

	struck map[handles.Local]bool // destroyed from outside, and the owner has not seen it
	hit    map[handles.Local]bool // destroyed from outside since the callback began, or last committed
	died   []handles.Local        // put into dead since then
	given  map[handles.Local]bool // what this callback has got or seen
	dead   map[handles.Local]bool
	nets   map[handles.Net]bool // that were somebody's, or a failed callback's
	newest map[uint32]uint32    // by local index: the highest generation in dead
	all    []handles.Local      // every handle ever seen
	bound  uint32

	events [2]map[handles.Local]int // Spawned, Destroyed
	places map[handles.Local]uint32 // as OnMove tells
	looped int                      // loops open
}

func newHerd(t require.TestingT, c registry.Config, bits uint8) *herd {
	var r *registry.Registry
	last := uint32(1<<32 - 1)
	if bits == 0 {
		var err error
		r, err = registry.New(c)
		require.NoError(t, err)
	} else {
		r, last = registry.NewNarrow(c, bits), 1<<bits-1
	}
	tier := archetype.Temporal
	if c.TemporalFrames == 0 {
		tier = archetype.Volatile
	}
	_, err := registry.RegisterComponent[wide](r, registry.InTier(tier))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[spot](r, registry.Split(), registry.InTier(tier))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[medal](r)
	require.NoError(t, err)
	k := &herd{
		r: r, last: last, max: r.Config().MaxEntities, late: c.Deterministic || c.TemporalFrames > 0, ringed: c.TemporalFrames > 0,
		m:      &herdModel{living: map[handles.Local]one{}},
		struck: map[handles.Local]bool{}, hit: map[handles.Local]bool{}, given: map[handles.Local]bool{}, dead: map[handles.Local]bool{}, nets: map[handles.Net]bool{},
		newest: map[uint32]uint32{}, places: map[handles.Local]uint32{},
		events: [2]map[handles.Local]int{{}, {}},
	}
	k.fighters, err = registry.RegisterClass[fighter](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	k.darts, err = registry.RegisterClass[dart](r)
	require.NoError(t, err)
	k.rocks, err = registry.RegisterClass[rock](r)
	require.NoError(t, err)
	return k
}

// listen has observers take notes.
func (k *herd) listen(t require.TestingT) {
	for i, kind := range []registry.EventKind{registry.Spawned, registry.Destroyed} {
		_, err := k.r.Observe(kind, func(_ *registry.Frame, batch []registry.Event) {
			for _, e := range batch {
				k.events[i][e.Entity]++
			}
		})
		require.NoError(t, err)
	}
	_, err := k.r.OnMove(func(batch []registry.Move) {
		for _, m := range batch {
			if at, ok := k.places[m.Entity]; ok && at != m.Old {
				panic(fmt.Sprintf("%v moves from %d, and was at %d", m.Entity, m.Old, at))
			}
			k.places[m.Entity] = m.New
		}
	})
	require.NoError(t, err)
}

func (k *herd) die(h handles.Local) {
	if !k.dead[h] {
		k.dead[h] = true
		k.died = append(k.died, h)
	}
	k.newest[h.Index()] = max(k.newest[h.Index()], h.Generation())
}

// stallOf finds the idle slot of a handle.
func (k *herd) stallOf(h handles.Local) *stall {
	for _, p := range k.m.pens {
		for i := range p {
			if p[i].h == h && p[i].state == idle {
				return &p[i]
			}
		}
	}
	return nil
}

// found says whether operations find somebody under h: who is alive, or of an idle slot.
func (k *herd) found(h handles.Local) (somebody, isIdle bool) {
	if k.struck[h] && !k.late {
		return false, false
	}
	if l, ok := k.m.living[h]; ok {
		return !l.reserved, false
	}
	s := k.stallOf(h)
	return s != nil, s != nil
}

// kill ends somebody, and the children. who has been struck already dies of that.
func (k *herd) kill(h handles.Local) {
	l := k.m.living[h]
	delete(k.m.living, h)
	k.die(h)
	if l.net != 0 {
		k.nets[l.net] = true
	}
	if l.pen >= 0 {
		k.m.pens[l.pen][l.slot].state = waiting
	}
	for c, cl := range k.m.living {
		if cl.parent == h && !k.struck[c] {
			k.kill(c)
		} else if cl.parent == h {
			cl.parent = 0 // once its parent is reclaimed; it is about to be dead
			k.m.living[c] = cl
		}
	}
}

// killIdle ends the entity of an idle slot.
func (k *herd) killIdle(s *stall) {
	k.die(s.h)
	s.state = waiting
}

// drain lets the owner see who was destroyed from outside.
func (k *herd) drain() {
	for h := range k.struck {
		delete(k.struck, h)
		k.die(h)
		if _, ok := k.m.living[h]; ok {
			k.kill(h)
		} else if s := k.stallOf(h); s != nil {
			k.killIdle(s)
		}
	}
}

// home reads the handle of a slot whose entity has died, and that has another one now, unless its name had no
// generation left.
func (k *herd) home(t *rapid.T, p, i int, reclaimed bool) {
	s := &k.m.pens[p][i]
	h := k.pens[p].block.Slot(i)
	if own := k.own(p, i); h == s.h || reclaimed && !k.r.Alive(h) {
		require.GreaterOrEqual(t, max(k.newest[own], k.r.Word(own).Generation()), k.last, "slot %d of %d stays empty after %v", i, p, s.h)
		if s.h, s.state = h, waiting; reclaimed {
			s.state = retired
		}
		k.die(h)
		return
	}
	require.Equal(t, k.own(p, i), h.Index())
	k.see(t, h)
	*s = stall{h: h, state: idle, cells: k.pens[p].initial}
}

// own is the local index of a slot.
func (k *herd) own(p, i int) uint32 { return k.pens[p].block.Own(i) }

// see notes a handle that was never seen.
func (k *herd) see(t *rapid.T, h handles.Local) {
	require.False(t, k.dead[h], "%v was dead", h)
	require.NotContains(t, k.m.living, h)
	require.True(t, k.r.Alive(h))
	k.all = append(k.all, h)
	k.given[h] = true
}

// processed reclaims in the model.
func (k *herd) processed(t *rapid.T) {
	for p := range k.m.pens {
		for i := range k.m.pens[p] {
			if k.m.pens[p][i].state == waiting {
				k.home(t, p, i, true)
			}
		}
	}
}

func (k *herd) pick(t *rapid.T) handles.Local {
	switch rapid.IntRange(0, 9).Draw(t, "whose") {
	case 0:
		return 0
	case 1:
		return handles.Local(rapid.Uint64().Draw(t, "forged"))
	case 2, 3, 4:
		if len(k.pens) > 0 {
			p := rapid.SampledFrom(k.pens).Draw(t, "pen")
			return p.block.Slot(rapid.IntRange(0, p.block.Len()-1).Draw(t, "slot"))
		}
	}
	if len(k.all) == 0 {
		return 0
	}
	from := max(0, len(k.all)-rapid.IntRange(1, 60).Draw(t, "window"))
	return rapid.SampledFrom(k.all[from:]).Draw(t, "handle")
}

func (k *herd) value(t *rapid.T) int { return rapid.IntRange(0, 5).Draw(t, "value") }

// roomLeft is how many more may live.
func (k *herd) roomLeft() int {
	n := k.max
	for _, p := range k.pens {
		n -= p.block.Len()
	}
	for h, l := range k.m.living {
		if l.pen < 0 && !k.struck[h] {
			n--
		}
	}
	return n
}

// makePen makes a pool in a window.
func (k *herd) makePen(t *rapid.T, w *registry.Window) {
	p := &pen{class: rapid.IntRange(fighters, darts).Draw(t, "class")}
	n := rapid.SampledFrom([]int{1, 2, 3, 5, 63, 64, 65, 130}).Draw(t, "slots")
	if len(k.pens) > 4 {
		return
	}
	p.initial = herdCells[p.class](k.value(t))
	var err error
	if p.class == fighters {
		p.block, err = registry.NewBlock(w, k.fighters, "", n, p.initial.fighter())
	} else {
		p.block, err = registry.NewBlock(w, k.darts, "", n, p.initial.dart())
	}
	if n > k.roomLeft() {
		require.ErrorIs(t, err, registry.ErrExhausted)
		return
	}
	require.NoError(t, err)
	require.Equal(t, n, p.block.Len())
	k.pens = append(k.pens, p)
	stalls := make([]stall, n)
	for i := range stalls {
		h := p.block.Slot(i)
		k.see(t, h)
		require.Equal(t, p.block.Slot(0).Index()+uint32(i), h.Index())
		stalls[i] = stall{h: h, cells: p.initial}
	}
	k.m.pens = append(k.m.pens, stalls)
}

// taken is the lowest idle slot.
func (k *herd) lowest(p int) int {
	return slices.IndexFunc(k.m.pens[p], func(s stall) bool { return s.state == idle && (k.late || !k.struck[s.h]) })
}

// take spawns in a pool: how says with what. lodged: it may get a name from outside.
func (k *herd) take(t *rapid.T, a registry.Access, p, how int, lodged bool) {
	pen := k.pens[p]
	var (
		h    handles.Local
		err  error
		with cells
		from handles.Local
		want error
	)
	i := k.lowest(p)
	switch how {
	case 0: // values
		with = herdCells[pen.class](k.value(t))
		if pen.class == fighters {
			h, err = registry.SpawnIn(a, k.fighters, pen.block, with.fighter())
		} else {
			h, err = registry.SpawnIn(a, k.darts, pen.block, with.dart())
		}
	case 1: // initial
		if i >= 0 {
			with = k.m.pens[p][i].cells
		}
		if pen.class == fighters {
			h, err = registry.SpawnIn(a, k.fighters, pen.block, nil)
		} else {
			h, err = registry.SpawnIn(a, k.darts, pen.block, nil)
		}
	default: // from a caller
		from = k.pick(t)
		ok, isIdle := k.found(from)
		if !ok {
			want = registry.ErrStale // or another
		} else if i >= 0 {
			with = k.m.pens[p][i].cells
			if isIdle {
				with.shareWith(k.stallOf(from).cells)
			} else {
				with.shareWith(k.m.living[from].cells)
			}
		}
		h, err = pen.block.SpawnFrom(a, from)
	}
	switch {
	case want != nil:
		require.Error(t, err)
		require.Zero(t, h)
		return
	case i < 0:
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.Zero(t, h)
		pen.refused++
		return
	}
	require.NoError(t, err)
	s := &k.m.pens[p][i]
	wasStruck := k.struck[s.h]
	if h != s.h {
		require.True(t, k.ringed && lodged, "slot %d of pool %d had %v, and spawning gave %v", i, p, s.h, h)
		k.see(t, h)
	} else if wasStruck {
		require.True(t, k.late)
	} else {
		require.True(t, k.r.Alive(h))
	}
	if wasStruck && h != s.h { // nobody hears of it any more
		delete(k.struck, s.h)
		k.die(s.h)
	}
	k.given[h] = true
	k.all = append(k.all, h)
	s.h, s.state = h, used
	require.Equal(t, h, pen.block.Slot(i))
	at, ok := pen.block.SlotOf(h)
	require.True(t, ok && at == i)
	k.m.living[h] = one{class: pen.class, cells: with, pen: p, slot: i}
	k.count(p)
}

// count looks at the counters.
func (k *herd) count(p int) (free int) {
	for _, s := range k.m.pens[p] {
		if s.state == idle {
			free++
		}
	}
	c := k.pens[p].block.Counts()
	if n := k.pens[p].block.Len() - free; c.Retired == 0 {
		k.pens[p].peak = max(k.pens[p].peak, n)
	}
	return free
}

// leave despawns.
func (k *herd) leave(t *rapid.T, a registry.Access, p int, h handles.Local) {
	err := k.pens[p].block.Despawn(a, h)
	l, living := k.m.living[h]
	s := k.stallOf(h)
	switch {
	case living && !l.reserved && l.pen != p && !k.struck[h], s != nil && !k.struck[h] && !slices.ContainsFunc(k.m.pens[p], func(s stall) bool { return s.h == h }):
		require.ErrorIs(t, err, registry.ErrInvalidHandle)
	case s != nil && !k.struck[h]:
		require.ErrorIs(t, err, registry.ErrIdle)
	case living && !l.reserved && !k.struck[h]:
		require.NoError(t, err)
		k.kill(h)
		k.home(t, p, l.slot, false)
	case living && !k.struck[h]:
		require.ErrorIs(t, err, registry.ErrNotSpawned)
	case k.stale(h):
		require.ErrorIs(t, err, registry.ErrStale)
	default:
		require.Error(t, err)
	}
	if err == nil {
		require.False(t, k.r.Alive(h))
	}
}

// leaveWhere despawns those that a condition says yes to.
func (k *herd) leaveWhere(t *rapid.T, a registry.Access, p int) {
	rest := handles.Local(rapid.IntRange(0, 2).Draw(t, "rest"))
	var want []handles.Local
	for _, s := range k.m.pens[p] {
		if s.state == used && !k.m.living[s.h].inactive {
			want = append(want, s.h)
		}
	}
	asked, left := 0, 0
	ask := func(h handles.Local, got cells) bool {
		for asked < len(want) { // a child may have gone with its parent, and who has been struck is not there, or dies of that
			next := want[asked]
			asked++
			if next == h {
				break
			}
			_, ok := k.m.living[next]
			require.True(t, !ok || k.struck[next], "%v is asked about before %v", h, next)
		}
		l, ok := k.m.living[h]
		require.True(t, ok, "%v is asked about", h)
		want := l.cells
		want.Medal = nil
		require.Equal(t, classOnly(l.class, want), got)
		if h.Index()%3 != uint32(rest) {
			return false
		}
		if !k.struck[h] {
			k.kill(h)
			left++
		}
		return true
	}
	var n int
	var err error
	if k.pens[p].class == fighters {
		n, err = registry.DespawnWhere(a, k.fighters, k.pens[p].block, func(h handles.Local, e *fighter) bool {
			return ask(h, cells{Wide: &e.Wide, Title: &e.Title, Bag: &e.Bag, Spot: &e.Spot})
		})
	} else {
		n, err = registry.DespawnWhere(a, k.darts, k.pens[p].block, func(h handles.Local, e *dart) bool {
			return ask(h, cells{Health: &e.Health, Wide: &e.Wide})
		})
	}
	require.NoError(t, err)
	require.Equal(t, left, n)
	for i := range k.m.pens[p] { // children of theirs in the same pool wait
		if s := &k.m.pens[p][i]; s.state == waiting && k.pens[p].block.Slot(i) != s.h {
			k.home(t, p, i, false)
		}
	}
}

// classOnly gives what a copy of the components of a class shows: zeros for those that were removed.
func classOnly(class int, c cells) cells {
	full := herdCells[class](0)
	full.Frozen = false
	if full.Spot != nil {
		full.Spot = &spot{}
	}
	full.shareWith(c)
	return full
}

// change adds or removes a component.
func change[C any](t *rapid.T, k *herd, w *registry.Window, h handles.Local, at func(*cells) **C, v *C) {
	ok, isIdle := k.found(h)
	add := rapid.Bool().Draw(t, "add")
	var err error
	if add {
		err = registry.Add(w, h, *v)
	} else {
		err = registry.Remove[C](w, h)
	}
	if !ok {
		require.Error(t, err)
		return
	}
	if isIdle {
		s := k.stallOf(h)
		switch field := at(&s.cells); {
		case add && *field != nil:
			require.NoError(t, err)
			*field = v
		case !add && *field == nil:
			require.ErrorIs(t, err, registry.ErrNoComponent)
		default:
			require.ErrorIs(t, err, registry.ErrIdle)
		}
		return
	}
	l := k.m.living[h]
	if field := at(&l.cells); !add && *field == nil {
		require.ErrorIs(t, err, registry.ErrNoComponent)
		return
	} else if add {
		*field = v
	} else {
		*field = nil
	}
	require.NoError(t, err)
	k.m.living[h] = l
}

// set writes a component of whoever has it.
func set[C any](t *rapid.T, k *herd, a registry.Access, h handles.Local, at func(*cells) **C, v *C) {
	err := registry.Set(a, h, *v)
	ok, isIdle := k.found(h)
	if !ok {
		require.Error(t, err)
		return
	}
	l := k.m.living[h]
	c := &l.cells
	if isIdle {
		c = &k.stallOf(h).cells
	}
	if field := at(c); *field == nil {
		require.ErrorIs(t, err, registry.ErrNoComponent)
		return
	} else {
		require.NoError(t, err)
		*field = v
	}
	if !isIdle {
		k.m.living[h] = l
	}
}

func cellWide(c *cells) **wide     { return &c.Wide }
func cellHealth(c *cells) **health { return &c.Health }
func cellTitle(c *cells) **title   { return &c.Title }
func cellBag(c *cells) **bag       { return &c.Bag }
func cellSpot(c *cells) **spot     { return &c.Spot }
func cellMedal(c *cells) **medal   { return &c.Medal }

// under says whether h is ancestor, or stands below it.
func (k *herd) under(h, ancestor handles.Local) bool {
	for h != 0 {
		if h == ancestor {
			return true
		}
		h = k.m.living[h].parent
	}
	return false
}

func (k *herd) destroy(t *rapid.T, h handles.Local, err error) {
	_, living := k.m.living[h]
	s := k.stallOf(h)
	switch {
	case k.struck[h]:
		require.ErrorIs(t, err, registry.ErrStale)
	case living:
		require.NoError(t, err)
		k.kill(h)
	case s != nil:
		require.NoError(t, err)
		k.killIdle(s)
	case k.stale(h):
		require.ErrorIs(t, err, registry.ErrStale)
	default:
		require.Error(t, err)
	}
}

// stale says whether h is known to have died. Where a callback that failed had given a slot's next name to somebody, and
// the slot has the one before again, nobody knows any more.
func (k *herd) stale(h handles.Local) bool {
	return (k.dead[h] || k.struck[h]) && k.r.Word(h.Index()).Generation() >= h.Generation()
}

// strike destroys from outside.
func (k *herd) strike(t *rapid.T, h handles.Local) {
	err := k.r.Destroy(h)
	_, living := k.m.living[h]
	if (living || k.stallOf(h) != nil) && !k.struck[h] {
		require.NoError(t, err)
		require.False(t, k.r.Alive(h))
		k.struck[h], k.hit[h] = true, true
		return
	}
	require.Error(t, err)
}

// save is where a failing callback goes back to from now on.
func (k *herd) save() {
	k.saved, k.made, k.died = k.m.clone(), len(k.pens), k.died[:0]
	k.hit = maps.Clone(k.struck)
	clear(k.given)
}

// inWindow does one operation in a window, on both sides.
func (k *herd) inWindow(t *rapid.T, w *registry.Window) {
	switch op := rapid.SampledFrom([]string{
		"take", "take", "take", "take", "take", "leave", "leave", "leave", "leave where", "destroy", "destroy", "strike", "batch", "plain", "plain", "reserved",
		"medal", "health", "title", "bag", "spot", "set", "set", "active", "parent", "parent", "net", "bind", "pen", "loop", "loop", "process", "confirm", "reset",
	}).Draw(t, "op"); op {
	case "take":
		k.take(t, w, k.penOr(t), rapid.IntRange(0, 2).Draw(t, "how"), true)
	case "leave":
		k.leave(t, w, k.penOr(t), k.pick(t))
	case "leave where":
		k.leaveWhere(t, w, k.penOr(t))
	case "destroy":
		h := k.pick(t)
		k.destroy(t, h, w.Destroy(h))
	case "strike":
		k.strike(t, k.pick(t))
	case "batch":
		hs := []handles.Local{k.pick(t), k.pick(t), k.pick(t)}
		want := 0
		for _, h := range hs {
			_, living := k.m.living[h]
			s := k.stallOf(h)
			if k.struck[h] || !living && s == nil {
				continue
			}
			want++
			if living {
				k.kill(h)
			} else {
				k.killIdle(s)
			}
		}
		require.Equal(t, want, w.DestroyBatch(hs))
	case "plain":
		c := herdCells[rocks](k.value(t))
		h, err := k.rocks.Spawn(w, rock{Health: *c.Health, Title: *c.Title, Bag: *c.Bag})
		if k.roomLeft() < 1 {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		require.NoError(t, err)
		k.see(t, h)
		k.m.living[h] = one{class: rocks, cells: c, pen: -1}
	case "reserved":
		h := k.pick(t)
		err := k.rocks.SpawnReserved(w, h, rock{})
		if l, ok := k.m.living[h]; !ok || !l.reserved || k.struck[h] {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		k.m.living[h] = one{class: rocks, cells: herdCells[rocks](0), pen: -1}
	case "medal":
		change(t, k, w, k.pick(t), cellMedal, medalOf(k.value(t)))
	case "health":
		change(t, k, w, k.pick(t), cellHealth, healthOf(k.value(t)))
	case "title":
		change(t, k, w, k.pick(t), cellTitle, titleOf(k.value(t)))
	case "bag":
		change(t, k, w, k.pick(t), cellBag, bagOf(k.value(t)))
	case "spot":
		change(t, k, w, k.pick(t), cellSpot, spotOf(k.value(t)))
	case "set":
		k.setAny(t, w)
	case "active":
		k.setActive(t, w)
	case "parent":
		child, parent := k.pick(t), k.pick(t)
		err := registry.SetParent(w, child, parent)
		ok, isIdle := k.found(child)
		parentOK, parentIdle := k.found(parent)
		switch {
		case !ok || parent != 0 && !parentOK && !isIdle:
			require.Error(t, err)
		case isIdle || parentIdle:
			require.ErrorIs(t, err, registry.ErrIdle)
		case parent != 0 && k.under(parent, child):
			require.ErrorIs(t, err, registry.ErrCycle)
		default:
			require.NoError(t, err)
			l := k.m.living[child]
			l.parent = parent
			k.m.living[child] = l
		}
	case "net", "bind":
		h := k.pick(t)
		var n handles.Net
		var err error
		if op == "net" {
			n, err = w.AssignNet(h)
		} else {
			k.bound++
			n = handles.NewNet(9, k.bound, 1)
			err = w.BindNet(h, n)
		}
		ok, isIdle := k.found(h)
		l := k.m.living[h]
		switch {
		case !ok:
			require.Error(t, err)
		case isIdle:
			require.ErrorIs(t, err, registry.ErrIdle)
		case l.net != 0 && op == "bind":
			require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
		case l.net != 0:
			require.Equal(t, l.net, n)
		default:
			require.NoError(t, err)
			require.False(t, k.nets[n], "%v was another's", n)
			l.net = n
			k.m.living[h] = l
		}
	case "pen":
		if rapid.IntRange(0, 2).Draw(t, "seldom") == 0 {
			k.makePen(t, w)
		}
	case "loop":
		if k.looped > 0 {
			return
		}
		registry.Iterate(w)
		if !k.late {
			k.drain()
		}
		k.looped++
		for range rapid.IntRange(1, 4).Draw(t, "ops") {
			k.inWindow(t, w)
		}
		k.looped--
		if rapid.IntRange(0, 4).Draw(t, "finish") > 0 {
			registry.Finish(w)
		}
	case "process":
		if rapid.IntRange(0, 2).Draw(t, "seldom") > 0 {
			return
		}
		w.ProcessDeferredDestructions()
		if !k.late {
			k.drain()
		}
		k.processed(t)
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	case "confirm":
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	case "reset":
		if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 {
			return
		}
		require.NoError(t, w.Reset())
		k.drain()
		for h := range k.m.living {
			k.kill(h)
		}
		for p := range k.m.pens {
			for i := range k.m.pens[p] {
				if s := &k.m.pens[p][i]; s.state == idle {
					k.killIdle(s)
				}
			}
		}
		k.processed(t)
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	}
}

// penOr is a pool, or 0 where there is none.
func (k *herd) penOr(t *rapid.T) int { return rapid.IntRange(0, len(k.pens)-1).Draw(t, "pool") }

func (k *herd) setAny(t *rapid.T, a registry.Access) {
	h := k.pick(t)
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		set(t, k, a, h, cellWide, wideOf(k.value(t)))
	case 1:
		set(t, k, a, h, cellTitle, titleOf(k.value(t)))
	case 2:
		set(t, k, a, h, cellBag, bagOf(k.value(t)))
	case 3:
		set(t, k, a, h, cellSpot, spotOf(k.value(t)))
	default:
		set(t, k, a, h, cellHealth, healthOf(k.value(t)))
	}
}

func (k *herd) setActive(t *rapid.T, a registry.Access) {
	h, on := k.pick(t), rapid.Bool().Draw(t, "on")
	err := registry.SetActive(a, h, on)
	ok, isIdle := k.found(h)
	switch {
	case !ok:
		require.Error(t, err)
	case isIdle && on:
		require.ErrorIs(t, err, registry.ErrIdle)
	default:
		require.NoError(t, err)
		if !isIdle {
			l := k.m.living[h]
			l.inactive = !on
			k.m.living[h] = l
		}
	}
}

// callback runs some operations in a window, which ends well, or with an error or a panic.
func (k *herd) callback(t *rapid.T, run func(fn func(w *registry.Window) error) error) {
	ending := rapid.SampledFrom([]string{"well", "well", "well", "error", "panic"}).Draw(t, "ending")
	k.save()
	nets := map[handles.Net]bool{}
	var failed error
	func() {
		defer func() {
			if v := recover(); v == "planned" {
				failed = errPlanned
			} else if v != nil {
				panic(v)
			}
		}()
		failed = run(func(w *registry.Window) error {
			for range rapid.IntRange(1, 7).Draw(t, "ops") {
				k.inWindow(t, w)
			}
			for _, l := range k.m.living {
				nets[l.net] = true
			}
			switch ending {
			case "error":
				return errPlanned
			case "panic":
				panic("planned")
			}
			return nil
		})
	}()
	var p *registry.PanicError
	if errors.As(failed, &p) && p.Value != "planned" {
		panic(p.Value) // of the test itself
	}
	if ending == "well" {
		require.NoError(t, failed)
	} else {
		require.True(t, errors.Is(failed, errPlanned) || p != nil, "%v", failed)
		k.undone(t, nets)
	}
	if !k.late {
		k.drain()
	}
}

// undone takes the callback back in the model. Idle slots whose names were given out have others.
func (k *herd) undone(t *rapid.T, nets map[handles.Net]bool) {
	k.m, k.pens = k.saved, k.pens[:k.made]
	for _, h := range k.died {
		if _, ok := k.m.living[h]; ok || k.stallOf(h) != nil {
			delete(k.dead, h)
		}
	}
	for n := range nets {
		k.nets[n] = true
	}
	for _, l := range k.m.living {
		delete(k.nets, l.net)
	}
	k.struck = k.hit
	taken := map[handles.Local]bool{}
	for h := range k.given {
		if _, living := k.m.living[h]; !living {
			taken[h] = true
			k.newest[h.Index()] = max(k.newest[h.Index()], h.Generation())
		}
	}
	for p := range k.m.pens {
		for i := range k.m.pens[p] {
			if k.m.pens[p][i].state == idle {
				k.undoneIdle(t, p, i, taken)
			}
		}
	}
	for h := range taken {
		k.die(h)
		delete(k.struck, h)
	}
	if !k.late {
		k.drain()
	}
}

// undoneIdle looks who is in an idle slot after a callback that failed.
func (k *herd) undoneIdle(t *rapid.T, p, i int, taken map[handles.Local]bool) {
	s := &k.m.pens[p][i]
	h, was := k.pens[p].block.Slot(i), s.h
	switch {
	case h != was: // its name was given to somebody, or to nobody any more
		require.Equal(t, k.own(p, i), h.Index())
		require.Greater(t, h.Generation(), was.Generation())
		require.True(t, taken[was], "slot %d of pool %d had %v, has %v, and nobody was told the first", i, p, was, h)
		require.True(t, k.r.Alive(h))
		require.False(t, k.dead[h])
		delete(taken, h)
		k.all = append(k.all, h)
		s.h = h
	case taken[h] && k.r.Alive(h):
		require.False(t, taken[h], "slot %d of pool %d still has %v, which was given to somebody", i, p, h)
	case taken[h]: // others have destroyed it, or it has no name left
		require.True(t, k.struck[h] || max(k.newest[h.Index()], h.Generation()) >= k.last)
		k.killIdle(s)
	}
}

// frame has a system do some operations, in a frame of an engine.
func (k *herd) frame(t *rapid.T) {
	core, err := k.r.Attach(registry.Hooks{OnError: func(err error) { require.NoError(t, err) }})
	require.NoError(t, err)
	defer core.Detach()
	for range rapid.IntRange(1, 3).Draw(t, "frames") {
		require.NoError(t, core.Enter(false))
		core.Advance()
		core.DrainDestroys()
		k.drain()
		core.ProcessDestructions()
		clear(k.given)
		k.processed(t)
		core.ConfirmLocal(core.FrameNumber())
		core.ConfirmNet(core.FrameNumber())
		core.OpenWindow()
		core.RunWishes()
		if rapid.Bool().Draw(t, "window") {
			k.callback(t, core.CallbackRecover)
		}
		core.CloseWindow()
		f := core.NewFrame()
		core.Deliver()
		core.Boundary()
		if !k.late {
			k.drain()
		}
		clear(k.given)
		core.System("herd", func() {
			for range rapid.IntRange(1, 6).Draw(t, "ops") {
				k.inFrame(t, f)
			}
		})
		core.Deliver()
		core.Boundary()
		if !k.late {
			k.drain()
		}
		core.EndFrame()
		core.Leave()
	}
	if k.ringed { // the next Update is the end of history
		core.Detach()
		require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
		k.processed(t)
		k.drain()
	}
}

func (k *herd) inFrame(t *rapid.T, f *registry.Frame) {
	switch rapid.SampledFrom([]string{"take", "take", "take", "leave", "leave", "leave where", "destroy", "strike", "set", "active"}).Draw(t, "op") {
	case "take":
		k.take(t, f, k.penOr(t), rapid.IntRange(0, 2).Draw(t, "how"), false)
	case "leave":
		k.leave(t, f, k.penOr(t), k.pick(t))
	case "leave where":
		k.leaveWhere(t, f, k.penOr(t))
	case "destroy":
		h := k.pick(t)
		k.destroy(t, h, f.Destroy(h))
	case "strike":
		k.strike(t, k.pick(t))
	case "set":
		k.setAny(t, f)
	case "active":
		k.setActive(t, f)
	}
}

// settle has the owner see who was destroyed from outside.
func (k *herd) settle(t *rapid.T) {
	for h := range k.struck {
		require.False(t, k.r.Alive(h))
	}
	if len(k.struck) > 0 {
		require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
		k.drain()
	}
}

// agree compares everything.
func (k *herd) agree(t *rapid.T) {
	k.settle(t)
	require.NoError(t, k.r.Verify())
	for h := range k.dead {
		require.False(t, k.r.Alive(h), "%v lives again", h)
	}
	k.agreeCounts(t)
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		active := map[handles.Local]bool{}
		for h, l := range k.m.living {
			if l.reserved {
				require.False(t, k.r.Alive(h))
				continue
			}
			k.compare(t, w, h, l.cells)
			require.Equal(t, !l.inactive, registry.Active(w, h))
			n, err := k.r.NetOf(h)
			require.NoError(t, err)
			require.Equal(t, l.net, n)
			if n != 0 {
				back, err := k.r.ResolveNet(n)
				require.NoError(t, err)
				require.Equal(t, h, back)
			}
			if !l.inactive {
				active[h] = true
			}
			at, ok := registry.CacheIndex(w, h)
			require.True(t, ok)
			if was, ok := k.places[h]; ok && k.events[0] != nil {
				require.Equal(t, was, at, "%v moved, and nobody was told", h)
			}
			k.places[h] = at
		}
		for n := range k.nets {
			require.False(t, n != 0 && k.r.AliveNet(n), "%v", n)
		}
		k.agreeSlots(t, w)
		for a := range registry.Iterate(w).Archetypes() {
			for _, ch := range registry.Iterate(w).Archetypes()[a].Chunks() {
				for slot, h := range ch.Entities() {
					require.Equal(t, h != 0 && active[h], ch.Bit(uint32(slot)), "%v in slot %d of %s", h, slot, ch.Archetype())
					delete(active, h)
				}
			}
		}
		require.Empty(t, active)
		return nil
	}))
	if k.events[0] != nil {
		k.agreeEvents(t)
	}
}

func (k *herd) agreeSlots(t *rapid.T, w *registry.Window) {
	for p, stalls := range k.m.pens {
		b := k.pens[p].block
		free := 0
		for i, s := range stalls {
			if s.state == retired { // with history that comes late
				require.False(t, k.r.Alive(b.Slot(i)))
				continue
			}
			require.Equal(t, s.h, b.Slot(i), "slot %d of pool %d", i, p)
			switch s.state {
			case idle:
				free++
				require.True(t, k.r.Alive(s.h))
				require.False(t, registry.Active(w, s.h))
				k.compare(t, w, s.h, s.cells)
				at, ok := registry.CacheIndex(w, s.h)
				require.True(t, ok)
				require.Equal(t, b.Base()+uint32(i), at)
				n, err := k.r.NetOf(s.h)
				require.NoError(t, err)
				require.Zero(t, n)
			case used:
				require.Contains(t, k.m.living, s.h)
			default:
				require.False(t, k.r.Alive(s.h))
			}
			at, ok := b.SlotOf(s.h)
			require.True(t, ok && at == i)
		}
		c := b.Counts()
		require.Equal(t, free, c.Free)
		require.Equal(t, b.Len(), c.InUse+c.Free+c.Retired)
		require.Equal(t, k.pens[p].refused, int(c.Refused))
		require.LessOrEqual(t, c.InUse, c.Peak)
	}
}

func (k *herd) agreeCounts(t *rapid.T) {
	s := k.r.Stats()
	var live, inactive, free, sum int
	for _, l := range k.m.living {
		if !l.reserved {
			live++
		}
		if l.inactive {
			inactive++
		}
	}
	for p := range k.m.pens {
		free += k.count(p)
	}
	require.Equal(t, live, s.Live)
	require.Equal(t, inactive, s.Inactive)
	require.Equal(t, free, s.Idle)
	require.LessOrEqual(t, s.Live+s.Idle+s.Tombstoned, s.Allocated)
	for _, a := range s.Archetypes {
		sum += a.Live
	}
	require.Equal(t, live, sum)
}

// agreeEvents checks that each life was told once, and each death of one.
func (k *herd) agreeEvents(t *rapid.T) {
	for h, n := range k.events[0] {
		require.Equal(t, 1, n, "births of %v", h)
		l, living := k.m.living[h]
		require.True(t, living && !l.reserved || k.events[1][h] == 1, "%v, alive: %v, died %d times", h, living, k.events[1][h])
	}
	for h, n := range k.events[1] {
		require.Equal(t, 1, n, "deaths of %v", h)
		require.Equal(t, 1, k.events[0][h], "births of %v", h)
		require.True(t, k.dead[h], "%v was said to be dead", h)
	}
	for h, l := range k.m.living {
		require.Equal(t, !l.reserved, k.events[0][h] == 1, "birth of %v", h)
	}
}

// compare compares the components of somebody.
func (k *herd) compare(t *rapid.T, w *registry.Window, h handles.Local, want cells) {
	require.True(t, k.r.Alive(h), "%v", h)
	g, err := k.r.Resolve(h)
	require.NoError(t, err)
	require.NotZero(t, g)
	var got cells
	peek(t, w, h, &got.Wide)
	peek(t, w, h, &got.Health)
	peek(t, w, h, &got.Title)
	peek(t, w, h, &got.Bag)
	peek(t, w, h, &got.Spot)
	peek(t, w, h, &got.Medal)
	got.Frozen = registry.Has[frozen](w, h)
	require.Equal(t, want, got, "%v", h)
}

func peek[C any](t *rapid.T, w *registry.Window, h handles.Local, to **C) {
	if !registry.Has[C](w, h) {
		return
	}
	v, err := registry.Peek[C](w, h)
	require.NoError(t, err)
	*to = &v
}

func TestPoolsAgreeWithPlainMaps(t *testing.T) {
	for _, c := range []struct {
		registry.Config
		bits uint8
	}{
		{registry.Config{}, 0},
		{registry.Config{MaxEntities: 200}, 3},
		{registry.Config{MaxEntities: 140, Deterministic: true}, 0},
		{registry.Config{MaxEntities: 140, Deterministic: true}, 2},
		{registry.Config{TemporalFrames: 8}, 0},
		{registry.Config{MaxEntities: 200, TemporalFrames: 8, Deterministic: true}, 3},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			run := 0
			rapid.Check(t, func(t *rapid.T) {
				if run++; run%3 == 1 { // a walk takes a tenth of a second: three times RAPID_CHECKS makes as many of them
					stepHerd(t, c.Config, c.bits)
				}
			})
		})
	}
}

func stepHerd(t *rapid.T, c registry.Config, bits uint8) {
	k := newHerd(t, c, bits)
	if rapid.Bool().Draw(t, "observed") {
		k.listen(t)
	} else {
		k.events[0] = nil
	}
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		for len(k.pens) == 0 {
			k.makePen(t, w)
		}
		return nil
	}))
	update := func(t *rapid.T) { k.callback(t, k.r.Update) }
	t.Repeat(map[string]func(*rapid.T){
		"update": update, "update2": update, "update3": update,
		"frame": k.frame,
		"reserve": func(t *rapid.T) {
			h, err := k.r.Reserve()
			if k.roomLeft() < 1 {
				require.ErrorIs(t, err, registry.ErrExhausted)
				return
			}
			require.NoError(t, err)
			require.False(t, k.dead[h], "%v is reserved, and was dead", h)
			k.all = append(k.all, h)
			k.m.living[h] = one{class: rocks, pen: -1, reserved: true}
		},
		"strike": func(t *rapid.T) {
			h := k.pick(t)
			k.strike(t, h)
		},
		"": k.agree,
	})
}
