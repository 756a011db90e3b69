package fault

import "fmt"

// Point is a place in the engine's code.
type Point uint8

// The points of a handshake, in the order in which a caller comes by; then those of operations that
// Logic runs itself, of Logic's side, of the end, and of others.
const (
	Joining     Point = iota // a goroutine stands in line and is not counted yet
	Queued                   // it is, and does not wait yet
	Parking                  // it is about to sleep
	Cancelling               // it was cancelled while it waited, and is about to leave the line
	Granted                  // it has the window, and has not looked at its context again
	Entering                 // its callback is about to run
	Returned                 // its callback has run, or was undone
	HandingOn                // who has the window, Logic too, is about to grant it to the next in line
	Waking                   // the window is another's, who sleeps and was not woken yet
	HandingBack              // the last in line is about to give the window back to Logic

	Accepted  // a deferred or enqueued operation has its place in the queue and is not in its lane yet
	Serving   // Logic is about to run one
	Answering // it has run, and nobody knows yet

	Collecting  // Logic is about to look who waits
	Draining    // it has taken over who waits at the door, and not what waits in the lanes
	Emptying    // it has taken a lane over, and not its operations
	Admitting   // Logic is about to lend the window out
	Sleeping    // Logic has lent it out and is about to sleep
	WindowShuts // everybody is served, and the window still open
	Publishing  // the phases have run, and the frame is not published yet

	Stopping   // the engine is marked as stopped, and the door still open
	Shutting   // the door is closed, and who waits has no answer yet
	Finishing  // Logic has ended, and what is left in the lanes has no answer yet
	Concluding // everything is answered, and the registry still the engine's

	Looking // somebody who asks what Logic does knows it, and not whether that is still so

	Points int = iota // how many there are
)

// String is the point's name.
func (p Point) String() string {
	if int(p) < Points {
		return [Points]string{
			"joining", "queued", "parking", "cancelling", "granted", "entering", "returned", "handing on", "waking", "handing back",
			"accepted", "serving", "answering",
			"collecting", "draining", "emptying", "admitting", "sleeping", "window shuts", "publishing",
			"stopping", "shutting", "finishing", "concluding",
			"looking",
		}[p]
	}
	return fmt.Sprintf("Point(%d)", uint8(p))
}
