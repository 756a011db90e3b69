package arena

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/registry"
)

// tally counts what happens from the first frame to the last. Any goroutine counts and reads.
type tally struct {
	spawned, destroyed atomic.Int64 // told by observers, whatever the path
	joined, fired      atomic.Int64 // told by connections whose spawn succeeded
	hits, kills        atomic.Int64
	sparks, faded      atomic.Int64 // no part of the others: see spark
	faults             atomic.Int64
	firstFault         atomic.Error
}

// observe subscribes to every spawn and every death, before the first frame.
func (t *tally) observe(reg *registry.Registry) error {
	_, err1 := reg.Observe(registry.Spawned, func(_ *registry.Frame, e []registry.Event) { t.spawned.Add(int64(len(e))) })
	_, err2 := reg.Observe(registry.Destroyed, func(_ *registry.Frame, e []registry.Event) { t.destroyed.Add(int64(len(e))) })
	return errors.Join(err1, err2)
}

// spark counts a spark. Observers are told of it, too, but it is nothing that anybody asked for.
func (t *tally) spark() {
	t.sparks.Inc()
	t.spawned.Dec()
}

// fade counts a spark that goes out.
func (t *tally) fade() {
	t.faded.Inc()
	t.destroyed.Dec()
}

// check counts an error that a correct server never meets. The server goes on, and says so
// at its end.
func (t *tally) check(err error) {
	if err != nil {
		t.faults.Inc()
		t.firstFault.CompareAndSwap(nil, err)
	}
}

// Totals is what a Server did, counted by three parties: its observers, its connections, and
// its registry.
type Totals struct {
	Frames                   uint64
	Elapsed                  time.Duration
	Spawned, Destroyed, Live int // Invariant: Spawned == Live + Destroyed
	Joined, Fired            int // Invariant: Spawned == Joined + Fired
	Hits, Kills              int
	Sparks                   int // are in none of the others. Invariant: Sparks <= Hits
}

// audit reads the totals when nobody is inside the registry any more, and says what does not
// agree.
func (t *tally) audit(reg *registry.Registry, frames uint64, elapsed time.Duration) (Totals, error) {
	sum := Totals{
		Frames: frames, Elapsed: elapsed,
		Spawned: int(t.spawned.Load()), Destroyed: int(t.destroyed.Load()), Live: reg.Stats().Live - int(t.sparks.Load()-t.faded.Load()),
		Joined: int(t.joined.Load()), Fired: int(t.fired.Load()),
		Hits: int(t.hits.Load()), Kills: int(t.kills.Load()), Sparks: int(t.sparks.Load()),
	}
	errs := []error{sum.Check(), reg.Verify()}
	if n := t.faults.Load(); n > 0 {
		errs = append(errs, fmt.Errorf("arena: errors on the way: %d, the first: %w", n, t.firstFault.Load()))
	}
	return sum, errors.Join(errs...)
}

// Check returns an error if the totals do not add up.
//
// Concurrency: any goroutine; never waits. Allocates: no, unless it fails.
func (t Totals) Check() error {
	if t.Spawned != t.Live+t.Destroyed || t.Spawned != t.Joined+t.Fired || t.Sparks > t.Hits {
		return fmt.Errorf("arena: the totals do not add up: %v", t)
	}
	return nil
}

// String is the totals in one line that shows their sums.
//
// Concurrency: any goroutine; never waits. Allocates: the line.
func (t Totals) String() string {
	return fmt.Sprintf("%d frames in %v: spawned %d (%d players, %d arrows) = live %d + destroyed %d; %d hits, %d kills, %d sparks",
		t.Frames, t.Elapsed.Round(10*time.Millisecond), t.Spawned, t.Joined, t.Fired, t.Live, t.Destroyed, t.Hits, t.Kills, t.Sparks)
}
