package guide_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_watching() {
	type Wings struct{ Span float64 }
	type Gull struct{ Wings Wings }

	reg := must(registry.New(registry.Config{}))
	gulls := must(registry.RegisterClass[Gull](reg))
	prefabs := pool.NewPrefabs(reg)
	engine := must(logic.New(reg, logic.Config{}))
	var gull handles.Local
	check(reg.Update(func(w *registry.Window) error {
		gull = must(gulls.SpawnBatch(w, 3, nil))[0]
		return nil
	}))

	// A page for one engine. Without a token it only shows; with one it also pauses, steps, compacts, declares and destroys.
	page := inspect.New(engine, inspect.Config{
		Pools:  []pool.Source{prefabs},
		Token:  "let me in",
		Logger: slog.New(slog.DiscardHandler), // actions are logged
	})
	listener := must(net.Listen("tcp", "127.0.0.1:0")) // or 127.0.0.1:8080, to know it beforehand
	ctx, leave := context.WithCancel(context.Background())
	over := make(chan error, 2)
	go func() { over <- page.Serve(ctx, listener) }() // page is an http.Handler, too, for a server that you have
	go func() { over <- engine.Run(context.Background()) }()
	address := "http://" + listener.Addr().String()

	// What Prometheus asks for, and anybody on this machine may.
	answer := must(http.Get(address + "/metrics"))
	for line := range strings.Lines(string(must(io.ReadAll(answer.Body)))) {
		if strings.HasPrefix(line, "airlock_live_entities") {
			fmt.Print(line)
		}
	}
	check(answer.Body.Close())

	// An action is a POST with the token. Logic does it in its next window.
	act := func(token string) {
		ask := must(http.NewRequest(http.MethodPost, address+"/actions/destroy", strings.NewReader(fmt.Sprintf(`{"Handle": %q}`, gull))))
		ask.Header.Set("Content-Type", "application/json")
		ask.Header.Set("Airlock-Token", token)
		answer := must(http.DefaultClient.Do(ask))
		defer answer.Body.Close()
		fmt.Print(answer.StatusCode, " ", string(must(io.ReadAll(answer.Body))))
	}
	act("a guess")
	act("let me in")

	leave()
	check(<-over) // the server has closed its listener and the page
	check(engine.Stop())
	check(<-over)
	obituary, _ := reg.Obituary(gull) // it is written when the frame goes on
	fmt.Println("it died of:", obituary.Cause)
	// Output:
	// airlock_live_entities 3
	// 401 an action needs the token, in the header Airlock-Token
	// 200 L1.1 is destroyed
	// it died of: inspect
}
