package cookbook_test

import (
	"fmt"
	"slices"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// grid says who is in which cell of a plane: handles, made anew in every frame, so that nobody has to be
// followed. It is one array, sorted by cell. Whom it names may die in the same frame: ask Alive, or let Get say so.
type grid struct {
	width int
	first []int32         // by cell: where its entries begin
	who   []handles.Local // by cell
	cell  []int32         // by cache index: in which cell somebody is
}

func (g *grid) neighbours(index uint32) []handles.Local {
	c := g.cell[index]
	return g.who[g.first[c]:g.first[c+1]]
}

func Example_spatial() {
	type Position struct{ X, Y int32 } // 0 to 39
	type Bird struct{ Position Position }
	type birds struct {
		Position []Position `ecs:"read"`
		ID       []handles.Local
		At       []uint32 `ecs:"index"`
	}
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Bird](reg))
	all := must(views.NewQuery[birds](reg))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()

	g := &grid{width: 4, first: make([]int32, 4*4+1)}
	must(engine.AddSystem(logic.PrePhysics, "grid", func(f *logic.Frame) {
		clear(g.first)
		g.cell = slices.Grow(g.cell[:0], int(reg.CacheCap()))[:reg.CacheCap()]
		n := 0
		for run := range all.Runs(f) { // how many are in each cell
			for i, p := range run.Position {
				c := p.Y/10*int32(g.width) + p.X/10
				g.cell[run.At[i]] = c
				g.first[c]++
				n++
			}
		}
		for c := 1; c < len(g.first); c++ { // where each cell ends
			g.first[c] += g.first[c-1]
		}
		g.who = slices.Grow(g.who[:0], n)[:n]
		for run := range all.Runs(f) { // and now backwards to where it begins
			for i, id := range run.ID {
				c := g.cell[run.At[i]]
				g.first[c]--
				g.who[g.first[c]] = id
			}
		}
	}))
	must(engine.AddSystem(logic.Physics, "look", func(f *logic.Frame) {
		for run := range all.Runs(f) {
			for i, at := range run.At {
				near := slices.Sorted(slices.Values(g.neighbours(at)))
				fmt.Println(run.ID[i], run.Position[i], "is near", near)
			}
		}
	}))
	check(reg.Update(func(w *registry.Window) error {
		_, err := class.SpawnBatch(w, 4, func(i int, b *Bird) {
			b.Position = []Position{{1, 1}, {35, 2}, {4, 8}, {12, 39}}[i]
		})
		return err
	}))
	check(engine.Step())
	// Output:
	// L1.1 {1 1} is near [L1.1 L3.1]
	// L2.1 {35 2} is near [L2.1]
	// L3.1 {4 8} is near [L1.1 L3.1]
	// L4.1 {12 39} is near [L4.1]
}
