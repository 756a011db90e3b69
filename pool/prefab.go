package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// maxMembers bounds the entities of one prefab: a few definitions that double can ask for more than there are atoms.
const maxMembers = 1 << 16

// Prefabs makes entities by name. A prefab is a class with the values that its entities start with, and children, which
// are prefabs again: they are spawned with it, below it, and die with it. One that has a pool is spawned from idle slots,
// and goes back there in whatever way it dies, with its first values; the others are spawned plainly.
//
// A prefab has a pool when it is declared, by Declare or in a file, or defined as Pooled: then the pool has a capacity
// of 16, doubles, and is made by the first spawn. It also has one when the registry has blocks of its name, as after a
// saved world was loaded. A pool grows by further blocks, which are named after the prefab and belong to the registry: a
// failed callback, going back, and loading give and take them as anything else. What was declared is no part of that, but
// of how the program is set up, as its systems are: a failed callback leaves it, and a journal does not have it. So who
// replays a world, in which systems put Spawn off, declares the same, with Configure.
//
// Capacity is what may be in use before the pool grows. Blocks are never given back: a pool declared smaller than it was
// has the room it had, and just fewer that may be in use.
//
// Additive with a small step makes many small blocks, and each is one more that a spawn, and every query, looks at.
//
// A registry has one Prefabs, for blocks are found by name.
//
// Concurrency: what takes a window is for its holder; Define and the statistics are for any goroutine.
type Prefabs struct {
	r *registry.Registry

	mu    sync.Mutex                  // guards replacing table; leaf lock
	table atomic.Pointer[prefabTable] // never changed once it is here; any goroutine loads

	files map[string]*knownFile // by path; owner of the registry only
	born  []newborn             // of the spawn in progress, kept for its memory; owner only
}

// prefabTable is what is defined and declared at one instant.
type prefabTable struct {
	ids  []string // in order
	byID map[string]*prefab
}

// prefab is what there is under an id: a definition, a pool, or both.
type prefab struct {
	id   string
	def  atomic.Pointer[definition] // nil until Define; stored under Prefabs.mu
	tree *prefabTree                // of def; owner only

	pool   atomic.Pointer[settings]  // nil: no pool. Stored by the owner
	blocks atomic.Pointer[blockList] // what the owner found last, so that others can count
	peak   atomic.Int64              // these three are stored by the owner
	refuse atomic.Int64
	grown  atomic.Int64
}

// definition is what Define was told. Nobody changes it.
type definition struct {
	kind     kind
	children []string
	pooled   bool
}

// kind is a class and the values that a prefab's entities start with, whatever their type.
type kind interface {
	className() string
	spawn(w *registry.Window) (handles.Local, error)
	spawnIn(a registry.Access, b *registry.Block) (handles.Local, error)
	newBlock(w *registry.Window, name string, n int) (*registry.Block, error)
}

type kindOf[E any] struct {
	c       *registry.Class[E]
	initial E
}

func (k *kindOf[E]) className() string { return k.c.Name() }

func (k *kindOf[E]) spawn(w *registry.Window) (handles.Local, error) { return k.c.Spawn(w, k.initial) }

func (k *kindOf[E]) spawnIn(a registry.Access, b *registry.Block) (handles.Local, error) {
	return registry.SpawnIn(a, k.c, b, &k.initial)
}

func (k *kindOf[E]) newBlock(w *registry.Window, name string, n int) (*registry.Block, error) {
	return registry.NewBlock(w, k.c, name, n, &k.initial)
}

// prefabTree is a prefab with all that is below it, spelt out.
type prefabTree struct {
	table   *prefabTable // it was made of this one
	members []member     // parents before their children
	demands []demand     // how many there are of each prefab
}

type member struct {
	of     *prefab
	def    *definition
	parent int // place in members; -1 for the first
}

type demand struct {
	of  *prefab
	def *definition
	n   int
}

// NewPrefabs makes the prefabs of a registry, none yet.
//
// Concurrency: any goroutine. Allocates: yes.
func NewPrefabs(r *registry.Registry) *Prefabs {
	p := &Prefabs{r: r, files: map[string]*knownFile{}}
	p.table.Store(&prefabTable{byID: map[string]*prefab{}})
	return p
}

// PrefabOption is an option of Define.
type PrefabOption func(*definition)

// Child puts an entity of another prefab below each entity of this one, which dies with it. Several, also of the same
// prefab, are spawned in the order of the options. The other one may be defined later.
//
// Concurrency: any goroutine. Allocates: yes.
func Child(id string) PrefabOption {
	return func(d *definition) { d.children = append(d.children, id) }
}

