package stress

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// All is a frame behind which a confirm leaves nothing.
const All uint64 = math.MaxUint64

// Model is a registry in plain maps: no chunks, no bits packed into words, no lists that could be out of step with
// each other. A test does the same things to a registry and to a Model, hands the Model the handles that the
// registry gave, and compares answers on the way and everything now and then.
//
// Methods that are told a handle say what is wrong with it: that it names somebody, was issued before, or comes too
// early. Methods that do something answer with the error that the registry has to give; see SameAnswer.
//
// It knows no pools, no names bound for other owners, and of a registry with a temporal ring only what happens
// without going back.
//
// Concurrency: one goroutine at a time. Allocates: yes.
type Model struct {
	most    int
	frame   uint64
	lives   map[handles.Local]life // alive or reserved
	kinds   map[reflect.Type]kind  // components that can be compared
	locals  space[handles.Local]
	nets    space[handles.Net]
	records space[handles.Global] // as far as anybody has asked
	dying   []handles.Local
	peers   map[uint32]peer
	joins   uint64 // peers that ever joined
	before  *Model // what a failed callback goes back to; nil outside of callbacks
}

// life is what the model knows of an entity or a reservation.
type life struct {
	reserved, inactive bool
	cells              map[reflect.Type]any // never written, but replaced
	parent             handles.Local
	net                handles.Net
	record             handles.Global // zero until somebody asked
}

// peer is someone who acknowledges frames, by the number of its joining.
type peer struct{ number, ack uint64 }

// kind is how a component is read from a registry.
type kind struct {
	name string
	peek func(a registry.Access, h handles.Local) (any, error)
}

// name is a handle of some space.
type name interface {
	handles.Local | handles.Net | handles.Global
	fmt.Stringer
	Index() uint32
	Generation() uint32
}

// space is one of the three handle spaces.
//
// Invariant: a name is dead, or has its index now, or was never issued.
type space[H name] struct {
	dead map[H]bool
	uses map[uint32]use[H] // of every index that was ever used for good
}

// use is what an index is used for.
type use[H name] struct {
	name       H      // of the last life
	generation uint32 // that, or a later one of a life that was taken back
	state      indexState
	freed      uint64   // the frame, when pending
	waits      []uint64 // peers, by the numbers of their joining
}

type indexState uint8

const (
	inUse indexState = iota
	dying
	pending
	free
	indexStates
)

func newSpace[H name]() space[H] { return space[H]{map[H]bool{}, map[uint32]use[H]{}} }

func (s space[H]) clone() space[H] { return space[H]{maps.Clone(s.dead), maps.Clone(s.uses)} }

// issue takes a new name, and says what is wrong with it.
func (s space[H]) issue(h H) error {
	u, used := s.uses[h.Index()]
	switch {
	case h.Index() == 0 || h.Generation() == 0:
		return fmt.Errorf("stress: %v was issued, which is nobody's name", h)
	case s.dead[h] || used && u.name == h:
		return fmt.Errorf("stress: %v was issued a second time", h)
	case used && (u.state == inUse || u.state == dying):
		return fmt.Errorf("stress: %v was issued while %v has its index", h, u.name)
	case used && u.state == pending:
		return fmt.Errorf("stress: %v was issued while its index waits for a confirm since frame %d", h, u.freed)
	case used && h.Generation() <= u.generation:
		return fmt.Errorf("stress: %v was issued after generation %d of its index", h, u.generation)
	}
	s.uses[h.Index()] = use[H]{name: h, generation: h.Generation()}
	return nil
}

// end makes a name dead whose index goes on to a state.
func (s space[H]) end(h H, next indexState, waits []uint64) {
	s.dead[h] = true
	s.uses[h.Index()] = use[H]{name: h, generation: s.uses[h.Index()].generation, state: next, waits: waits}
}

