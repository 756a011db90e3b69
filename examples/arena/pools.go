package arena

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// PoolFile is where the pools of the arena are declared, seen from the root of this repository.
const PoolFile = "pools/arena.pools.ron"

// builtinPools is the same file, which is here, for this package to embed, and has a link at the other place.
//
//go:embed arena.pools.ron
var builtinPools []byte

// Names of prefabs, as the pool file has them.
const (
	prefabArrow = "Arrow"
	prefabSpark = "HitSpark"
)

// definePrefabs says what the names of the pool file mean. Without a file their pools have the settings by default.
func (w *world) definePrefabs(reg *registry.Registry) error {
	w.prefabs = pool.NewPrefabs(reg)
	return errors.Join(
		pool.Define(w.prefabs, prefabArrow, w.arrows, Arrow{Flight: Flight{Left: arrowLife}}, pool.Pooled()),
		pool.Define(w.prefabs, prefabSpark, w.sparks, Spark{Glow: Glow{sparkLife}}, pool.Pooled()),
	)
}

// declarePools applies a pool file, or with no name the one that is built in, before the first frame. What it makes is then part
// of where a journal begins.
func (w *world) declarePools(path string) error {
	declared, err := readPools(path)
	if err != nil {
		return err
	}
	return w.reg.Update(func(win *registry.Window) error {
		if err := w.prefabs.Apply(win, declared...); err != nil {
			return &refusal{ErrConfig, fmt.Sprintf("the pools of %s cannot be made: %v", path, err)}
		}
		return nil
	})
}

func readPools(path string) ([]pool.Declared, error) {
	if path == "" {
		return pool.ParseFile("the built-in pool file", builtinPools)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &refusal{ErrConfig, fmt.Sprintf("there is no pool file %s", path)}
	case err == nil && !info.Mode().IsRegular():
		return nil, &refusal{ErrConfig, fmt.Sprintf("the pool file %s is no regular file", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &refusal{ErrConfig, fmt.Sprintf("the pool file cannot be read: %v", err)}
	}
	defer f.Close()
	return pool.ReadFile(path, f)
}

// readySparks makes sure that each arrow in flight can hit in the same frame: systems, which spawn the sparks, cannot let
// their pool grow. If it may not, some hits don't show.
func (w *world) readySparks(win *registry.Window) error {
	err := w.prefabs.Ready(win, prefabSpark, w.flying.Count(win))
	if errors.Is(err, pool.ErrExhausted) {
		return nil
	}
	return err
}

// poolsLine says what is in use of each pool.
func (w *world) poolsLine() string {
	var b strings.Builder
	for id, s := range w.prefabs.Stats() {
		fmt.Fprintf(&b, " %s %d/%d", id, s.InUse, s.Cap)
	}
	return b.String()
}
