package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_defrag() {
	type Position struct{ X float64 }
	type Sheep struct{ Position Position }
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Sheep](reg))
	engine := must(logic.New(reg, logic.Config{})) // with Config.Defrag it compacts by itself, some moves a frame
	defer engine.Stop()

	check(reg.Update(func(w *registry.Window) error {
		flock := must(class.SpawnBatch(w, 10_000, nil))
		for i, h := range flock {
			if i%10 != 0 {
				check(w.Destroy(h))
			}
		}
		return nil
	}))
	check(engine.Step()) // its top reclaims the dead
	moved := 0
	must(reg.OnMove(func(moves []registry.Move) { moved += len(moves) })) // from the next window on

	compactor := must(defrag.New(reg, defrag.Config{Moves: 600})) // at most so many in a Run
	before := reg.CacheCap()
	for {
		var report defrag.Report
		check(reg.Update(func(w *registry.Window) (err error) {
			report, err = compactor.Run(w)
			return err
		}))
		fmt.Println("moved", report.Moved, "left", report.Left)
		if report.Left == 0 {
			break
		}
	}
	fmt.Println("told of", moved, "- indices below", before, "and now below", reg.CacheCap())
	// Output:
	// moved 600 left 300
	// moved 300 left 0
	// told of 900 - indices below 10240 and now below 1024
}
