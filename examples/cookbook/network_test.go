package cookbook_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_network() {
	type Name struct{ Text string }
	type Player struct{ Name Name }
	reg := must(registry.New(registry.Config{MaxEntities: 1000}))
	players := must(registry.RegisterClass[Player](reg))
	engine := must(logic.New(reg, logic.Config{}))
	running := make(chan error)
	go func() { running <- engine.Run(context.Background()) }()

	// serve is a connection's goroutine: its player lives for as long as it does.
	serve := func(conn net.Conn) {
		defer conn.Close()
		lines := bufio.NewScanner(conn)
		if !lines.Scan() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		player, err := logic.Spawn(ctx, engine, players, Player{Name{lines.Text()}})
		if err != nil { // registry.ErrExhausted: full; logic.ErrStopped: the server ends
			fmt.Fprintln(conn, "sorry:", err)
			return
		}
		defer reg.Destroy(player) // needs no window and never waits: also when the engine has stopped
		fmt.Fprintln(conn, "you are", player)
		for lines.Scan() { // orders that nobody waits for
			name := lines.Text()
			if err := engine.Defer(func(w *registry.Window) error { return registry.Set(w, player, Name{name}) }); err != nil {
				fmt.Fprintln(conn, "slower:", err) // logic.ErrQueueFull
				return
			}
		}
	}

	client, server := net.Pipe()
	ended := make(chan struct{})
	go func() { serve(server); close(ended) }()
	fmt.Fprintln(client, "Ada")
	fmt.Print(must(bufio.NewReader(client).ReadString('\n')))
	_ = client.Close()
	<-ended

	check(engine.Stop())
	fmt.Println(<-running, "live:", reg.Stats().Live)
	// Output:
	// you are L1.1
	// <nil> live: 0
}
