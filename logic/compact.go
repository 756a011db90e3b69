package logic

import (
	"fmt"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/registry"
)

// fewestFree is how many free slots compaction is worth beginning for: less than a chunk's worth of
// them costs loops next to nothing.
const fewestFree = 1024

// compactor is the policy of compaction. It begins when the share of free slots has passed the
// threshold and goes on, in every frame, until nothing is left to do.
//
// All of it belongs to Logic.
type compactor struct {
	defrag  *defrag.Compactor // nil: compaction is off
	above   float64
	running bool
	left    int    // free slots when it last came to an end: what it could not change
	frame   uint64 // the last one in which it ran
	run     func() // made once, so that a steady frame allocates nothing
	err     error  // of the last run
}

// init sets the policy up.
func (c *compactor) init(r *registry.Registry, core *registry.Core, cfg Defrag) (err error) {
	if cfg.Moves == 0 {
		return nil
	}
	if c.defrag, err = defrag.New(r, defrag.Config{Moves: cfg.Moves}); err != nil {
		return fmt.Errorf("logic: Config.Defrag: %w", err)
	}
	c.above = cfg.Above
	inWindow := func(w *registry.Window) error {
		rep, err := c.defrag.Run(w)
		if err == nil && rep.Left == 0 {
			c.running = false
			c.left, _ = core.FreeSlots()
		}
		return err
	}
	c.run = func() { c.err = core.Callback(inWindow) }
	return nil
}

// due says whether this frame is to have a run, and notes that it had. A run that was left by an exit
// of a subscriber is not repeated in its frame.
func (c *compactor) due(core *registry.Core) bool {
	now := core.FrameNumber()
	if c.defrag == nil || c.frame == now {
		return false
	}
	c.frame = now
	if !c.running {
		free, allocated := core.FreeSlots()
		c.left = min(c.left, free)
		c.running = free-c.left >= fewestFree && float64(free) > float64(c.above*float64(allocated))
	}
	return c.running
}
