package guide_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_outside() {
	type Gold struct{ Coins int }
	type Guest struct{ Gold Gold }
	ctx := context.Background()

	reg := must(registry.New(registry.Config{MaxEntities: 3}))
	guests := must(registry.RegisterClass[Guest](reg))
	engine := must(logic.New(reg, logic.Config{OnError: func(err error) { fmt.Println("nobody waits for:", err) }}))
	running := make(chan error)
	go func() { running <- engine.Run(ctx) }()

	// Spawn runs the callback on this goroutine, at the top of a frame, while Logic waits.
	var ann handles.Local
	err := engine.Spawn(ctx, func(w *registry.Window) (err error) {
		ann, err = guests.Spawn(w, Guest{Gold{10}})
		return err
	})
	fmt.Println("ann:", ann, err)

	// logic.Spawn is the short form for one entity.
	bob, err := logic.Spawn(ctx, engine, guests, Guest{Gold{5}})
	fmt.Println("bob:", bob, err)

	// SpawnBatch waits once for many callbacks. Each succeeds or fails alone.
	errs := engine.SpawnBatch(ctx,
		func(w *registry.Window) error { return registry.Set(w, ann, Gold{11}) },
		func(w *registry.Window) error { return w.Destroy(handles.Local(0)) },
		func(w *registry.Window) error {
			_, err := guests.SpawnBatch(w, 2, nil) // there is room for one
			return err
		},
	)
	fmt.Println("nobody's handle:", errors.Is(errs[1], registry.ErrInvalidHandle))
	fmt.Println("full:", errors.Is(errs[2], registry.ErrExhausted), "- the first:", errs[0])

	// Enqueue does not wait: Logic runs the callback, and the ticket tells how it went.
	ticket := must(engine.Enqueue(func(w *registry.Window) error { return registry.Set(w, bob, Gold{6}) }))
	<-ticket.Done()
	fmt.Println("enqueued:", ticket.Err())

	// Defer is Enqueue without a ticket. A Producer is one goroutine's own lane for both, and cheaper.
	lane := engine.Producer()
	check(lane.Defer(func(*registry.Window) error { return errors.New("a lost message") }))
	check(lane.Defer(func(w *registry.Window) error { return registry.Set(w, bob, Gold{7}) })) // in order

	// Who asks after a Defer finds it done.
	check(engine.Spawn(ctx, func(w *registry.Window) error {
		fmt.Println("bob has", must(registry.Peek[Gold](w, bob)).Coins)
		return nil
	}))

	// Destroy and Alive need no window and never wait.
	fmt.Println(reg.Destroy(bob), reg.Alive(bob), errors.Is(reg.Destroy(bob), registry.ErrStale))

	// Reserve gives a name without waiting. Its entity comes later; until then the name may be stored, sent, and destroyed.
	eve := must(reg.Reserve())
	check(lane.Defer(func(w *registry.Window) error { return guests.SpawnReserved(w, eve, Guest{Gold{1}}) }))
	check(engine.Spawn(ctx, func(*registry.Window) error { return nil }))
	fmt.Println("eve:", reg.Alive(eve))

	// A context that ends before the turn takes the caller out of the line.
	gone, cancel := context.WithCancel(ctx)
	cancel()
	fmt.Println(engine.Spawn(gone, func(*registry.Window) error { panic("never runs") }))

	// A panic is the caller's own, after everything the callback did was undone.
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		_ = engine.Spawn(ctx, func(w *registry.Window) error { check(w.Destroy(ann)); panic("oops") })
	}()
	fmt.Println("ann is alive:", reg.Alive(ann))

	check(engine.Stop())
	fmt.Println(<-running, engine.Spawn(ctx, func(*registry.Window) error { return nil }))
	// Output:
	// ann: L1.1 <nil>
	// bob: L2.1 <nil>
	// nobody's handle: true
	// full: true - the first: <nil>
	// enqueued: <nil>
	// nobody waits for: a lost message
	// bob has 7
	// <nil> false true
	// eve: true
	// context canceled
	// recovered: oops
	// ann is alive: true
	// <nil> logic: engine stopped
}
