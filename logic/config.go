package logic

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/airlock-ecs/airlock/flight"
)

// Config says how an engine runs. The zero value works.
type Config struct {
	Rate         int           // frames a second; 0 means 60
	Workers      int           // goroutines that share a parallel loop, Logic's among them; 1: loops stay on Logic; 0 means GOMAXPROCS. At most 1024
	WindowBudget time.Duration // window time after which no more operations begin in a frame; 0 means 1 ms. Amid many short ones it may be noticed fifteen late
	QueueSize    int           // operations that may wait before ErrQueueFull; 0 means 65536
	Watchdog     time.Duration // a callback longer than this is reported; 0 means 1 s
	LocalWindow  int           // frames a freed local index stays pending; 0: 2, or the ring depth with rollback; negative: manual
	NetWindow    int           // the same for net indices while no peer was ever added; 0 or negative: manual
	Defrag       Defrag        // compaction of the registry, a little in every frame; the zero value: none
	SyncTest     int           // simulate this many frames again after every frame and compare; what differs stops the engine with a DesyncError. Below half the ring; 0: off
	Logger       *slog.Logger  // where overruns, and errors without an OnError, are written; nil means slog.Default
	// Flight writes the last seconds as a trace when a frame is too long, or something overruns the watchdog; nil: nothing is recorded.
	// It records from New until the engine has ended. While it does, every frame and handshake is traced, which allocates.
	Flight *flight.Recorder
	// OnError is told of every failure that has no caller to go to: errors of deferred
	// operations, panics of systems, observers and subscribers to moves. It is called on Logic,
	// or on the goroutine that Logic has lent the window to. With an OnError the engine goes on
	// after a system's panic; without one Run ends with it. Step returns the panics of its frame's systems in either case,
	// so that with an OnError they are told here and returned, too.
	OnError func(error)
}

// Defrag says when and how much the engine compacts its registry, at the end of a window (see
// package defrag). In a deterministic registry only cosmetic classes are compacted.
type Defrag struct {
	Moves int     // most entities moved in a frame; 0: no compaction
	Above float64 // share of free slots among those in use that it begins at, from 0 to 1; 0 means 0.5
}

const (
	defaultRate        = 60
	defaultBudget      = time.Millisecond
	defaultQueueSize   = 1 << 16
	defaultWatchdog    = time.Second
	defaultLocalWindow = 2
	defaultAbove       = 0.5

	maxRate      = int(time.Second) // a frame a nanosecond: the schedule counts in these
	maxQueueSize = 1 << 30          // an int on any machine, and far less than gauge can count
	maxWorkers   = 1 << 10          // each has buffers of its own
)

// complete checks c and fills in what it leaves open, for a registry whose temporal ring is
// ringFrames deep.
func (c Config) complete(ringFrames int) (Config, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Rate", int64(c.Rate)},
		{"Workers", int64(c.Workers)},
		{"WindowBudget", int64(c.WindowBudget)},
		{"QueueSize", int64(c.QueueSize)},
		{"Watchdog", int64(c.Watchdog)},
		{"SyncTest", int64(c.SyncTest)},
		{"Defrag.Moves", int64(c.Defrag.Moves)},
	} {
		if f.value < 0 {
			return c, fmt.Errorf("logic: Config.%s is negative: %d", f.name, f.value)
		}
	}
	switch {
	case !(c.Defrag.Above >= 0 && c.Defrag.Above <= 1): // not a number is neither
		return c, fmt.Errorf("logic: Config.Defrag.Above %v is not between 0 and 1", c.Defrag.Above)
	case c.Rate > maxRate:
		return c, fmt.Errorf("logic: Config.Rate %d is above %d", c.Rate, maxRate)
	case c.Workers > maxWorkers:
		return c, fmt.Errorf("logic: Config.Workers %d is above %d", c.Workers, maxWorkers)
	case c.QueueSize > maxQueueSize:
		return c, fmt.Errorf("logic: Config.QueueSize %d is above %d", c.QueueSize, maxQueueSize)
	case c.SyncTest != 0 && ringFrames == 0:
		return c, errors.New("logic: Config.SyncTest needs a temporal ring (registry.Config.TemporalFrames)")
	case c.SyncTest > 0 && c.SyncTest > ringFrames/2-1:
		return c, fmt.Errorf("logic: Config.SyncTest %d is above %d: the frames are kept twice in a ring of %d",
			c.SyncTest, ringFrames/2-1, ringFrames)
	case ringFrames > 0 && c.LocalWindow > 0 && c.LocalWindow < ringFrames:
		return c, fmt.Errorf("logic: Config.LocalWindow %d is below the ring depth %d: an index could be reused within the rollback horizon",
			c.LocalWindow, ringFrames)
	}
	fill(&c.Rate, defaultRate)
	fill(&c.Workers, min(runtime.GOMAXPROCS(0), maxWorkers))
	fill(&c.WindowBudget, defaultBudget)
	fill(&c.QueueSize, defaultQueueSize)
	fill(&c.Watchdog, defaultWatchdog)
	fill(&c.Defrag.Above, defaultAbove)
	fill(&c.LocalWindow, max(ringFrames, defaultLocalWindow))
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// fill gives a field that was left zero its default.
func fill[T int | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
