package inspect

import (
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// declarer is a source of pools that takes declarations: a *pool.Prefabs.
type declarer interface {
	Declare(w *registry.Window, id string, capacity int, g pool.Grow, prewarm bool) error
}
