package work

import (
	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/registry"
)

// growths compare an entity's cost among ten million with that among a hundredth as many, which is
// the raw side here; both are ours.
func growths() []*contest.Workload {
	sizes, bytes, target := []int{m10}, perEntity(400), contest.Target{Raw: 2}
	return []*contest.Workload{
		{Name: "growth, query", Sizes: sizes, Bytes: bytes, Target: target, Open: openQueryGrowth},
		{Name: "growth, create", Sizes: sizes, Bytes: bytes, Target: target,
			Open: func(n int) *contest.Contest { return openHerdGrowth(n, breed{}.create) }},
		{Name: "growth, delete in order", Sizes: sizes, Bytes: bytes, Target: target,
			Open: func(n int) *contest.Contest { return openHerdGrowth(n, breed{}.remove) }},
	}
}

// hundredth is how many times smaller the small side is.
const hundredth = 100

// oftener is a side over a hundredth as many entities that does as many operations as the big one.
func oftener(n int, small contest.Side) contest.Side {
	run, times := small.Run, n/max(1, n/hundredth)
	small.Run = func(t *contest.Timer, reps int) { run(t, reps*times) }
	small.Ops = times * max(1, n/hundredth)
	return small
}

func openQueryGrowth(n int) *contest.Contest {
	c := &contest.Contest{Ops: n}
	side := func(n int) (contest.Side, func()) {
		w := newWorld(&c.Fault, n)
		spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n)
		q, ran := query[movers](&c.Fault, w), uint64(0)
		return contest.Side{Name: "runs", Sum: func() uint64 { return ran / uint64(n) },
			Run: func(t *contest.Timer, reps int) {
				w.frame(&t.Fault, func(f *registry.Frame) {
					t.Start()
					for range reps {
						moveRuns(q, f)
					}
					t.Stop()
				})
				ran += uint64(w.countMovers(&t.Fault, q))
			}}, w.close
	}
	big, closeBig := side(n)
	small, closeSmall := side(max(1, n/hundredth))
	small = oftener(n, small)
	small.Name = "a hundredth"
	c.Ours, c.Raw = big, &small
	c.Close = func() {
		closeBig()
		closeSmall()
	}
	return c
}

func openHerdGrowth(n int, do func(h herd, t *contest.Timer, reps int)) *contest.Contest {
	c := &contest.Contest{Ops: n}
	side := func(name string, n int) contest.Side {
		h, last := newPair(&c.Fault, n), uint64(0)
		return contest.Side{Name: name, Sum: func() uint64 { return last },
			Run: func(t *contest.Timer, reps int) {
				do(h, t, reps)
				last = uint64(h.count() / n) // all, or none
			}}
	}
	c.Ours = side("airlock", n)
	small := oftener(n, side("a hundredth", max(1, n/hundredth)))
	c.Raw = &small
	return c
}