// burn makes what failed has issued dead names, whose indices are where they were.
func (s space[H]) burn(failed space[H]) {
	for i, f := range failed.uses {
		if u, used := s.uses[i]; u.name != f.name {
			s.dead[f.name] = true
			if u.generation = f.generation; used {
				s.uses[i] = u
			}
		}
	}
}

// move has indices go on from one state to the next, if ok says so, and says how many did.
func (s space[H]) move(from, to indexState, frame uint64, ok func(use[H]) bool) (n int) {
	for i, u := range s.uses {
		if u.state == from && ok(u) {
			u.state, u.freed = to, frame
			s.uses[i] = u
			n++
		}
	}
	return n
}

func (s space[H]) counts() (n [indexStates]int) {
	for _, u := range s.uses {
		n[u.state]++
	}
	return n
}

// NewModel makes the model of an empty registry with that config.
//
// Concurrency: any goroutine. Allocates: yes.
func NewModel(c registry.Config) *Model {
	m := &Model{most: c.MaxEntities, lives: map[handles.Local]life{}, kinds: map[reflect.Type]kind{}, peers: map[uint32]peer{}}
	if m.most == 0 {
		m.most = 1 << 24
	}
	m.locals, m.nets, m.records = newSpace[handles.Local](), newSpace[handles.Net](), newSpace[handles.Global]()
	return m
}

// Component teaches the model to compare the component C, which the registry must know.
//
// Concurrency: as the Model. Allocates: yes.
func Component[C any](m *Model) {
	t := reflect.TypeFor[C]()
	m.kinds[t] = kind{t.String(), func(a registry.Access, h handles.Local) (any, error) { return registry.Peek[C](a, h) }}
}

// Callback is a callback of the registry: what fn does to the model is taken back if it fails or panics, but for the
// names it was given, which are dead then. What others do meanwhile is told to the model when it has returned.
//
// Errors: that of fn. Panics: as fn.
// Concurrency: as the Model. Allocates: a copy of the model.
func (m *Model) Callback(fn func() error) (err error) {
	m.before = m.clone()
	failed := true
	defer func() {
		if failed {
			f := *m
			*m = *m.before
			m.locals.burn(f.locals)
			m.nets.burn(f.nets)
			m.records.burn(f.records)
		}
		m.before = nil
	}()
	err = fn()
	failed = err != nil
	return err
}

func (m *Model) clone() *Model {
	c := *m
	c.lives, c.peers, c.dying, c.before = maps.Clone(m.lives), maps.Clone(m.peers), slices.Clone(m.dying), nil
	c.locals, c.nets, c.records = m.locals.clone(), m.nets.clone(), m.records.clone()
	return &c
}

// commit makes what a callback did so far stay, as Process, the confirms and Reset do.
func (m *Model) commit() {
	if m.before != nil {
		m.before = m.clone()
	}
}

// Full says whether a spawn or a reservation has to be refused.
//
// Concurrency: as the Model. Allocates: no.
func (m *Model) Full() bool { return len(m.lives) >= m.most }

// Spawned notes an entity that the registry made, with the components that are the fields of e, a class.
//
// Errors: what is wrong with the handle.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Spawned(h handles.Local, e any) error { return m.born(h, life{cells: cellsOf(e)}) }

// Reserved notes a reservation.
//
// Errors: what is wrong with the handle.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Reserved(h handles.Local) error { return m.born(h, life{reserved: true}) }

func (m *Model) born(h handles.Local, l life) error {
	if m.Full() {
		return fmt.Errorf("stress: %v was issued as number %d of %d", h, len(m.lives)+1, m.most)
	}
	if err := m.locals.issue(h); err != nil {
		return err
	}
	m.lives[h] = l
	return nil
}

// SpawnReserved gives a reservation its entity.
//
// Errors: ErrStale if the reservation is over; ErrInvalidHandle if h never was one or has its entity.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) SpawnReserved(h handles.Local, e any) error {
	switch err := m.Answer(h); err {
	case registry.ErrNotSpawned:
		m.lives[h] = life{cells: cellsOf(e)}
		return nil
	case registry.ErrStale:
		return err
	}
	return registry.ErrInvalidHandle
}

