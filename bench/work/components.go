package work

// Position is one of the two components of 16 bytes.
type Position struct{ X, Y float64 }

// Velocity is the other one.
type Velocity struct{ X, Y float64 }

// More components, of 16 bytes too.
type (
	C1 struct{ X, Y float64 } // one of eight
	C2 struct{ X, Y float64 } // one of eight
	C3 struct{ X, Y float64 } // one of eight
	C4 struct{ X, Y float64 } // one of eight
	C5 struct{ X, Y float64 } // one of eight
	C6 struct{ X, Y float64 } // one of eight
	C7 struct{ X, Y float64 } // one of eight
	C8 struct{ X, Y float64 } // one of eight
)

// Still is a class of what doesn't move.
type Still struct {
	Pos Position
}

// Mover is a class of two components.
type Mover struct {
	Pos Position
	Vel Velocity
}

// Decade is a class of ten components.
type Decade struct {
	Pos Position
	Vel Velocity
	C1  C1
	C2  C2
	C3  C3
	C4  C4
	C5  C5
	C6  C6
	C7  C7
	C8  C8
}

// places, movers and pairs are the columns of queries.
type (
	places struct {
		Pos []Position
	}
	movers struct {
		Pos []Position
		Vel []Velocity `ecs:"read"`
	}
	pairs struct {
		Pos []Position
		Vel []Velocity
	}
)

// startOf is what the i-th entity of a loop starts with: whole numbers, so that sums of them are
// exact and the order does not matter.
func startOf(i int) (Position, Velocity) {
	return Position{float64(i % 1000), float64(i % 7)}, Velocity{1, float64(i % 5)}
}

// sumOf is a checksum of positions, in any order.
func sumOf(pos []Position) (sum uint64) {
	for i := range pos {
		sum += uint64(int64(pos[i].X)) + 3*uint64(int64(pos[i].Y))
	}
	return sum
}

// sumOfPairs is a checksum of positions and velocities.
func sumOfPairs(pos []Position, vel []Velocity) uint64 {
	sum := sumOf(pos)
	for i := range vel {
		sum += 5*uint64(int64(vel[i].X)) + 7*uint64(int64(vel[i].Y))
	}
	return sum
}
