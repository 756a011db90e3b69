package stress

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Ending is how a callback ends.
type Ending uint8

// The endings.
const (
	Returns Ending = iota // without an error
	Fails                 // with an error, where the callback can return one
	Panics
	Exits // by runtime.Goexit

	endings int = iota
)

// String is the ending's name.
func (e Ending) String() string {
	if int(e) < endings {
		return [endings]string{"returns", "fails", "panics", "exits"}[e]
	}
	return fmt.Sprintf("Ending(%d)", uint8(e))
}

// Site is a kind of user code that the engine calls.
type Site uint8

// The sites: operations, what puts operations off, the systems of each phase, observers of each kind,
// and what is called inside another callback.
const (
	InSpawn Site = iota
	InSpawnBatch
	InDefer
	InEnqueue
	InLaneDefer
	InLaneEnqueue
	InUpdate
	InSystemWish
	InObserverWish
	InPrePhysics
	InPhysics
	InPostPhysics
	InLate
	InParallel // a part of a loop of a system
	InSpawned
	InAdded
	InRemoved
	InMoved
	InDestroyed
	InOnMove  // a subscriber to moves, inside an operation that moves
	InInit    // of a batch of births
	InFill    // of views.SpawnColumns
	InPoolAsk // the condition of pool.Entities.DespawnWhere
	InAskNow  // and that of DespawnWhereNow, in a system
	InRead    // of a published frame
	InOnError

	sites int = iota
)

// String is the site's name.
func (s Site) String() string {
	if int(s) < sites {
		return [sites]string{
			"Spawn", "SpawnBatch", "Defer", "Enqueue", "Producer.Defer", "Producer.Enqueue", "Update",
			"wish of a system", "wish of an observer", "PrePhysics", "Physics", "PostPhysics", "Late", "parallel part",
			"Spawned", "Added", "Removed", "Moved", "Destroyed", "OnMove", "init of a batch", "SpawnColumns", "DespawnWhere",
			"DespawnWhereNow", "Read", "OnError",
		}[s]
	}
	return fmt.Sprintf("Site(%d)", uint8(s))
}

// window says whether the callback has a window of its own, so that it can return an error and what it
// did is undone if it fails.
func (s Site) window() bool { return s <= InObserverWish }

// Endings are the ways in which a callback at this site can end.
//
// Concurrency: any goroutine; never waits. Allocates: the list.
func (s Site) Endings() []Ending {
	if s.window() || s == InRead {
		return []Ending{Returns, Fails, Panics, Exits}
	}
	return []Ending{Returns, Panics, Exits}
}

// Sites are all sites.
//
// Concurrency: any goroutine; never waits. Allocates: the list.
func Sites() []Site {
	all := make([]Site, sites)
	for i := range all {
		all[i] = Site(i)
	}
	return all
}

// Fault is a callback that is to end in some way.
type Fault struct {
	Site   Site
	Ending Ending
}

// String says both.
func (f Fault) String() string { return fmt.Sprintf("%v %v", f.Site, f.Ending) }

// RandomFaults draws faults at several different sites, for one round.
//
// Concurrency: as rng. Allocates: the list.
func RandomFaults(rng *rand.Rand) []Fault {
	faults := make([]Fault, 0, 8)
	for _, at := range rng.Perm(sites)[:1+rng.IntN(8)] {
		s := Site(at)
		ways := s.Endings()
		faults = append(faults, Fault{s, ways[rng.IntN(len(ways))]})
	}
	return faults
}

// faultError is what a callback of this package fails or panics with; it tells one from the other.
type faultError struct{ op *faultOp }

func (e *faultError) Error() string { return fmt.Sprintf("stress: %v, as it was told", e.op.fault) }

// end ends a callback.
func (o *faultOp) end() error {
	switch o.fault.Ending {
	case Fails:
		return &faultError{o}
	case Panics:
		panic(&faultError{o})
	case Exits:
		runtime.Goexit()
	}
	return nil
}
