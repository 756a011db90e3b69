package work

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// games are a small game's frames from end to end: three systems move, pull down and age all
// entities; a fiftieth is born in every frame and lives for fifty. An operation is one frame. Births
// asked for in a frame happen at the top of the next on both sides.
func games() []*contest.Workload {
	return []*contest.Workload{{Name: "frame of a game, end to end", Sizes: []int{100_000}, Open: openGame}}
}

// lifetime is how many frames an entity lives.
const lifetime = 50

// Life counts an entity's frames down.
type Life struct{ Left, Born int64 }

// Mote is the class of the game.
type Mote struct {
	Pos  Position
	Vel  Velocity
	Life Life
}

// pull is what gravity adds to a velocity in a frame: a whole number, for exact sums.
const pull = -1

// moteOf is the entity that is born as the i-th in a frame.
func moteOf(i int, frame int64) Mote {
	return Mote{Position{float64(i % 100), 0}, Velocity{float64(i%5 - 2), 3}, Life{lifetime, frame}}
}

// The columns of the three systems.
type (
	falling struct {
		Vel []Velocity
	}
	ageing struct {
		Life []Life
		ID   []handles.Local
	}
)

// ourGame is the game on airlock.
type ourGame struct {
	*world
	class *registry.Class[Mote]
	move  *views.Query[movers]
	fall  *views.Query[falling]
	age   *views.Query[ageing]
	born  int // per frame
	frame int64
	fault *contest.Fault
}

//go:noinline
func fallRuns(q *views.Query[falling], a registry.Access) {
	for m := range q.Runs(a) {
		vel := m.Vel
		for i := range vel {
			vel[i].Y += pull
		}
	}
}

//go:noinline
func (g *ourGame) ageRuns(f *registry.Frame) {
	for m := range g.age.Runs(f) {
		life, id := m.Life, m.ID
		for i := range life {
			if life[i].Left--; life[i].Left == 0 {
				g.fault.Check(f.Destroy(id[i]))
			}
		}
	}
}

func (g *ourGame) births(f *registry.Frame) {
	g.frame++
	for i := range g.born {
		_, err := g.class.SpawnLater(f, moteOf(i, g.frame))
		g.fault.Check(err)
	}
}

func newOurGame(fault *contest.Fault, n int) *ourGame {
	w := newWorld(fault, n)
	g := &ourGame{world: w, class: class[Mote](fault, w), born: max(1, n/lifetime), fault: fault}
	g.move, g.fall, g.age = query[movers](fault, w), query[falling](fault, w), query[ageing](fault, w)
	e, err := logic.New(w.Registry, engineConfig())
	if err != nil {
		fault.Check(err)
		return g
	}
	w.engine = e
	for _, s := range []struct {
		name string
		fn   func(*logic.Frame)
	}{
		{"move", func(f *logic.Frame) { moveRuns(g.move, f) }},
		{"fall", func(f *logic.Frame) { fallRuns(g.fall, f) }},
		{"age", func(f *logic.Frame) {
			g.ageRuns(f.Frame)
			g.births(f.Frame)
		}},
	} {
		_, err := e.AddSystem(logic.Physics, s.name, s.fn)
		fault.Check(err)
	}
	return g
}

func (g *ourGame) step() { g.fault.Check(g.engine.Step()) }

// sum is a checksum of all that live.
func (g *ourGame) sum() (sum uint64) {
	g.window(g.fault, func(w *registry.Window) {
		for m := range g.move.Runs(w) {
			sum += sumOf(m.Pos)
		}
		for m := range g.age.Runs(w) {
			sum += sumLives(m.Life)
		}
	})
	return sum
}

func sumLives(all []Life) (sum uint64) {
	for _, l := range all {
		sum += uint64(l.Left)*1000 + uint64(l.Born)
	}
	return sum
}

// arkGame is the game on Ark.
type arkGame struct {
	world  *ecs.World
	motes  *ecs.Map3[Position, Velocity, Life]
	move   *ecs.Filter2[Position, Velocity]
	fall   *ecs.Filter1[Velocity]
	age    *ecs.Filter1[Life]
	doomed []ecs.Entity
	born   int
	frame  int64
	due    int // births that the last frame asked for
}

func newArkGame(n int) *arkGame {
	w := ecs.NewWorld()
	return &arkGame{world: w, born: max(1, n/lifetime), motes: ecs.NewMap3[Position, Velocity, Life](w),
		move: ecs.NewFilter2[Position, Velocity](w), fall: ecs.NewFilter1[Velocity](w), age: ecs.NewFilter1[Life](w)}
}

//go:noinline
func fallTables(f *ecs.Filter1[Velocity]) {
	q := f.Query()
	for q.NextTable() {
		vel := q.GetColumns()
		for i := range vel {
			vel[i].Y += pull
		}
	}
}

// ageTables collects those whose time has come: Ark's worlds are locked while a query is open.
//
//go:noinline
func (g *arkGame) ageTables() {
	q := g.age.Query()
	for q.NextTable() {
		life, entities := q.GetColumns(), q.Entities()
		for i := range life {
			if life[i].Left--; life[i].Left == 0 {
				g.doomed = append(g.doomed, entities[i])
			}
		}
	}
	for _, e := range g.doomed {
		g.world.RemoveEntity(e)
	}
	g.doomed = g.doomed[:0]
}

// births are those that the last frame asked for.
func (g *arkGame) births() {
	i := 0
	g.motes.NewBatchFn(g.due, func(_ ecs.Entity, p *Position, v *Velocity, l *Life) {
		m := moteOf(i, g.frame)
		*p, *v, *l = m.Pos, m.Vel, m.Life
		i++
	})
	g.due = 0
}

func (g *arkGame) step() {
	g.births()
	moveTables(g.move)
	fallTables(g.fall)
	g.ageTables()
	g.frame++
	g.due = g.born
}

// sum is a checksum of all that live, with those that are to be born next: the window that our sum is
// taken in lets them in, too.
func (g *arkGame) sum() (sum uint64) {
	g.births()
	sum = arkSum(g.move)
	q := g.age.Query()
	for q.NextTable() {
		sum += sumLives(q.GetColumns())
	}
	return sum
}

func openGame(n int) *contest.Contest {
	c := &contest.Contest{Ops: 1}
	ours, ark := newOurGame(&c.Fault, n), newArkGame(n)
	c.Close = ours.close
	if c.Err != nil {
		return c
	}
	for range lifetime + 1 {
		ours.step()
		ark.step()
	}
	c.Ours = contest.Side{Name: "airlock", Run: repeated(ours.step), Sum: ours.sum}
	c.Peers = []contest.Side{{Name: "ark", Run: repeated(ark.step), Sum: ark.sum}}
	return c
}
