package work

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/registry"
)

// registries are made from nothing: bare ones, and ones with a first entity of two components. The
// size is how many.
func registries() []*contest.Workload {
	return []*contest.Workload{
		{Name: "new registry", Sizes: []int{64}, Collect: true, Target: contest.Target{Peer: 1},
			Open: func(n int) *contest.Contest { return openRegistries(n, newRegistry, newArk) }},
		{Name: "new registry and its first entity", Sizes: []int{64}, Collect: true,
			Open: func(n int) *contest.Contest { return openRegistries(n, newInhabited, newArkInhabited) }},
	}
}

// kept keep what is made alive until the next one, as a program would.
type kept struct {
	ours *registry.Registry
	ark  *ecs.World
}

//go:noinline
func newRegistry(fault *contest.Fault, k *kept) {
	r, err := registry.New(registry.Config{})
	fault.Check(err)
	k.ours = r
}

//go:noinline
func newArk(_ *contest.Fault, k *kept) { k.ark = ecs.NewWorld() }

//go:noinline
func newInhabited(fault *contest.Fault, k *kept) {
	newRegistry(fault, k)
	c, err := registry.RegisterClass[Mover](k.ours)
	fault.Check(err)
	fault.Check(k.ours.Update(func(w *registry.Window) error {
		_, err := c.Spawn(w, Mover{Position{1, 2}, Velocity{3, 4}})
		return err
	}))
}

//go:noinline
func newArkInhabited(fault *contest.Fault, k *kept) {
	newArk(fault, k)
	ecs.NewMap2[Position, Velocity](k.ark).NewEntity(&Position{1, 2}, &Velocity{3, 4})
}

func openRegistries(n int, ours, ark func(*contest.Fault, *kept)) *contest.Contest {
	side := func(name string, build func(*contest.Fault, *kept)) contest.Side {
		var k kept
		made := 0
		return contest.Side{Name: name, Sum: func() uint64 { return uint64(made) },
			Run: func(t *contest.Timer, reps int) {
				t.Start()
				for range reps * n {
					build(&t.Fault, &k)
				}
				t.Stop()
				made += reps * n
			}}
	}
	return &contest.Contest{Ops: n, Ours: side("airlock", ours), Peers: []contest.Side{side("ark", ark)}}
}
