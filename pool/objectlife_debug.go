//go:build ecsdebug

package pool

// objectLives is how many traces a guard has: one here, none in a release build.
const objectLives = 1
