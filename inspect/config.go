package inspect

import (
	"log/slog"

	"github.com/airlock-ecs/airlock/pool"
)

// Config says what a Handler shows and to whom. The zero value works.
type Config struct {
	Pools []pool.Source // whose pools are shown. Declaring one needs a *pool.Prefabs among them

	// Token is what a request for an action brings in the header Airlock-Token. Empty: there are no actions.
	Token string
	// Remote lets others than this machine in: connections to an address that is not loopback are served. It has no effect
	// without a Token, which then everything but the page itself needs.
	Remote bool

	Logger *slog.Logger // where actions are written; nil means slog.Default
}

// The bounds of what is taken and given.
const (
	mostHeaderBytes = 16 << 10
	mostURLBytes    = 2 << 10
	mostBodyBytes   = 4 << 10
	mostStreams     = 64
	mostViews       = 32      // of archetypes, entities and worlds that are kept because somebody looked lately
	mostRows        = 512     // of each table
	mostSlots       = 1 << 15 // of a chunk map, unless one chunk is larger
	mostDots        = 4096    // entities in a view of the world
)