// Pooled gives the prefab a pool with its first spawn, unless it is declared before: of capacity 16, which doubles, and
// is not pre-warmed.
//
// Concurrency: any goroutine. Allocates: no.
func Pooled() PrefabOption { return func(d *definition) { d.pooled = true } }

// Define makes id a prefab: entities of class c that start with the components of initial. It stays one.
//
// Errors: registry.ErrAlreadyRegistered for an id that is defined; registry.ErrCycle if it would contain itself,
// through others that are defined or directly; no id; no class. Nothing has changed then.
// Concurrency: any goroutine, any time. Allocates: yes.
func Define[E any](p *Prefabs, id string, c *registry.Class[E], initial E, opts ...PrefabOption) error {
	switch {
	case id == "":
		return errors.New("pool: a prefab needs an id")
	case c == nil:
		return fmt.Errorf("pool: prefab %q has no class: %w", id, registry.ErrNotRegistered)
	}
	d := &definition{kind: &kindOf[E]{c: c, initial: initial}}
	for _, opt := range opts {
		opt(d)
	}
	if slices.Contains(d.children, "") {
		return fmt.Errorf("pool: prefab %q has a child without an id", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.table.Load()
	if q := t.byID[id]; q != nil && q.def.Load() != nil {
		return fmt.Errorf("pool: prefab %q: %w", id, registry.ErrAlreadyRegistered)
	}
	if t.contains(d.children, id, map[string]bool{}) {
		return fmt.Errorf("pool: prefab %q contains itself: %w", id, registry.ErrCycle)
	}
	q, next := t.with(id)
	q.def.Store(d)
	p.table.Store(next) // another one in any case: trees made of the old one are not whole
	return nil
}

// contains says whether id is one of ids, or below one.
func (t *prefabTable) contains(ids []string, id string, seen map[string]bool) bool {
	for _, other := range ids {
		if other == id {
			return true
		}
		q := t.byID[other]
		if q == nil || q.def.Load() == nil || seen[other] {
			continue
		}
		seen[other] = true
		if t.contains(q.def.Load().children, id, seen) {
			return true
		}
	}
	return false
}

// with gives what there is under id, or a new one, and a table that has it.
func (t *prefabTable) with(id string) (*prefab, *prefabTable) {
	next := &prefabTable{ids: slices.Clone(t.ids), byID: maps.Clone(t.byID)}
	q := next.byID[id]
	if q == nil {
		q = &prefab{id: id}
		at, _ := slices.BinarySearch(next.ids, id)
		next.ids = slices.Insert(next.ids, at, id)
		next.byID[id] = q
	}
	return q, next
}

// named gives what there is under id, and makes it if there is nothing.
func (p *Prefabs) named(id string) *prefab {
	if q := p.table.Load().byID[id]; q != nil {
		return q
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q, next := p.table.Load().with(id)
	p.table.Store(next)
	return q
}

// treeOf spells a prefab out.
func (p *Prefabs) treeOf(id string) (*prefabTree, error) {
	table := p.table.Load()
	q := table.byID[id]
	if q != nil && q.tree != nil && q.tree.table == table {
		return q.tree, nil
	}
	t := &prefabTree{table: table}
	if err := t.add(id, -1); err != nil {
		return nil, err
	}
	q.tree = t
	return t, nil
}

// add adds a prefab, and what is below it. It ends, for no definition closes a circle.
func (t *prefabTree) add(id string, parent int) error {
	q := t.table.byID[id]
	switch {
	case (q == nil || q.def.Load() == nil) && parent < 0:
		return fmt.Errorf("pool: there is no prefab %q: %w", id, registry.ErrNotRegistered)
	case q == nil || q.def.Load() == nil:
		return fmt.Errorf("pool: prefab %q has a child %q, which is not defined: %w", t.members[parent].of.id, id, registry.ErrNotRegistered)
	case len(t.members) == maxMembers:
		return fmt.Errorf("pool: prefab %q has more than %d entities", t.members[0].of.id, maxMembers)
	}
	def := q.def.Load()
	at := len(t.members)
	t.members = append(t.members, member{of: q, def: def, parent: parent})
	if i := slices.IndexFunc(t.demands, func(d demand) bool { return d.of == q }); i >= 0 {
		t.demands[i].n++
	} else {
		t.demands = append(t.demands, demand{of: q, def: def, n: 1})
	}
	for _, child := range def.children {
		if err := t.add(child, at); err != nil {
			return err
		}
	}
	return nil
}
