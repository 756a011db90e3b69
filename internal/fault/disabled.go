//go:build !faults

package fault

// Enabled says whether functions can be hung on the points: the build tag faults. It is a constant, so
// that what stands behind it is compiled away in any other build.
const Enabled = false

// Hang does nothing in this build.
func Hang(Point, func()) (down func()) { return func() {} }

// At does nothing in this build.
func At(Point) {}

// Simulate does nothing in this build.
func Simulate(Simulation) (over func()) { return func() {} }

// Yield does nothing in this build.
func Yield(Pause) {}

// Wait does nothing in this build.
func Wait(Pause, ...func() bool) int { return -1 }

// Fork does nothing in this build.
func Fork(Pause) {}

// Begin does nothing in this build.
func Begin() int { return -1 }

// End does nothing in this build.
func End(int) {}
