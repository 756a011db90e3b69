package arena

import (
	"io/fs"

	"github.com/airlock-ecs/airlock/logic"
)

// Replay does again what a Server has recorded in the directory that Config.Journal named, and compares the hash after
// every frame. It gives the last frame up to which all agree.
//
// Errors: as logic.Replay.
// Concurrency: any goroutine; options say what is called meanwhile. Allocates: the world.
func Replay(journal fs.FS, opts ...logic.ReplayOption) (uint64, error) {
	reg, err := newRegistry()
	if err != nil {
		return 0, err
	}
	w, err := newWorld(reg, new(tally), 0)
	if err != nil {
		return 0, err
	}
	return logic.Replay(reg, journal, append([]logic.ReplayOption{logic.WithSystems(w.play)}, opts...)...)
}
