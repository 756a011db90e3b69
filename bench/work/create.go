package work

import (
	"github.com/airlock-ecs/airlock/bench/contest"
)

// breed says what a herd consists of and how its life is looked at.
type breed struct {
	ten, cold, batch bool
}

// name says it in words.
func (b breed) name(verb string) string {
	name := verb + " of two components"
	if b.ten {
		name = verb + " of ten components"
	}
	if b.batch {
		name += ", batched"
	} else {
		name += ", one by one"
	}
	if b.cold {
		name += ", cold"
	}
	return name
}

// breeds are all combinations.
func breeds() (all []breed) {
	for _, cold := range []bool{false, true} {
		for _, ten := range []bool{false, true} {
			for _, batch := range []bool{false, true} {
				all = append(all, breed{ten: ten, cold: cold, batch: batch})
			}
		}
	}
	return all
}

// creations are spawns, of entities whose world has held as many before (warm) or was just made (cold).
func creations() (all []*contest.Workload) {
	for _, b := range breeds() {
		w := &contest.Workload{Name: b.name("create"), Sizes: b.sizes(), Bytes: b.bytes(), Collect: b.cold,
			Open: func(n int) *contest.Contest { return openHerd(n, b, b.create, true) }}
		if !b.cold {
			w.Target = contest.Target{Peer: 0.6}
			if b.batch {
				w.Target = contest.Target{Peer: 1.4, To: k16}
			}
		}
		all = append(all, w)
	}
	return all
}

// sizes leave out ten million of the big ones: nothing new would be seen.
func (b breed) sizes() []int {
	if b.ten {
		return []int{k1, k16, k256, m1}
	}
	return standard()
}

// bytes are for two worlds of Ark's, which double, ours, and their garbage.
func (b breed) bytes() func(int) int64 {
	if b.ten {
		return perEntity(2400)
	}
	return perEntity(700)
}

// create brings a herd to life again and again.
func (b breed) create(h herd, t *contest.Timer, reps int) {
	for range reps {
		if b.cold {
			h.fresh()
		} else if h.count() > 0 {
			h.removeAll()
		}
		t.Start()
		if b.batch {
			h.spawnAll()
		} else {
			h.spawn()
		}
		t.Stop()
	}
}

// openHerd has all sides do the same to herds of n; with births, Ark in both ways to give birth.
func openHerd(n int, b breed, do func(h herd, t *contest.Timer, reps int), births bool) *contest.Contest {
	c := &contest.Contest{Ops: n}
	side := func(name string, h herd) contest.Side {
		return contest.Side{
			Name: name,
			Run:  func(t *contest.Timer, reps int) { do(h, t, reps) },
			Sum:  func() uint64 { return h.sum() + uint64(h.count()) },
		}
	}
	ours, arks := newPair, newArkPair
	if b.ten {
		ours, arks = newTen, newArkTen
	} else {
		raw := side("slices", newSlices(n))
		c.Raw = &raw
	}
	c.Ours = side("airlock", ours(&c.Fault, n))
	c.Peers = []contest.Side{side("ark", arks(n, false))}
	if births {
		c.Peers = append(c.Peers, side("ark by callback", arks(n, true)))
	}
	return c
}
