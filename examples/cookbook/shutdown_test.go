package cookbook_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_shutdown() {
	type Client struct{}
	reg := must(registry.New(registry.Config{}))
	clients := must(registry.RegisterClass[Client](reg))
	engine := must(logic.New(reg, logic.Config{OnError: func(error) {}}))

	// In a server this is signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM).
	ctx, interrupt := context.WithCancel(context.Background())
	running := make(chan error)
	go func() { running <- engine.Run(context.Background()) }() // not ctx: connections are to end first

	// Connections spawn and despawn until they are told to end.
	var connections sync.WaitGroup
	var once sync.Once
	joined := make(chan struct{})
	for range 8 {
		connections.Go(func() {
			for ctx.Err() == nil {
				h, err := logic.Spawn(ctx, engine, clients, Client{})
				if errors.Is(err, logic.ErrStopped) || errors.Is(err, context.Canceled) {
					return
				}
				check(err)
				once.Do(func() { close(joined) })
				check(reg.Destroy(h))
			}
		})
	}
	<-joined
	interrupt()

	// 1. Nobody new, and who is there ends. Callers that wait are let go by their context.
	connections.Wait()
	// 2. The engine ends: what was accepted has run, or is answered with ErrStopped. Shutdown gives up after a while and
	// names the callback that keeps Logic; Stop would wait for it.
	bound, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println("shutdown:", engine.Shutdown(bound), "run:", <-running)
	// 3. The registry is free, and is saved, looked at, or given to another engine.
	s := engine.Stats()
	fmt.Println("waiting:", s.Waiting, "queued:", s.Queued, "live:", reg.Stats().Live, "whole:", reg.Verify() == nil)
	// Output:
	// shutdown: <nil> run: <nil>
	// waiting: 0 queued: 0 live: 0 whole: true
}
