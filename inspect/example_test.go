package inspect_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

type Position struct{ X, Y float64 }
type Gull struct{ Position Position }

func Example() {
	reg := must(registry.New(registry.Config{}))
	gulls := must(registry.RegisterClass[Gull](reg))
	prefabs := pool.NewPrefabs(reg)
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()

	page := inspect.New(engine, inspect.Config{Pools: []pool.Source{prefabs}})
	defer page.Close()
	server := httptest.NewServer(page) // or page.Serve(ctx, listener)
	defer server.Close()

	_ = engine.Defer(func(w *registry.Window) error {
		_, err := gulls.SpawnBatch(w, 3, nil)
		return err
	})
	_ = engine.Step()

	resp := must(http.Get(server.URL + "/stats.json"))
	defer resp.Body.Close()
	var figures struct {
		State    string
		Registry struct{ Live int }
	}
	_ = json.NewDecoder(resp.Body).Decode(&figures)
	fmt.Println(figures.State, figures.Registry.Live)
	// Output: idle 3
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
