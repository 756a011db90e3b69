package handles

// State says what a local index is at the moment.
type State uint8

// The states of a local index. Free is the word of an index that was never claimed. A dead one
// stays Dying, with its last generation, through pending and free, until it is claimed again:
// the word of a free index needs no write of its own.
const (
	Free     State = iota // never claimed
	Reserved              // claimed, its entity comes later
	Alive                 // an entity
	Dying                 // dead: being reclaimed, pending, free for reuse, or retired
)

// String is the state's name.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s State) String() string {
	switch s {
	case Free:
		return "free"
	case Reserved:
		return "reserved"
	case Alive:
		return "alive"
	case Dying:
		return "dying"
	}
	return "invalid"
}

const (
	placeBits = 30

	// NoPlace is the place of an index that has no slot.
	NoPlace = 1<<placeBits - 1
	// MaxPlace is the highest place a word can hold.
	MaxPlace = NoPlace - 1
)

// Word is all there is to know about a local index, in the eight bytes that every goroutine
// may load at once: generation:32 | state:2 | place:30. Place is the entity's cache index.
type Word uint64

// MakeWord puts a word together. Of place only the low 30 bits count.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func MakeWord(generation uint32, state State, place uint32) Word {
	return Word(life(generation, state)<<placeBits | uint64(place&NoPlace))
}

// Generation is the generation of the index's last claim, 0 if there was none.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w Word) Generation() uint32 { return uint32(w >> 32) }

// State is the index's state.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w Word) State() State { return State(w >> placeBits & 3) }

// Place is where the entity is, NoPlace if it has no slot.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w Word) Place() uint32 { return uint32(w) & NoPlace }

// PlaceOf is the word's place if the word is that of h, and h alive, and otherwise a number above MaxPlace: a loop that compares
// it with the end of a table has looked at the generation, the state and the place at once.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w Word) PlaceOf(h Local) uint64 {
	// The difference of two different lives is 1<<30 at least, also when it has wrapped: a life has 34 bits.
	return uint64(w) - uint64(h)<<32 - uint64(Alive)<<placeBits
}

// life is what a word says without its place. Comparing it tests generation and state at once.
func life(generation uint32, state State) uint64 { return uint64(generation)<<2 | uint64(state) }

func (w Word) life() uint64 { return uint64(w >> placeBits) }

// Status is what a handle means to whoever holds it.
type Status uint8

// What a handle may mean.
const (
	Invalid    Status = iota // never issued by this space
	Stale                    // issued, and dead for ever
	NotSpawned               // reserved; its entity comes later
	Live                     // names somebody
)

// String is the status's name.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Status) String() string {
	switch s {
	case Invalid:
		return "invalid"
	case Stale:
		return "stale"
	case NotSpawned:
		return "not spawned"
	case Live:
		return "live"
	}
	return "unknown"
}