// cellsOf are the fields of a class by their types.
func cellsOf(e any) map[reflect.Type]any {
	cells := map[reflect.Type]any{}
	for v, i := reflect.ValueOf(e), 0; e != nil && i < v.NumField(); i++ {
		cells[v.Field(i).Type()] = v.Field(i).Interface()
	}
	return cells
}

// Answer is what a look-up of h is answered with: nil if it is alive, ErrNotSpawned, ErrStale or ErrInvalidHandle.
//
// Concurrency: as the Model. Allocates: no.
func (m *Model) Answer(h handles.Local) error {
	switch l, there := m.lives[h]; {
	case there && l.reserved:
		return registry.ErrNotSpawned
	case there:
		return nil
	case m.locals.dead[h]:
		return registry.ErrStale
	}
	return registry.ErrInvalidHandle
}

// Destroy ends an entity with its children, or a reservation.
//
// Errors: ErrStale, ErrInvalidHandle.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Destroy(h handles.Local) error {
	l, there := m.lives[h]
	if !there {
		return m.Answer(h)
	}
	delete(m.lives, h)
	m.dying = append(m.dying, h)
	m.locals.end(h, dying, nil)
	if l.net != 0 {
		var waits []uint64
		for _, p := range m.peers {
			waits = append(waits, p.number)
		}
		m.nets.end(l.net, dying, waits)
	}
	if l.record != 0 {
		m.records.end(l.record, free, nil)
	}
	for child, below := range m.lives {
		if below.parent == h {
			_ = m.Destroy(child)
		}
	}
	return nil
}

// Put gives h the component v: with add also if it lacks it, as registry.Add, else as registry.Set.
//
// Errors: those of Answer; ErrNoComponent.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Put(h handles.Local, v any, add bool) error {
	return m.change(h, reflect.TypeOf(v), add, func(cells map[reflect.Type]any) { cells[reflect.TypeOf(v)] = v })
}

// Remove takes the component of v's type from h.
//
// Errors: those of Answer; ErrNoComponent.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Remove(h handles.Local, v any) error {
	return m.change(h, reflect.TypeOf(v), false, func(cells map[reflect.Type]any) { delete(cells, reflect.TypeOf(v)) })
}

func (m *Model) change(h handles.Local, t reflect.Type, add bool, fn func(map[reflect.Type]any)) error {
	if err := m.Answer(h); err != nil {
		return err
	}
	l := m.lives[h]
	if _, has := l.cells[t]; !has && !add {
		return registry.ErrNoComponent
	}
	l.cells = maps.Clone(l.cells)
	fn(l.cells)
	m.lives[h] = l
	return nil
}

// SetActive takes h out of the world, or back.
//
// Errors: those of Answer.
// Concurrency: as the Model. Allocates: no.
func (m *Model) SetActive(h handles.Local, active bool) error {
	err := m.Answer(h)
	if err == nil {
		l := m.lives[h]
		l.inactive = !active
		m.lives[h] = l
	}
	return err
}

// SetParent has child die with parent, or with a zero parent with nobody.
//
// Errors: those of Answer, for either; ErrCycle.
// Concurrency: as the Model. Allocates: no.
func (m *Model) SetParent(child, parent handles.Local) error {
	err := m.Answer(child)
	if err == nil && parent != 0 {
		err = m.Answer(parent)
	}
	for p := parent; p != 0 && err == nil; p = m.lives[p].parent {
		if p == child {
			err = registry.ErrCycle
		}
	}
	if err == nil {
		l := m.lives[child]
		l.parent = parent
		m.lives[child] = l
	}
	return err
}

