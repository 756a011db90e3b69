package cookbook_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_acks() {
	type Position struct{ X int32 }
	type Tank struct{ Position Position }
	type tanks struct {
		Position []Position `ecs:"read"`
		ID       []handles.Local
	}
	type packet struct { // what goes to a client: a frame, and who is where in it
		frame uint64
		at    map[uint32]int32 // by the four bytes of a net handle
	}
	const ann, bob = 1, 2

	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Position](reg, registry.InTier(archetype.Volatile)))
	class := must(registry.RegisterClass[Tank](reg))
	all := must(views.NewQuery[tanks](reg, views.Published()))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()
	for _, peer := range []uint32{ann, bob} {
		check(engine.AddPeer(peer)) // before the first packet goes to it
	}
	spawn := func() (name handles.Net) {
		check(reg.Update(func(w *registry.Window) (err error) {
			name, err = w.AssignNet(must(class.Spawn(w, Tank{})))
			return err
		}))
		return name
	}

	// send is a sender's goroutine: it reads published frames.
	send := func() (p packet) {
		check(reg.Read(func(s *registry.Snapshot) error {
			p = packet{s.FrameNumber(), map[uint32]int32{}}
			for run := range all.Runs(s) {
				for i, id := range run.ID {
					if name, err := reg.NetOf(id); err == nil { // it may have died since
						p.at[name.Wire()] = run.Position[i].X
					}
				}
			}
			return nil
		}))
		return p
	}
	// receive is what a connection does with "I have seen frame so-and-so".
	receive := func(peer uint32, p packet) { check(engine.Ack(peer, p.frame)) }

	first := spawn()
	check(engine.Step())
	receive(ann, send())
	receive(bob, send())
	check(reg.Destroy(must(reg.ResolveNet(first))))
	check(engine.Step())
	receive(ann, send()) // bob's packet is lost
	check(engine.Step())
	second := spawn()
	fmt.Println("bob may still mean", first, "by its four bytes, so the next one is", second)

	receive(bob, send())
	check(engine.Step())
	third := spawn()
	fmt.Println("nobody does any longer:", third, "- the same four bytes:", third.Wire() == first.Wire())

	check(engine.DropPeer(ann)) // who is gone is not waited for
	check(engine.Step())
	fmt.Println("peers:", engine.Stats().Peers, "the slowest:", engine.Stats().SlowestPeer)
	// Output:
	// bob may still mean N0:1.1 by its four bytes, so the next one is N0:2.1
	// nobody does any longer: N0:1.2 - the same four bytes: true
	// peers: 1 the slowest: 2
}
