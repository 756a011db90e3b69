//go:build !faults

package fault

import "sync"

// Pool is a sync.Pool in this build.
type Pool struct{ sync.Pool }
