package registry_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// The herd is a registry with pools of two classes, plain entities beside them, and a model of all that in plain maps.

type (
	wide  struct{ A, B uint64 } // a pair of words
	twin  struct{ A, B float64 }
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
	shard struct { // of pairs only
		Wide wide
		Twin twin
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
	Twin   *twin
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
	func(n int) cells { return cells{Wide: wideOf(n), Twin: twinOf(n)} },
	func(n int) cells { return cells{Health: healthOf(n), Title: titleOf(n), Bag: bagOf(n)} },
}

const (
	fighters = iota
	darts
	shards
	rocks
)

func wideOf(n int) *wide     { return &wide{uint64(n), uint64(2 * n)} }
func twinOf(n int) *twin     { return &twin{float64(n), -float64(n)} }
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
func (c cells) dart() *dart   { return &dart{Health: *c.Health, Wide: *c.Wide} }
func (c cells) shard() *shard { return &shard{Wide: *c.Wide, Twin: *c.Twin} }

// shareWith gives c the components of another that both have.
func (c *cells) shareWith(o cells) {
	share(c.Wide, o.Wide, &c.Wide)
	share(c.Twin, o.Twin, &c.Twin)
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
	shards   *registry.Class[shard]
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
	k.shards, err = registry.RegisterClass[shard](r)
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
