package wide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/views/wide"
)

// A step of a simulation over columns: velocities are damped and limited, then they move
// the positions.
func Example() {
	x := []float32{0, 10, 20, 30}
	v := []float32{1, -2, 50, 0}
	dt := float32(0.5)

	wide.Scale(v, 0.5)
	wide.Clamp(v, -8, 8)
	wide.Axpy(x, dt, v)
	fmt.Println(v)
	fmt.Println(x)
	// Output:
	// [0.5 -1 8 0]
	// [0.25 9.5 24 30]
}

func ExampleAxpy() {
	y := []float64{1, 2, 3}
	wide.Axpy(y, 10, []float64{0.1, 0.2, 0.3})
	fmt.Println(y)
	// Output: [2 4 6]
}

func ExampleAdd() {
	total := []float64{1, 2, 3}
	wide.Add(total, []float64{10, 20, 30})
	fmt.Println(total)
	// Output: [11 22 33]
}

// A column of a type of its own works as well.
func ExampleScale() {
	type Meters float32
	heights := []Meters{1.5, 2}
	wide.Scale(heights, 2)
	fmt.Println(heights)
	// Output: [3 4]
}

func ExampleClamp() {
	health := []float32{-5, 40, 120}
	wide.Clamp(health, 0, 100)
	fmt.Println(health)
	// Output: [0 40 100]
}
