package declare_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// A world is read with a parameter of the caller; a faulty one is told line by line.
func Example() {
	p, err := declare.Load("fountain.world", []byte(`
world {
  params { size = 3 }
  entity source { state = (height = 0, speed = 9.5) }
  pool drops[size] { state = (height = 0, speed = 0) }
}
systems {
  spawn { on = source; pool = drops; every = 2 }
}`), map[string]float64{"size": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := uint32(1); id <= uint32(p.Len()); id++ {
		fmt.Println(id, p.Name(id))
	}

	_, err = declare.Load("bad.world", []byte("world { entity source { state = (height = 1 / 0 + hight) } }"), nil)
	fmt.Println(err)
	// Output:
	// 1 source
	// 2 drops#0
	// 3 drops#1
	// bad.world:1:51: nothing is called hight here: the initial value of height is a constant, of numbers and parameters
	// 	world { entity source { state = (height = 1 / 0 + hight) } }
	// 	                                                  ^
}

// A world runs in an engine; what it looks like is read from a published frame.
func ExampleAttach() {
	p, err := declare.Load("fountain.world", []byte(`
world {
  entity source { state = (height = 0, speed = 9.5) hidden }
  pool drops[10] { state = (height = 0, speed = 0) position = (0, height) }
}
systems {
  spawn { on = source; pool = drops; every = 2 }
  update { on = drops; dt = 0.5 height = height + inte(speed) speed = speed - inte(9.81) }
  despawn { on = drops; when = height < 0 }
}`), nil)
	if err != nil {
		panic(err)
	}
	r, err := registry.New(registry.Config{Deterministic: true})
	if err != nil {
		panic(err)
	}
	e, err := logic.New(r, logic.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = e.Stop() }()
	w, err := declare.Attach(e, p, declare.Options{})
	if err != nil {
		panic(err)
	}
	for range 5 {
		if err := e.Step(); err != nil {
			panic(err)
		}
	}
	err = r.Read(func(s *registry.Snapshot) error {
		for _, e := range w.Present(s).Entities {
			fmt.Printf("%s %.2f\n", e.Name, e.Position)
		}
		return nil
	})
	fmt.Println(w.Steps(), w.Time(), w.Active(), err)
	// Output:
	// drops#1 [0.00 6.89]
	// drops#2 [0.00 4.75]
	// 5 2.5 3 <nil>
}

// A file is laid out; what it means stays as it is.
func ExampleFormat() {
	out, err := declare.Format("a.world", []byte("world { pool p [ 3 ]{state=(x=1)}\n}"))
	fmt.Print(string(out), err)
	// Output:
	// world {
	// 	pool p[3] { state = (x = 1) }
	// }
	// <nil>
}
