package archetype

import "fmt"

// Tier says how many frames of a column are kept. The higher tier keeps more.
type Tier uint8

const (
	// Cold keeps one frame. Readers of published frames do not see Cold columns.
	Cold Tier = iota
	// Volatile keeps three: the one being written, the newest published, and one that may
	// still be pinned.
	Volatile
	// Temporal keeps a whole ring, so that a frame of the recent past can be restored. Its
	// components are free of pointers.
	Temporal
)

// volatileFrames is how many frames a Volatile column has, and the least that planes and
// entity columns have.
const volatileFrames = 3

// String is the tier's name.
//
// Concurrency: any goroutine; never waits. Allocates: only for a tier that does not exist.
func (t Tier) String() string {
	switch t {
	case Cold:
		return "Cold"
	case Volatile:
		return "Volatile"
	case Temporal:
		return "Temporal"
	}
	return fmt.Sprintf("Tier(%d)", uint8(t))
}

// frames is how many frames a column of this tier has when the temporal ring has
// temporalFrames (0: there is no ring, and Temporal behaves as Volatile).
func (t Tier) frames(temporalFrames int) int {
	switch {
	case t == Cold:
		return 1
	case t == Temporal && temporalFrames > 0:
		return temporalFrames
	}
	return volatileFrames
}
