package logic_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// step is one operation on one entity, as seen from outside.
type step struct {
	what   string // read, write, destroy, alive
	entity int
	n      int // what was written
}

type outcome struct {
	n    int
	dead bool
}

// oneEntity is the model: a cell that is written and read until it is destroyed.
var oneEntity = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byEntity := make(map[int][]porcupine.Operation)
		for _, op := range history {
			e := op.Input.(step).entity
			byEntity[e] = append(byEntity[e], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byEntity {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return outcome{} },
	Step: func(state, input, output any) (bool, any) {
		is, in, out := state.(outcome), input.(step), output.(outcome)
		if out.dead != is.dead {
			return false, state
		}
		switch {
		case is.dead:
			return true, state
		case in.what == "write":
			return true, outcome{n: in.n}
		case in.what == "read":
			return out.n == is.n, state
		case in.what == "destroy":
			return true, outcome{dead: true}
		}
		return true, state
	},
}

// Whatever way an operation takes, there is one order in which all of them happened, each
// between its call and its answer.
func TestHistoriesAreLinearizable(t *testing.T) {
	const clients, entities = 8, 32
	rounds, each := 5, 200
	if raceEnabled {
		rounds = 2
	}
	for range rounds {
		w := newWorld(t, fast)
		var hs [entities]handles.Local
		for i := range hs {
			hs[i] = w.spawn(0)
		}
		stop := w.run()
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex // guards history
			history []porcupine.Operation
			start   = time.Now()
			seed    = rand.Uint64()
		)
		t.Log("seed", seed)
		for c := range clients {
			wg.Go(func() {
				rng, lane := rand.New(rand.NewPCG(seed, uint64(c))), w.e.Producer()
				for i := range each {
					in := step{entity: rng.IntN(entities), n: c*each + i + 1}
					h := hs[in.entity]
					var out outcome
					called := time.Since(start)
					var err error
					switch k := rng.IntN(100); {
					case k < 40:
						in.what = "read"
						err = w.e.Spawn(context.Background(), func(win *registry.Window) error {
							v, err := registry.Peek[value](win, h)
							out.n = v.N
							return err
						})
					case k < 60:
						in.what = "write"
						err = w.e.SpawnBatch(context.Background(), func(win *registry.Window) error { return registry.Set(win, h, value{in.n}) })[0]
					case k < 80:
						in.what = "write"
						ticket, _ := lane.Enqueue(func(win *registry.Window) error { return registry.Set(win, h, value{in.n}) })
						<-ticket.Done()
						err = ticket.Err()
					case k < 98:
						in.what = "alive"
						out.dead = !w.r.Alive(h)
					default:
						in.what = "destroy"
						err = w.r.Destroy(h)
					}
					if err != nil {
						out.dead = errors.Is(err, registry.ErrStale)
					}
					returned := time.Since(start)
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: c, Input: in, Output: out, Call: int64(called), Return: int64(returned)})
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.NoError(t, stop())
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(oneEntity, history, 30*time.Second))
	}
}