// Named notes that AssignNet answered n for h.
//
// Errors: what is wrong with the name.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Named(h handles.Local, n handles.Net) error {
	l := m.lives[h]
	if m.Answer(h) != nil || l.net != 0 && l.net != n {
		return fmt.Errorf("stress: %v has the name %v, and got %v: %v", h, l.net, n, m.Answer(h))
	}
	if l.net == 0 {
		if err := m.nets.issue(n); err != nil {
			return err
		}
	}
	l.net = n
	m.lives[h] = l
	return nil
}

// Resolved notes that Resolve answered g for h.
//
// Errors: what is wrong with the record.
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Resolved(h handles.Local, g handles.Global) error {
	l := m.lives[h]
	if m.Answer(h) != nil || l.record != 0 && l.record != g {
		return fmt.Errorf("stress: %v has the record %v, and now %v: %v", h, l.record, g, m.Answer(h))
	}
	if l.record == 0 {
		if err := m.records.issue(g); err != nil {
			return err
		}
	}
	l.record = g
	m.lives[h] = l
	return nil
}

// Process reclaims what has died, and says how many handles that were.
//
// Concurrency: as the Model. Allocates: in a callback.
func (m *Model) Process() int {
	n := len(m.dying)
	m.dying = nil
	m.locals.move(dying, pending, m.frame, func(use[handles.Local]) bool { return true })
	m.nets.move(dying, pending, m.frame, func(use[handles.Net]) bool { return true })
	m.commit()
	return n
}

// ConfirmLocal lets local indices serve again that were freed in frames up to through, and says how many.
//
// Concurrency: as the Model. Allocates: in a callback.
func (m *Model) ConfirmLocal(through uint64) int {
	defer m.commit()
	return m.locals.move(pending, free, 0, func(u use[handles.Local]) bool { return u.freed <= through })
}

// ConfirmNet lets net indices serve again that were freed in frames up to through, and says how many.
//
// Concurrency: as the Model. Allocates: in a callback.
func (m *Model) ConfirmNet(through uint64) int {
	defer m.commit()
	return m.nets.move(pending, free, 0, func(u use[handles.Net]) bool { return u.freed <= through })
}

// AddPeer has the names of all that die from now on wait for this peer, too.
//
// Concurrency: as the Model. Allocates: yes.
func (m *Model) AddPeer(id uint32) {
	m.joins++
	m.peers[id] = peer{number: m.joins}
}

// Ack notes that a peer has seen a frame, and all before it.
//
// Concurrency: as the Model. Allocates: no.
func (m *Model) Ack(id uint32, frame uint64) {
	if p, there := m.peers[id]; there {
		m.peers[id] = peer{p.number, max(p.ack, frame)}
	}
}

// DropPeer forgets a peer: nothing waits for it any longer.
//
// Concurrency: as the Model. Allocates: no.
func (m *Model) DropPeer(id uint32) { delete(m.peers, id) }

// Advance is the top of an engine's frame: what has died is reclaimed, and indices are confirmed that waited for the
// windows of logic.Config, or for the peers if there ever were any. It gives the number of the frame.
//
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Advance(localWindow, netWindow int) uint64 {
	m.frame++
	m.Process()
	if localWindow >= 0 && m.frame >= uint64(localWindow) {
		m.ConfirmLocal(m.frame - uint64(localWindow))
	}
	if m.joins > 0 {
		m.nets.move(pending, free, 0, func(u use[handles.Net]) bool {
			for _, p := range m.peers {
				if p.ack < u.freed && slices.Contains(u.waits, p.number) {
					return false
				}
			}
			return true
		})
	} else if netWindow > 0 && m.frame >= uint64(netWindow) {
		m.ConfirmNet(m.frame - uint64(netWindow))
	}
	return m.frame
}

// Reset ends everybody; no name is ever issued again.
//
// Concurrency: as the Model. Allocates: yes.
func (m *Model) Reset() {
	for h := range m.lives {
		_ = m.Destroy(h) // or its parent has
	}
	m.Process()
}
