package pool

import "fmt"

// MaxObjects is the most places a pool of objects can have.
const MaxObjects = objectPlaces

// Verify walks the places of a pool that nobody else uses now.
func (p *Pool[T]) Verify() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.free.head.Load()
	if head&objectLooks != 0 {
		return fmt.Errorf("somebody looks below the top for ever")
	}
	seen := map[uint32]string{}
	for _, list := range []struct {
		name  string
		first uint32
	}{{"free", uint32(head & objectTop)}, {"closed", p.spare}} {
		for at := list.first; at != 0; {
			s := p.free.at(at - 1)
			if was, twice := seen[at]; twice {
				return fmt.Errorf("place %d is %s and %s", at-1, was, list.name)
			}
			if s.index != at-1 || s.pool != p {
				return fmt.Errorf("place %d believes to be %d", at-1, s.index)
			}
			if list.name == "closed" && s.value != nil {
				return fmt.Errorf("place %d is closed, with an instance", s.index)
			}
			seen[at] = list.name
			at = s.next
		}
	}
	if below := uint32(head & objectBelow >> objectBits); below != objectTop {
		if top := uint32(head & objectTop); top == 0 && below != 0 || top != 0 && p.free.at(top-1).next != below {
			return fmt.Errorf("place %d is said to be below place %d", below-1, top-1)
		}
	}
	free := 0
	for _, name := range seen {
		if name == "free" {
			free++
		}
	}
	if inUse := p.free.inUse(); inUse+free != p.open || p.open > p.cap || p.cap > p.limit {
		return fmt.Errorf("%d in use + %d free, of %d open, capacity %d, limit %d", inUse, free, p.open, p.cap, p.limit)
	}
	return nil
}

// TakeHalfway is a Take that was preempted when it had its place, and the rest of it.
func (p *Pool[T]) TakeHalfway() (goOn func() Handle[T]) {
	s, inUse := p.free.pop(objectTaken)
	return func() Handle[T] {
		p.raise(inUse)
		v := s.value
		s.value = nil
		h := Handle[T]{place: s, value: v, generation: s.generation.Load()}
		h.life.begin()
		s.life = h.life
		return h
	}
}

// Next is what a pool of this capacity grows to.
func (g Grow) Next(capacity, limit int) int { return g.next(capacity, limit) }

// Holds says whether a guard, void or not, is one of v.
func (h Handle[T]) Holds(v *T) bool { return h.value == v }
