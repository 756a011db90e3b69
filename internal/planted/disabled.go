//go:build !planted

package planted

// Enabled says whether bugs can be switched on: the build tag planted. It is a constant, so that what
// stands behind it is compiled away in any other build.
const Enabled = false

// Is says no in this build.
func Is(Bug) bool { return false }
