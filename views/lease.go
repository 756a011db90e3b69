package views

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// takeLease finds the cells of h and keeps the right to them, for a token of the registry r only:
// in another registry the handle would name a stranger.
func takeLease(l *registry.Lease, r *registry.Registry, a registry.Access, h handles.Local) (*archetype.Chunk, uint32, error) {
	opens, err := registry.Opened(a)
	if err != nil {
		return nil, 0, err
	}
	if opens != r {
		return nil, 0, fmt.Errorf("%w: cursor on %v", ErrForeign, h)
	}
	return l.Take(a, h)
}
