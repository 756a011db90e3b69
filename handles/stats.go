package handles

// SpaceStats counts the indices of one space.
type SpaceStats struct {
	Issued        int    // claimed and not yet freed: alive, reserved or dying
	Free          int    // used before, and ready for reuse
	Pending       int    // freed, and waiting for a confirm
	Retired       int    // past their last generation, never to be issued again
	OldestPending uint64 // frame of the death that waits longest; valid when Pending > 0
}
