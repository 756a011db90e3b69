package arena

import (
	"errors"
	"fmt"
	"io"

	"github.com/airlock-ecs/airlock/flight"
)

const (
	// MaxBots is the largest number of bots: each costs this process two file descriptors.
	MaxBots = 1000
	// MaxRate is the highest frame rate, in frames a second.
	MaxRate = 1000
)

// ErrConfig, ErrPortInUse, ErrInspectInUse and ErrJournalExists tell what New could not accept. The error's own
// text is one sentence for whoever chose the value.
var (
	ErrConfig        = errors.New("arena: bad configuration")
	ErrPortInUse     = errors.New("arena: port in use")
	ErrInspectInUse  = errors.New("arena: address of the page in use")
	ErrJournalExists = errors.New("arena: there is a journal already")
)

// Config says what a Server does. The zero value works: a free port, no bots, no output.
type Config struct {
	Port int       // loopback TCP port; 0 picks a free one
	Bots int       // clients that play by themselves, over real sockets; up to MaxBots
	Rate int       // frames a second, up to MaxRate; 0 means 60
	Seed uint64    // of where players appear and of what bots do
	Out  io.Writer // status lines and totals; nil means nobody reads them

	// Pools is a file that declares the pools of arrows and sparks; empty: the one that is built in.
	Pools string

	// Inspect is the address of the page that shows the registry's health, see package inspect; empty: there is none. One that is
	// not loopback needs InspectRemote and InspectToken. InspectToken is what the page's actions need; empty: there are none.
	Inspect, InspectToken string
	InspectRemote         bool

	// Journal is a directory in which everything is recorded that Replay needs to do it again; empty: nothing is.
	Journal string

	// Flight writes the last seconds as a trace when a frame overruns; nil: nothing is recorded.
	Flight *flight.Recorder
}

// refusal is a sentence for a person and a sentinel for a program.
type refusal struct {
	kind     error
	sentence string
}

func (e *refusal) Error() string { return e.sentence }
func (e *refusal) Unwrap() error { return e.kind }

// complete checks c and fills in what it leaves open.
func (c Config) complete() (Config, error) {
	for _, f := range []struct {
		what             string
		value, low, high int
	}{
		{"port", c.Port, 0, 65535},
		{"number of bots", c.Bots, 0, MaxBots},
		{"rate", c.Rate, 0, MaxRate},
	} {
		if f.value < f.low || f.value > f.high {
			return c, &refusal{ErrConfig, fmt.Sprintf("the %s must be between %d and %d, not %d", f.what, f.low, f.high, f.value)}
		}
	}
	if err := c.checkInspect(); err != nil {
		return c, err
	}
	if c.Rate == 0 {
		c.Rate = 60
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	return c, nil
}
