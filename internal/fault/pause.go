package fault

import "fmt"

// Pause is a place at which a goroutine waits for another one, lets others go first, or begins. Nothing
// hangs there: it is for a Simulation, which has to know of all of them.
type Pause uint8

// The pauses: those of a caller, of Logic, of the supervisor, of who stops, and of who wants to be the
// registry's owner. Inner and Ending are where goroutines of the engine begin.
const (
	Spinning  Pause = iota // a caller is about to look whether it was granted the window
	Asleep                 // it sleeps, and only the window's holder, a stop or a nudge wakes it
	Parked                 // it sleeps, and the end of its context wakes it, too
	Lingering              // Logic has lent the window out, and is about to look whether it is back
	Away                   // it sleeps until the window is back
	Pacing                 // it sleeps until the next frame is due
	Watching               // the supervisor waits for Logic's goroutine
	Stopped                // Stop waits for the end
	Shut                   // Shutdown waits for the end
	Owning                 // somebody waits for the registry
	Owned                  // somebody has it, between the engine's mode and its frame
	Inner                  // Logic's goroutine begins
	Ending                 // the goroutine that ends an idle engine begins

	Pauses int = iota // how many there are
)

// String is the pause's name.
func (p Pause) String() string {
	if int(p) < Pauses {
		return [Pauses]string{
			"spinning", "asleep", "parked", "lingering", "away", "pacing", "watching", "stopped", "shut",
			"owning", "owned", "inner", "ending",
		}[p]
	}
	return fmt.Sprintf("Pause(%d)", uint8(p))
}

// Simulation decides who runs next. There is one token, and the goroutine that has it runs until it comes
// by a point or pause; see package sim, whose Sim is one.
type Simulation interface {
	// At returns when the goroutine has the token again.
	At(place fmt.Stringer)
	// Wait waits until a case is ready, too, and says which one to take: others may be ready as well, and
	// a select would choose among them at random.
	Wait(place fmt.Stringer, ready ...func() bool) int
	// Fork announces a goroutine that is about to be started.
	Fork(place fmt.Stringer)
	// Begin is the first thing that this one does. What it returns goes to End, the last.
	Begin() (id int)
	// End gives the token on for good. What the goroutine panics with, if it does, is the simulation's.
	End(id int, panicked any)
}
