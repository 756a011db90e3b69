package stress

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// What is a kind of call in a history.
type What uint8

// The calls that histories know.
const (
	SpawnCall      What = iota // gave Local
	DestroyCall                // of Local
	AliveCall                  // of Local: no error if it is
	ResolveCall                // of Local
	AssignNetCall              // of Local, gave Net
	ResolveNetCall             // of Net, which was assigned to Local
	ConfirmCall                // of all local and net indices
)

// String is the name of the call.
func (w What) String() string {
	return [...]string{"Spawn", "Destroy", "Alive", "Resolve", "AssignNet", "ResolveNet", "Confirm"}[min(w, ConfirmCall)]
}

// Call is one call by one client, from its beginning to its end.
type Call struct {
	Client      int
	What        What
	Local       handles.Local
	Net         handles.Net
	Stale       bool          // the answer was no: the entity is dead
	Begin, Ends time.Duration // since the history began
}

// String is the call in short.
func (c Call) String() string {
	return fmt.Sprintf("%d: %v %v %v stale=%v [%v, %v]", c.Client, c.What, c.Local, c.Net, c.Stale, c.Begin, c.Ends)
}

// IndexState is what the calls on one local index have come to, in some order: the state of the model that histories
// are compared with. Indices do not concern each other, but for a confirm, which concerns all.
//
// The reclaiming of the dead between frames is nobody's call, so an index may be used again when a confirm came
// after the death; whether that had an effect is for Roll and Model to judge, which see frames.
type IndexState struct {
	Generation uint32
	Alive      bool
	Ready      bool // may be used again
	Net        handles.Net
}

// Step says whether a call can have had its answer in a state, and what the state is after it.
//
// Concurrency: any goroutine. Allocates: no.
func (s IndexState) Step(c Call) (bool, IndexState) {
	here := s.Alive && c.Local.Generation() == s.Generation
	switch c.What {
	case SpawnCall:
		ok := !s.Alive && (s.Generation == 0 || s.Ready) && c.Local.Generation() > s.Generation
		return ok, IndexState{Generation: c.Local.Generation(), Alive: true}
	case ConfirmCall:
		s.Ready = !s.Alive
		return true, s
	case DestroyCall:
		if here && !c.Stale {
			return true, IndexState{Generation: s.Generation}
		}
	case AssignNetCall:
		if here && !c.Stale {
			ok := s.Net == 0 || s.Net == c.Net
			s.Net = c.Net
			return ok, s
		}
	case ResolveNetCall:
		here = here && s.Net == c.Net
	}
	return here != c.Stale, s
}

// History is what a number of clients called and were answered.
type History struct {
	began   time.Time
	clients [][]Call
}

// NewHistory begins a history.
//
// Concurrency: any goroutine. Allocates: yes.
func NewHistory(clients int) *History {
	return &History{began: time.Now(), clients: make([][]Call, clients)}
}

// Now is the time for Begin and Ends.
//
// Concurrency: any goroutine. Allocates: no.
func (h *History) Now() time.Duration { return time.Since(h.began) }

// Add adds a call of a client, which has just ended. An answer that is neither nil nor ErrStale is an error.
//
// Errors: the answer.
// Concurrency: the client's goroutine. Allocates: for growth.
func (h *History) Add(c Call, err error) error {
	if err != nil && !errors.Is(err, registry.ErrStale) {
		return err
	}
	c.Ends, c.Stale = h.Now(), err != nil
	h.clients[c.Client] = append(h.clients[c.Client], c)
	return nil
}

// Parts are the calls of each local index, with all confirms.
//
// Concurrency: one goroutine, when the clients have ended. Allocates: yes.
func (h *History) Parts() [][]Call {
	byIndex := map[uint32][]Call{}
	var confirms []Call
	for _, calls := range h.clients {
		for _, c := range calls {
			if c.What == ConfirmCall {
				confirms = append(confirms, c)
			} else {
				byIndex[c.Local.Index()] = append(byIndex[c.Local.Index()], c)
			}
		}
	}
	var parts [][]Call
	for _, i := range slices.Sorted(maps.Keys(byIndex)) {
		parts = append(parts, append(byIndex[i], confirms...))
	}
	return parts
}

// Check says whether there is an order of all calls, each between its beginning and its end, in which all answers
// are right, and whether no two entities got one net handle.
//
// Errors: the calls of an index for which there is none.
// Concurrency: one goroutine, when the clients have ended. Allocates: yes.
func (h *History) Check() error {
	named := map[handles.Net]handles.Local{}
	for _, calls := range h.clients {
		for _, c := range calls {
			if c.What != AssignNetCall || c.Stale {
				continue
			}
			if other := named[c.Net]; other != 0 && other != c.Local {
				return fmt.Errorf("stress: %v and %v were given the net handle %v", other, c.Local, c.Net)
			}
			named[c.Net] = c.Local
		}
	}
	for _, part := range h.Parts() {
		if reached, ok := linearize(part); !ok {
			return fmt.Errorf("stress: no order explains the %d calls on an index; at most %d, up to about %v", len(part), reached, around(part, reached))
		}
	}
	return nil
}

// around is the call in the order of ends that no order got past.
func around(part []Call, reached int) Call {
	byEnd := slices.SortedFunc(slices.Values(part), func(a, b Call) int { return cmp.Compare(a.Ends, b.Ends) })
	return byEnd[min(reached, len(byEnd)-1)]
}

// linearize looks for an order by trying each call that may be next and remembering where that led to: the search of
// Wing and Gong with the memory of Lowe. It says how many calls the longest beginning of an order had.
func linearize(calls []Call) (reached int, ok bool) {
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Begin, b.Begin) })
	type place struct {
		done  string // a bit for each call
		state IndexState
	}
	type choice struct {
		call  int
		state IndexState // before it
	}
	var (
		seen   = map[place]bool{}
		done   = make([]byte, (len(calls)+7)/8)
		chosen []choice
		state  IndexState
		first  int // all before it are done
		next   int // the one to try
	)
	is := func(i int) bool { return done[i>>3]>>(i&7)&1 != 0 }
	flip := func(i int) { done[i>>3] ^= 1 << (i & 7) }
	for {
		for first < len(calls) && is(first) {
			first++
		}
		if first == len(calls) {
			return len(calls), true
		}
		next = max(next, first)
		// A call may come next if no other one that is not done has ended before it began.
		earliest := calls[first].Ends
		for i := first; i < len(calls) && calls[i].Begin <= earliest; i++ {
			if !is(i) {
				earliest = min(earliest, calls[i].Ends)
			}
		}
		found := false
		for ; next < len(calls) && calls[next].Begin <= earliest && !found; next++ {
			if is(next) {
				continue
			}
			if right, after := state.Step(calls[next]); right {
				flip(next)
				if p := (place{string(done), after}); !seen[p] {
					seen[p] = true
					chosen = append(chosen, choice{next, state})
					state, found = after, true
				} else {
					flip(next)
				}
			}
		}
		if found {
			reached = max(reached, len(chosen))
			next = 0
			continue
		}
		if len(chosen) == 0 {
			return reached, false
		}
		last := chosen[len(chosen)-1]
		chosen = chosen[:len(chosen)-1]
		flip(last.call)
		state, next, first = last.state, last.call+1, min(first, last.call)
	}
}
