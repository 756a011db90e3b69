package logic

import "time"

// clock tells nanoseconds since the engine was made: one monotonic reading, half the price
// of time.Now, and small enough for an atomic.
type clock struct{ epoch time.Time }

func (c clock) now() int64 { return int64(time.Since(c.epoch)) }
