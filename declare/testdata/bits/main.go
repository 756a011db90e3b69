// Command bits runs world files and prints the state hash after every step, and what is not stored. The tests build
// it for other levels and architectures than their own, and compare.
package main

import (
	"fmt"
	"os"

	"github.com/airlock-ecs/airlock/declare"
)

const steps = 64

func main() {
	for _, name := range os.Args[1:] {
		if err := run(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(name string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	p, err := declare.Load("world", src, nil)
	if err != nil {
		return err
	}
	r, err := declare.NewRunner(p, declare.RunnerOptions{CrossCheck: true})
	if err != nil {
		return err
	}
	for range steps {
		if err := r.Step(); err != nil {
			return err
		}
		hash, err := r.Hash()
		if err != nil {
			return err
		}
		fmt.Printf("%016x\n", hash)
	}
	fmt.Println(r.World().Refused(), r.World().Active())
	return r.Close()
}
