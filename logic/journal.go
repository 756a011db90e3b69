package logic

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// tape is the frame in progress as a journal has it: as it is written down, or as a replay takes it from one.
// Logic's.
type tape struct {
	on    bool                  // frames are written down
	fed   bool                  // frames are done from what was written
	frame snapshot.JournalFrame // its number, inputs and hash, and how many net names were confirmed
	err   error                 // why it has no hash

	// Frames that were simulated again, to be amended when the present is reached.
	again []snapshot.JournalFrame

	journal *snapshot.Journal
	inside  bool // a codec runs
}

// begins notes what a frame begins with.
func (t *tape) begins(frame uint64, inputs []registry.Input) {
	t.frame.Number, t.frame.Inputs, t.frame.Nets = frame, inputs, 0
}

// confirmNets confirms net names as peers and windows allow; in a replay as many as the first time.
func (s *stepper) confirmNets(now uint64) {
	if s.tape.fed {
		left := s.tape.frame.Nets
		s.core.ConfirmNetWhile(func(_, _ uint64) bool {
			left--
			return left >= 0
		})
		return
	}
	switch {
	case s.peerage.ever:
		s.tape.frame.Nets = s.core.ConfirmNetWhile(s.acknowledged)
	case s.netWindow > 0 && now >= uint64(s.netWindow):
		s.tape.frame.Nets = s.core.ConfirmNet(now - uint64(s.netWindow))
	}
}

// hash takes the hash of the state at the end of a frame, for whoever wants it.
func (s *stepper) hash() {
	if t := &s.tape; t.fed || t.on && !s.synced.on {
		t.frame.Hash, t.err = snapshot.Hash(s.frame.Frame)
	}
}

// Journal has what comes from outside written to a journal in a directory, which is made if need be, from the next frame on
// until Stop: the operations of windows as data, deaths, Updates, and what Input was given, with the hash
// of the state after every frame. Replay does it all again.
//
// The registry is a deterministic one, all components and classes are registered, and there is no entity of a cosmetic class
// yet. If it is not empty its state is saved first, and waits for that; nobody can go back to a frame before. What systems and observers do is not written, so nothing may reach them but by the registry and by
// Frame.Input: values of an Inbox are not in a journal. Nor is what callbacks from outside put off in parallel loops:
// the journal ends there. Systems and observers that are added and removed later are not in it either, nor is
// compaction of cosmetic classes.
//
// Logic writes a frame when it has ended, and hands it to the system at once. If that fails, with a full disk say, the failure is
// reported once, the journal ends before that frame, and the engine goes on without.
//
// Errors: registry.ErrDeterministic; snapshot.ErrNoCodec for a component with pointers that has none; fs.ErrExist
// if there is a journal in the directory; registry.ErrRunning during Run or Step; ErrStopped; ErrWouldDeadlock inside a
// callback; what the file system says.
// Concurrency: any goroutine. Allocates: yes.
func (e *Engine) Journal(dir string, opts ...snapshot.JournalOption) error {
	if err := e.begin(modeStepping); err != nil {
		return err
	}
	defer e.release()
	if err := e.core.Enter(false); err != nil {
		return fmt.Errorf("logic: journal: %w", err)
	}
	defer e.core.Leave()
	if err := e.openJournal(dir, opts); err != nil {
		return fmt.Errorf("logic: journal: %w", err)
	}
	return nil
}

func (e *Engine) openJournal(dir string, opts []snapshot.JournalOption) error {
	t := &e.stepper.tape
	switch {
	case t.on:
		return errors.New("there is one already")
	case e.stepper.midFrame():
		return errors.New("a frame was left in the middle")
	case !e.reg.Config().Deterministic:
		return e.core.KeepRecords() // which says why not
	}
	terms := snapshot.Terms{Rate: e.cfg.Rate, LocalWindow: e.cfg.LocalWindow, NetWindow: e.cfg.NetWindow, Frame: e.core.FrameNumber()}
	if !e.core.Untouched() {
		if err := e.takeState(&terms); err != nil {
			return err
		}
	}
	if err := e.core.KeepRecords(); err != nil {
		return err
	}
	j, err := snapshot.OpenJournal(dir, e.reg, terms, opts...)
	if err != nil {
		e.core.DropRecords()
		return err
	}
	t.journal, t.on = j, true
	return nil
}

// takeRounds is how often observers may put something off while the state is taken.
const takeRounds = 16

// takeState takes the state that a journal begins with, in a window of its own.
func (e *Engine) takeState(t *snapshot.Terms) error {
	if e.core.Cosmetics() > 0 {
		return errors.New("entities of cosmetic classes are not in the state that it begins with: it has to begin before them")
	}
	for range takeRounds {
		if err := e.core.Update(func(w *registry.Window) (err error) {
			if t.State, err = snapshot.Take(w); err == nil {
				t.Hash, err = snapshot.Hash(w)
			}
			return err
		}); err != nil {
			return err
		}
		if !e.core.PutOff() {
			return nil
		}
	}
	return fmt.Errorf("observers have put something off in each of %d windows: %w", takeRounds, registry.ErrPutOff)
}

// journal writes the frame that has ended. A codec that ends its goroutine ends the journal.
func (e *frameShell) journal() {
	t := &e.stepper.tape
	if !t.on {
		return
	}
	if t.inside {
		t.inside = false
		e.endJournal(registry.ErrGoexit)
		return
	}
	t.inside = true
	err := e.writeJournal()
	t.inside = false
	if err != nil {
		e.endJournal(err)
	}
}

func (e *frameShell) writeJournal() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &registry.PanicError{Value: v, Where: "journal", Frame: e.core.FrameNumber()}
		}
	}()
	s, t := &e.stepper, &e.stepper.tape
	t.frame.Lost = e.core.TakeLost()
	switch {
	case s.synced.on:
		return nil // it was written the first time
	case t.err != nil:
		return t.err
	case s.again:
		for i := range t.again {
			if t.again[i].Number == t.frame.Number {
				t.again[i] = t.frame
				return nil
			}
		}
		t.again = append(t.again, t.frame)
		return nil
	}
	if err := t.amend(); err != nil {
		return err
	}
	if t.frame.Record, err = e.core.RecordOf(t.frame.Number); err != nil {
		return err
	}
	return t.journal.Append(&t.frame)
}

// amend writes what frames of the past have come to.
func (t *tape) amend() error {
	if len(t.again) == 0 {
		return nil
	}
	err := t.journal.Amend(t.again)
	clear(t.again)
	t.again = t.again[:0]
	return err
}

// endJournal ends a journal that failed.
func (e *frameShell) endJournal(err error) {
	t := &e.stepper.tape
	t.on = false
	e.core.DropRecords()
	t.journal.Close() // the first error is the one to report
	(*Engine)(e).report(fmt.Errorf("logic: the journal ends before frame %d, and the engine goes on without: %w", t.frame.Number, err))
}

// closeJournal ends it when the engine does.
func (e *Engine) closeJournal() {
	t := &e.stepper.tape
	if !t.on {
		return
	}
	t.on = false
	var err error
	if !e.stepper.again {
		err = t.amend()
	}
	if err = errors.Join(err, t.journal.Close()); err != nil {
		e.report(fmt.Errorf("logic: the end of the journal: %w", err))
	}
}
