package pool

// Stats are the counters of a pool at one instant.
//
// Invariant: 0 <= InUse <= Peak, InUse + Free == Cap, and Cap <= Max if there is a Max.
type Stats struct {
	Cap   int // places: what can be in use before the pool has to grow
	InUse int // places taken, also those whose instance is just being made or reset
	Free  int // places that can be taken

	Peak    int // the most that was ever in use at once
	Built   int // instances that New has made so far, also those no longer there
	Refused int // what was asked for in vain because everything was in use
	Leaked  int // what was lost without being given back, and is no longer in use
	Grown   int // how often the pool grew

	Max  int  // the most Cap may become; 0 means no limit
	Grow Grow // what the pool does when everything is in use
	Warm bool // instances are made up front, not when they are first taken
}
