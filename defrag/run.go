package defrag

import (
	"context"
	"math"
	"math/bits"
	"runtime/trace"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// batchMoves is how many moves are carried out together: enough to go through memory by the column,
// and few enough to stay in the nearest cache.
const batchMoves = 256

// Run compacts as much as the limit allows: first slots, archetype by archetype in the order of
// their creation, then chunks. What the callback did so far is committed, and Run is not undone
// with it. An entity moves at most once in a Run. Pointers, slices and spans taken before are no
// good any more, views and handles are.
//
// A chunk moves as a whole or not at all, so that one with more entities than the limit stays where
// it is; what Left counts can be moved.
//
// Errors: registry.ErrIterating inside a loop over a query; registry.ErrExpired.
// Concurrency: window holder; tells the subscribers to moves. Allocates: for growth.
func (c *Compactor) Run(w *registry.Window) (Report, error) {
	began := time.Now()
	defer trace.StartRegion(context.Background(), "airlock.defrag").End()
	var rep Report
	if r, err := registry.Opened(w); err != nil {
		return rep, err
	} else if r != c.r {
		return rep, errForeign
	}
	defer clear(c.moved) // a subscriber may exit
	err := registry.Relocate(w, func(m *registry.Relocation) error {
		before := bytesOf(m.Store())
		c.spent = 0
		c.compactSlots(m, &rep)
		if rep.Left == 0 { // otherwise entities would move with their chunk now, and out of it later
			c.repackChunks(m, &rep)
			c.lowerChunks(m, &rep)
		}
		rep.Bytes = before - bytesOf(m.Store())
		return nil
	})
	rep.Time = time.Since(began)
	return rep, err
}

func bytesOf(s *archetype.Store) (n int64) {
	for _, a := range s.Archetypes() {
		n += int64(a.Bytes())
	}
	return n
}

// room is how many more entities this Run may move.
func (c *Compactor) room() int {
	if c.limit == 0 {
		return math.MaxInt
	}
	return c.limit - c.spent
}

// fits says whether a Run may ever move n entities together.
func (c *Compactor) fits(n int) bool { return c.limit == 0 || n <= c.limit }

// compactSlots compacts the archetypes.
func (c *Compactor) compactSlots(m *registry.Relocation, rep *Report) {
	for _, a := range m.Store().Archetypes() {
		if !m.MayMove(a) || a.Live() == a.Allocated() {
			continue // nothing to fill
		}
		rep.ChunksFreed += m.Settle(a)
		c.observe(m, a)
		c.carryOut(m, a, rep)
		rep.ChunksFreed += m.Settle(a)
	}
}

// observe notes the occupancy of an archetype for the plan.
func (c *Compactor) observe(m *registry.Relocation, a *archetype.Archetype) {
	chunks := a.Chunks()
	p := &c.plan
	for len(p.chunks) < len(chunks) {
		p.chunks = append(p.chunks, occupancy{})
	}
	p.chunks = p.chunks[:len(chunks)]
	for i, ch := range chunks {
		o := &p.chunks[i]
		taken := o.taken[:0]
		*o = occupancy{base: ch.Base(), slots: ch.Slots(), fresh: ch.Allocated(), last: i == len(chunks)-1}
		for k, holes := range ch.Holes() {
			word := ^holes & lowest(ch.Allocated()-k<<6)
			taken = append(taken, word)
			o.count += bits.OnesCount64(word)
			// Who is active lives. The others are inactive, or dead and not reclaimed.
			for rest := word &^ ch.Active()[k]; rest != 0; rest &= rest - 1 {
				slot := k<<6 + bits.TrailingZeros64(rest)
				if m.Movable(ch, uint32(slot)) || planted.Enabled && planted.Is(planted.CompactionMovesTheDead) {
					continue
				}
				if o.stuck == nil {
					o.stuck = make([]uint64, len(ch.Holes()))
				}
				o.stuck[k] |= 1 << (slot & 63)
			}
		}
		o.taken = taken
	}
}

// carryOut takes as many steps as there is room for, and counts the others.
func (c *Compactor) carryOut(m *registry.Relocation, a *archetype.Archetype, rep *Report) {
	m.Expect(min(c.plan.begin(), c.room()))
	chunks := a.Chunks()
	for more := true; more; {
		c.moves = c.moves[:0]
		for len(c.moves) < batchMoves && len(c.moves) < c.room() {
			s, ok := c.plan.next()
			if more = ok; !ok {
				break
			}
			to := chunks[s.to]
			if k := len(c.moves); k == 0 || to != c.moves[k-1].To {
				c.moved[to] = true
			}
			c.moves = append(c.moves, archetype.SlotMove{From: chunks[s.from], FromSlot: s.fromSlot, To: to, ToSlot: s.toSlot})
		}
		if len(c.moves) == 0 {
			break
		}
		c.spent += len(c.moves)
		rep.Moved += m.MoveSlots(a, c.moves)
	}
	for {
		if _, ok := c.plan.next(); !ok {
			break
		}
		rep.Left++
	}
	clear(c.moves[:cap(c.moves)])
}

// repackChunks empties the newest blocks of archetypes into vacant places of older ones. No cache
// index changes, so nobody hears of it, but copying the cells is work and counts towards the limit.
func (c *Compactor) repackChunks(m *registry.Relocation, rep *Report) {
	for _, a := range m.Store().Archetypes() {
		for m.MayMove(a) {
			c.chunks = a.Surplus(c.chunks[:0])
			n := 0
			for _, ch := range c.chunks {
				n += ch.Taken()
			}
			if len(c.chunks) == 0 || !c.fits(n) {
				break
			}
			if n > c.room() {
				rep.Left += n
				break
			}
			c.spent += n
			for _, ch := range c.chunks {
				m.Repack(ch)
			}
		}
		clear(c.chunks)
	}
}

// lowerChunks moves chunks from the end of the cache indices to the lowest ranges that they fit
// into, as long as that lowers the end. Free ranges that are too small for what lies above stay.
func (c *Compactor) lowerChunks(m *registry.Relocation, rep *Report) {
	for {
		ch := m.Store().HighestChunk()
		if ch == nil || !m.MayMove(ch.Archetype()) || !m.Rests(ch) {
			return
		}
		n := ch.Taken()
		if _, ok := m.Store().LowerBase(ch); !ok || !c.fits(n) {
			return
		}
		if n > c.room() || c.moved[ch] {
			rep.Left += n
			return
		}
		if n, ok := m.MoveChunk(ch); ok {
			c.moved[ch] = true
			c.spent += n
			rep.Moved += n
			continue
		}
		return // somebody in it was destroyed just now
	}
}
