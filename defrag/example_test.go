package defrag_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/registry"
)

// Most of a thousand entities die. What is left moves together, a little at a time, and an array outside follows.
func Example() {
	type number struct{ N int }
	type pebble struct{ Number number }
	r, _ := registry.New(registry.Config{})
	pebbles, _ := registry.RegisterClass[pebble](r, registry.SlotsPerChunk(64))

	outside := map[uint32]int{} // by cache index
	_, _ = r.OnMove(func(moves []registry.Move) {
		for _, m := range moves { // in this order nothing is overwritten that is still to move
			outside[m.New] = outside[m.Old]
			delete(outside, m.Old)
		}
	})
	_ = r.Update(func(w *registry.Window) error {
		hs, err := pebbles.SpawnBatch(w, 1000, func(i int, p *pebble) { p.Number.N = i })
		for i, h := range hs {
			if at, ok := registry.CacheIndex(w, h); ok && i%100 == 0 {
				outside[at] = i
			} else {
				_ = w.Destroy(h)
			}
		}
		w.ProcessDeferredDestructions() // an engine does this at the top of each frame
		return err
	})

	c, _ := defrag.New(r, defrag.Config{Moves: 8})
	for left := 1; left > 0; {
		_ = r.Update(func(w *registry.Window) error {
			report, err := c.Run(w)
			fmt.Println("moved", report.Moved, "left", report.Left)
			left = report.Left
			return err
		})
	}
	fmt.Println(len(outside), "pebbles, indices below", r.CacheCap())
	// Output:
	// moved 8 left 1
	// moved 1 left 0
	// 10 pebbles, indices below 64
}
