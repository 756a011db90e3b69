package logic

import (
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// stage is how far a frame has come.
type stage uint8

const (
	stageBegin   stage = iota // between frames
	stageWishes               // the window is open: what systems and observers put off
	stageCollect              // who waits now is served in this window, who comes later is not
	stageServe                // operations and callers
	stageCompact              // a slice of compaction
	stageClose                // the window closes
	stageEvents               // observers hear of the window
	stageSystems              // phase by phase
	stageLate                 // observers hear of the phases
	stagePublish
	stageJournal // the frame is written down
	stageReport  // what failed
)

// shell is what the core asks of the world around it: whatever has a clock, a goroutine or a
// queue. A replay answers from a record.
type shell interface {
	// systems gives what was registered and removed since the last call, oldest first; the
	// slice is valid until the next call.
	systems() []systemChange
	// peers gives who joined and left since the last call, likewise.
	peers() []peerChange
	// collect takes over what waits for the window; serve serves it. If serve is left by
	// runtime.Goexit it is called again and goes on behind the operation that exited.
	collect()
	serve()
	// entering says which user code runs next, for the watchdog; what runs between two of them is
	// counted to the first. phaseBegins comes before the first system of a phase, enteringSystem
	// and leftSystem about each.
	entering(what activity)
	phaseBegins()
	enteringSystem(s *System)
	leftSystem()
	// exited takes the exit of an observer or of an operation it put off; failed takes the
	// panic of a system.
	exited(error)
	failed(error)
	// goBack says which frame to go back to before the next one, if any; wentBack takes the outcome.
	goBack() (frame uint64, ok bool)
	wentBack(error)
	// inputs are what the players have given for a frame.
	inputs(frame uint64) []registry.Input
	// desynced takes the outcome of a sync test that failed.
	desynced(error)
	// compacted takes the outcome of a run of compaction.
	compacted(error)
	// journal writes the frame that has ended, or does again after it exited.
	journal()
}

// stepper is the pure core of the engine: it runs frames on plain inputs, without a clock, a
// goroutine or a random source. What a frame has done so far is data (a stage and cursors), so
// when the goroutine that runs it is ended by runtime.Goexit in user code, another one calls
// step and goes on behind the culprit.
//
// All of it belongs to Logic.
type stepper struct {
	core        *registry.Core
	shell       shell
	delta       float64
	localWindow int // frames; negative: manual
	netWindow   int // frames, while no peer was ever added; 0 or negative: manual
	// lateDeaths: a death from outside is an operation of the window, which drains it, so its
	// burial is a frame later than that of others.
	lateDeaths bool

	ringed bool   // there is a temporal ring; never changes, so any goroutine reads it
	again  bool   // frames of the past are simulated again
	runs   uint64 // how often that was begun; workers read it
	past   []systemChanges
	synced syncTest
	tape   tape

	stage    stage
	phase    Phase
	next     int // the next system of phase
	reported int // of failures

	compactor compactor

	phases   [phaseCount][]*System     // in the order in which their registration was served
	shown    atomic.Pointer[[]*System] // all of them, for whoever asks; not changed once it is here
	peerage  peerage
	frame    *Frame // of the frame in progress, from stageEvents on
	block    []Frame
	failures []error // panics of this frame's systems

	regions    regions // of a trace
	current    *System // the system that runs
	runCurrent func()  // runs it; made once, so that a steady frame allocates nothing

	acknowledged func(death, frame uint64) bool // peerage.acknowledged, made once likewise
}

func (s *stepper) init() {
	s.runCurrent = func() { s.current.fn(s.frame) }
	s.acknowledged = s.peerage.acknowledged
}

// midFrame reports whether a frame has begun and not ended, or frames of the past have to be simulated again
// before the next one.
func (s *stepper) midFrame() bool { return s.stage != stageBegin || s.again }

// step runs one frame to its end, or goes on with the one that was left in the middle. If the registry is to
// go back, the frames from there to the present are simulated again before it.
func (s *stepper) step() {
	s.regions = regions{} // those of a goroutine that has ended
	for {
		switch s.stage {
		case stageBegin:
			if s.tape.fed {
				s.core.UpdatesAgain()
			} else if !s.again {
				s.goBack()
			}
			if s.again {
				s.core.UpdatesAgain()
				if s.caughtUp() {
					if s.synced.on {
						s.endSync()
						return
					}
					continue
				}
			}
			s.regions.beginFrame(s.core.FrameNumber() + 1)
			s.begin()
			beginRegion(&s.regions.part, traceWindow)
			s.core.OpenWindow()
			s.register()
		case stageWishes:
			s.watched(wishes, s.core.RunWishes)
		case stageCollect:
			if !s.again && !s.tape.fed {
				s.shell.collect()
			}
		case stageServe:
			if s.again || s.tape.fed {
				s.watched(queuedOp, s.core.OpsAgain)
			} else {
				s.shell.serve()
			}
		case stageCompact:
			if !s.again && !s.tape.fed && s.compactor.due(s.core) {
				s.watched(compaction, s.compactor.run)
				s.shell.compacted(s.compactor.err)
			}
		case stageClose:
			if fault.Enabled {
				fault.At(fault.WindowShuts)
			}
			s.core.CloseWindow()
			endRegion(&s.regions.part)
			s.openFrame()
		case stageEvents:
			s.watched(observers, s.core.Deliver)
		case stageSystems:
			s.systems()
		case stageLate:
			s.watched(observers, s.core.Deliver)
		case stagePublish:
			if fault.Enabled {
				fault.At(fault.Publishing)
			}
			beginRegion(&s.regions.part, tracePublish)
			s.core.Boundary()
			s.hash()
			s.core.EndFrame()
			endRegion(&s.regions.part)
			s.frame = nil
			s.phase, s.next = 0, 0
		case stageJournal:
			if s.tape.on {
				s.watched(journaling, s.shell.journal)
			}
		case stageReport:
			s.report()
			endRegion(&s.regions.frame)
			s.stage = stageBegin
			if s.again {
				s.compareSync()
				continue
			}
			if s.beginSync() {
				continue
			}
			return
		}
		s.stage++
	}
}

// watched runs a part of the core that calls user code. The core reports what panics there;
// an exit it cannot see, and the call after it goes on behind the one that exited.
func (s *stepper) watched(what activity, part func()) {
	returned := false
	s.shell.entering(what)
	defer func() {
		if !returned {
			s.shell.exited(&registry.PanicError{Value: registry.ErrGoexit, Where: what.String(), Frame: s.core.FrameNumber()})
		}
	}()
	part()
	returned = true
}

// begin is the top of a frame up to the window: the dead are buried and indices come back.
func (s *stepper) begin() {
	if !s.again {
		clear(s.failures)
		s.failures = s.failures[:0]
	}
	s.reported = len(s.failures)
	now := s.core.Advance()
	if !s.tape.fed { // the frame has begun by now: an input that comes behind this look has it simulated again
		s.tape.begins(now, s.inputsOf(now))
	}
	s.core.SetInputs(s.tape.frame.Inputs)
	if !s.lateDeaths {
		s.core.DrainDestroys()
	}
	if s.again { // peers, and net names, do not go back
		s.core.ProcessDestructions()
		s.confirmLocal(now)
		return
	}
	changes := s.shell.peers()
	s.peerage.join(changes)
	s.core.ProcessDestructions()
	s.peerage.part(changes)

	s.confirmLocal(now)
	s.confirmNets(now)
}

// confirmLocal lets local indices serve again that have waited long enough.
func (s *stepper) confirmLocal(now uint64) {
	if planted.Enabled && planted.Is(planted.WindowFrameEarly) {
		now++
	}
	if s.localWindow >= 0 && now >= uint64(s.localWindow) {
		s.core.ConfirmLocal(now - uint64(s.localWindow))
	}
}

// register serves the registrations and removals of systems: in a frame that is simulated again, those that it
// served the first time.
func (s *stepper) register() {
	now := s.core.FrameNumber()
	var changes []systemChange
	if s.again {
		changes = s.changesOf(now)
	} else if changes = s.shell.systems(); len(changes) > 0 {
		s.keepChanges(now, changes)
	}
	for _, c := range changes {
		list := &s.phases[c.system.phase]
		if c.remove {
			*list = without(*list, c.system)
		} else {
			*list = append(slices.Clip(*list), c.system) // a list of the past may begin like this one
		}
	}
	if len(changes) > 0 {
		s.showSystems()
	}
}

// frameBlock is how many frame tokens are made at once: a fresh one a frame then costs no
// allocation that testing.AllocsPerRun can count, and 16 bytes. One less than 64, as with the tokens of the registry: with the
// allocator's word before it the block is of one of its sizes.
const frameBlock = 63

// openFrame cuts this frame's token. Tokens are never reused: one kept too long has expired.
func (s *stepper) openFrame() {
	if len(s.block) == 0 {
		s.block = make([]Frame, frameBlock)
	}
	s.frame = &s.block[0]
	s.block = s.block[1:]
	*s.frame = Frame{Frame: s.core.NewFrame(), Delta: s.delta}
}

// systems runs the phases, each behind a boundary. The cursor moves before the call: a system
// that exits is not run again.
func (s *stepper) systems() {
	for ; s.phase < phaseCount; s.phase, s.next = s.phase+1, 0 {
		list := s.phases[s.phase]
		if len(list) > 0 && s.next == 0 {
			s.core.Boundary()
			s.shell.phaseBegins()
		}
		beginRegion(&s.regions.part, phaseRegions[s.phase])
		for s.next < len(list) {
			s.current = list[s.next]
			s.next++
			s.call()
		}
		endRegion(&s.regions.part)
	}
	s.current = nil
}

// call runs the current system. A panic ends the system, not the frame.
func (s *stepper) call() {
	returned := false
	s.shell.enteringSystem(s.current)
	beginRegion(&s.regions.system, s.current.region)
	defer func() {
		endRegion(&s.regions.system)
		if !returned { // first of all: who logs an overrun may end this goroutine
			s.fail(recover())
		}
		s.shell.leftSystem()
	}()
	s.core.System(s.current.name, s.runCurrent)
	returned = true
}

// fail notes a panic of the current system, or with a nil value its exit.
func (s *stepper) fail(value any) {
	failure := &registry.PanicError{Value: value, Where: s.current.name, Frame: s.core.FrameNumber()}
	if inner, ok := value.(*registry.PanicError); ok { // of a part of a parallel loop, with the stack of its worker
		failure.Value, failure.Stack = inner.Value, inner.Stack
	} else if value == nil {
		failure.Value = registry.ErrGoexit
	} else {
		failure.Stack = debug.Stack()
	}
	s.failures = append(s.failures, failure)
}

// report hands out what failed, each once, even if its receiver exits.
func (s *stepper) report() {
	for s.reported < len(s.failures) {
		err := s.failures[s.reported]
		s.reported++
		s.shell.failed(err)
	}
}
