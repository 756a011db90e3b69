package logic

// Stats is a copy of the engine's counters.
type Stats struct {
	Frames        uint64 // run since New
	Overruns      uint64 // callbacks past the watchdog
	PublishSkips  uint64 // frames not published because every buffer was pinned
	Rollbacks     uint64 // served
	DroppedFrames uint64 // given up because Logic was more than 5 frames late

	Waiting int // goroutines queued in Spawn and SpawnBatch
	Queued  int // operations queued by Defer and Enqueue; amid many short ones up to 15 that have just run

	Peers       int
	SlowestPeer uint32 // the peer that holds net indices back most
	SlowestAck  uint64 // the frame it has acknowledged, or the one before it joined

	FrameTime     Histogram // a frame's work, without the wait for the next
	HandshakeWait Histogram // from a caller's queueing to its grant: of those that sleep first in line, and one in 16 others
	WindowStall   Histogram // how long Logic stood still for callers, each window that had any
}

// Stats copies the counters. Each is exact at some instant of the call; they are not read at
// the same one.
//
// Concurrency: any goroutine; never waits for Logic. Allocates: no.
func (e *Engine) Stats() Stats {
	s := Stats{
		Frames:        e.frames.Load(),
		Overruns:      e.watch.overruns.Load(),
		PublishSkips:  e.core.PublishSkips(),
		Rollbacks:     e.rollbacks.Load(),
		DroppedFrames: e.overdue.Load(),
		FrameTime:     e.frameTime.read(),
		HandshakeWait: e.door.waits.read(),
		WindowStall:   e.stalls.read(),
	}
	e.lanes.recall()
	s.Waiting, s.Queued = e.queue.read()
	s.Peers, s.SlowestPeer, s.SlowestAck = e.peerTable.slowest()
	return s
}
