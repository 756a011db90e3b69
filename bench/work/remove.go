package work

import (
	"fmt"

	"github.com/airlock-ecs/airlock/bench/contest"
)

// removals are deaths, with everything that makes room for the next births: one by one in the order of
// birth, or all that a query matches.
func removals() (all []*contest.Workload) {
	for _, b := range breeds() {
		w := &contest.Workload{Name: b.name("delete"), Sizes: b.sizes(), Bytes: b.bytes(), Collect: b.cold,
			Open: func(n int) *contest.Contest { return openHerd(n, b, b.remove, false) }}
		if !b.cold {
			w.Target = contest.Target{Peer: 0.6}
			if b.batch {
				w.Target = contest.Target{Peer: 2.2}
			}
		}
		all = append(all, w)
	}
	return all
}

// remove ends a herd again and again.
func (b breed) remove(h herd, t *contest.Timer, reps int) {
	for range reps {
		if b.cold {
			h.fresh()
		}
		if b.batch {
			h.spawnAll()
		} else {
			h.spawn()
		}
		born := h.count()
		t.Start()
		if b.batch {
			h.removeAll()
		} else {
			h.remove()
		}
		t.Stop()
		if left := h.count(); born == 0 || left != 0 {
			t.Check(fmt.Errorf("%d of %d entities are left", left, born))
		}
	}
}
