//go:build !faults

package fault

// Enabled says whether functions can be hung on the points: the build tag faults. It is a constant, so
// that what stands behind it is compiled away in any other build.
const Enabled = false

// Hang does nothing in this build.
func Hang(Point, func()) (down func()) { return func() {} }

// At does nothing in this build.
func At(Point) {}
