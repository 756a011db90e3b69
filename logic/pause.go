package logic

import (
	"sync"
	"sync/atomic"
)

// pause is what Pause, Resume and Advance have told Run.
type pause struct {
	on atomic.Bool // stored under mu; spares a steady frame the lock

	mu     sync.Mutex // guards frames; leaf lock
	frames uint64     // that Run may still run while it is paused
	wake   chan struct{}
}

// Pause has Run hold between frames, from the end of the frame in progress until Resume: for tools that look at a world that
// stands still. Who waits for the window waits on. Step does not care, and Stop works as ever. Frames that would
// have been due meanwhile are not caught up with, nor counted as dropped.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Pause() { e.pause.set(true) }

// Resume ends a Pause.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Resume() { e.pause.set(false) }

// Advance lets a Run that is paused run some more frames, one after the other, and then hold again. It does nothing if
// the engine is not paused.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Advance(frames int) {
	p := &e.pause
	p.mu.Lock()
	if frames > 0 && p.on.Load() {
		p.frames += uint64(frames)
	}
	p.mu.Unlock()
	p.nudge()
}

func (p *pause) set(on bool) {
	p.mu.Lock()
	p.on.Store(on)
	p.frames = 0
	p.mu.Unlock()
	p.nudge()
}

// nudge has hold look again.
func (p *pause) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // it will look again anyway
	}
}

// take takes one of the frames that may be run; true, too, when there is no pause any more.
func (p *pause) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.on.Load():
		return true
	case p.frames == 0:
		return false
	}
	p.frames--
	return true
}

// hold waits until a frame may be run although there is a pause, and has the schedule begin with it; false if the engine is to
// stop.
func (e *Engine) hold() bool {
	for !e.pause.take() {
		select {
		case <-e.pause.wake:
		case <-e.stop:
			return false
		}
	}
	e.last = e.clock.now()
	e.schedule = newSchedule(e.cfg.Rate, e.last)
	e.schedule.advance(1)
	return true
}
