//go:build !ecsdebug

package check

// Enabled says whether this build checks its invariants: the ecsdebug build tag. It is a
// constant, so that what stands behind it is compiled away in a release build.
const Enabled = false

// guardWords is the size of a Guard: none here, one word in a debug build.
const guardWords = 0
