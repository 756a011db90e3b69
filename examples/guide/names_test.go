package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_names() {
	type Tank struct{}
	reg := must(registry.New(registry.Config{})) // owner 0 issues its net handles: the server
	tanks := must(registry.RegisterClass[Tank](reg))
	engine := must(logic.New(reg, logic.Config{}))
	const client = 1
	check(engine.AddPeer(client)) // from now on net indices wait for its acknowledgements

	var tank handles.Local
	var name handles.Net
	check(reg.Update(func(w *registry.Window) (err error) {
		tank = must(tanks.Spawn(w, Tank{}))
		name, err = w.AssignNet(tank) // asked for, since few entities need one
		return err
	}))
	record := must(reg.Resolve(tank))
	fmt.Println("local", tank, "global", record, "net", name)

	// Eight bytes on the wire; or four, which are sound because the index waits for all peers.
	parsed, _, err := handles.ParseNet(name.Append(nil))
	fmt.Println(must(reg.ResolveNet(parsed)) == tank, must(reg.ResolveWire(name.Wire())) == tank, err)

	// A client is a registry of its own, with local handles of its own, and binds the server's names.
	theirs := must(registry.New(registry.Config{Owner: client}))
	copies := must(registry.RegisterClass[Tank](theirs))
	check(theirs.Update(func(w *registry.Window) error { return w.BindNet(must(copies.Spawn(w, Tank{})), name) }))
	fmt.Println("theirs:", must(theirs.ResolveNet(name)))

	check(reg.Destroy(tank))
	_, err = reg.ResolveNet(name)
	fmt.Println(err)
	check(engine.Step())
	check(engine.Step())
	fmt.Println("pending:", reg.Stats().Net.Pending)
	check(engine.Ack(client, engine.FrameNumber())) // it has seen this frame, in which the tank is gone
	check(engine.Step())
	fmt.Println("pending:", reg.Stats().Net.Pending)
	// Output:
	// local L1.1 global G1.1 net N0:1.1
	// true true <nil>
	// theirs: L1.1
	// registry: stale handle
	// pending: 1
	// pending: 0
}
