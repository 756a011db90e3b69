package defrag

import (
	"errors"
	"fmt"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

var errForeign = errors.New("defrag: window of another registry")

// Config says how much one Run may do. The zero value has no limit.
type Config struct {
	Moves int // most entities moved in one Run; 0: no limit
}

// Report says what a Run did.
type Report struct {
	Moved       int           // entities, each at most once
	ChunksFreed int           // chunks that went back
	Left        int           // entities that further Runs with the same limit would move
	Bytes       int64         // given back to the slab
	Time        time.Duration // that it took
}

// Compactor compacts a registry. One at a time may run.
type Compactor struct {
	r     *registry.Registry
	limit int
	spent int                       // of the limit, in this Run
	moved map[*archetype.Chunk]bool // to which entities have come in this Run

	// Buffers that are kept.
	plan   plan
	chunks []*archetype.Chunk
	moves  []archetype.SlotMove
}

// New makes a compactor.
//
// Errors: registry.ErrDeterministic in a deterministic registry without a cosmetic class; no
// registry; a negative limit.
// Concurrency: any goroutine; never waits. Allocates: yes.
func New(r *registry.Registry, c Config) (*Compactor, error) {
	if r == nil {
		return nil, errors.New("defrag: no registry")
	}
	if c.Moves < 0 {
		return nil, fmt.Errorf("defrag: Config.Moves is negative: %d", c.Moves)
	}
	if err := r.Relocatable(); err != nil {
		return nil, fmt.Errorf("defrag: %w", err)
	}
	return &Compactor{r: r, limit: c.Moves, moved: map[*archetype.Chunk]bool{}}, nil
}
