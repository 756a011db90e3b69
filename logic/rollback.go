package logic

import (
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
)

// Rollback asks Logic to go back to frame and simulate to the present again. Frames are not
// kept yet, so only the present can be asked for, which does nothing.
//
// Errors: ErrTooOld for a frame that is no longer kept; ErrNotPublished for one that has not run.
// Concurrency: any goroutine; never waits. Allocates: for the error.
func (e *Engine) Rollback(frame uint64) error {
	switch now := e.FrameNumber(); {
	case frame < now:
		return fmt.Errorf("logic: rollback to frame %d in frame %d: %w", frame, now, ErrTooOld)
	case frame > now:
		return fmt.Errorf("logic: rollback to frame %d in frame %d: %w", frame, now, registry.ErrNotPublished)
	}
	return nil
}

// Input gives a player's input for a frame. Inputs come with rollback: until then they are
// refused, for the past as too old and for the future as not published.
//
// Errors: ErrTooOld; ErrNotPublished.
// Concurrency: any goroutine; never waits. Allocates: for the error.
func (e *Engine) Input(player uint8, frame uint64, data []byte) error {
	now, err := e.FrameNumber(), registry.ErrNotPublished
	if frame <= now {
		err = ErrTooOld
	}
	return fmt.Errorf("logic: input of player %d for frame %d in frame %d: %w", player, frame, now, err)
}
