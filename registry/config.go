package registry

import (
	"errors"
	"fmt"
)

// Config is what a registry is made with. The zero value works.
type Config struct {
	// MaxEntities is the most entities and reservations alive at once; 0 means 1<<24, at most
	// 1<<28. It is exact, with two exceptions: above 131,072, a Reserve may be refused up to
	// 1023 places early while a window is open; and an entity that comes back because its
	// callback failed is not lost though a Reserve took its place meanwhile. With TemporalFrames a Reserve has
	// the room of somebody dead only when no frame that can be gone back to needs it any more.
	MaxEntities    int
	TemporalFrames int   // ring depth of the temporal tier, a power of two >= 8; 0: no rollback, Temporal behaves as Volatile
	Owner          uint8 // owner byte of the net handles issued here; 0 is the server
	Deterministic  bool  // same operations in the same frames give the same handles, slots and order
}

const (
	defaultEntities = 1 << 24
	mostEntities    = 1 << 28
	mostFrames      = 1 << 12

	// indexSlack is how many local indices there are beyond two for each entity (one alive,
	// one pending): room for indices that are retired for good.
	indexSlack = 1 << 16
)

// checked gives the config with its defaults filled in, or says what is wrong with it.
func (c Config) checked() (Config, error) {
	if c.MaxEntities == 0 {
		c.MaxEntities = defaultEntities
	}
	var errs []error
	if c.MaxEntities < 0 || c.MaxEntities > mostEntities {
		errs = append(errs, fmt.Errorf("registry: MaxEntities %d is not in 1..%d", c.MaxEntities, mostEntities))
	}
	if n := c.TemporalFrames; n != 0 && (n < 8 || n > mostFrames || n&(n-1) != 0) {
		errs = append(errs, fmt.Errorf("registry: TemporalFrames %d is neither 0 nor a power of two in 8..%d", n, mostFrames))
	}
	return c, errors.Join(errs...)
}
