//go:build !ecsdebug

package pool

// objectLives is how many traces a guard has: none here, one in a debug build.
const objectLives = 0
