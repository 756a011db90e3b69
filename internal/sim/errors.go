package sim

import "errors"

var (
	// ErrNobody reports that somebody has not ended and nobody can run: everybody waits, and a wake-up
	// that was due has not come.
	ErrNobody = errors.New("sim: nobody can run, and not everybody has ended: a lost wake-up, or a deadlock")

	// ErrSteps reports a run that does not end.
	ErrSteps = errors.New("sim: too many steps")
)
