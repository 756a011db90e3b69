package handles

// Global names a record: index:32 | generation:32. The zero value is "no handle".
type Global uint64

// Local names an entity inside one registry: index:32 | generation:32. The zero value is "no handle".
type Local uint64

// Net names an entity between processes: generation:32 | owner:8 | index:24, where owner is
// the process that issued it. The zero value is "no handle".
type Net uint64

// MaxNetIndex is the highest index a net handle can hold.
const MaxNetIndex = 1<<24 - 1

// NewGlobal puts a record handle together.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func NewGlobal(index, generation uint32) Global {
	return Global(uint64(index)<<32 | uint64(generation))
}

// Index is the record's index.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (g Global) Index() uint32 { return uint32(g >> 32) }

// Generation says which life of the index is meant; the first is 1.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (g Global) Generation() uint32 { return uint32(g) }

// IsZero says whether g is "no handle".
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (g Global) IsZero() bool { return g == 0 }

// NewLocal puts an entity's handle together.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func NewLocal(index, generation uint32) Local {
	return Local(uint64(index)<<32 | uint64(generation))
}

// Index is the entity's index in its registry.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l Local) Index() uint32 { return uint32(l >> 32) }

// Generation says which life of the index is meant; the first is 1.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l Local) Generation() uint32 { return uint32(l) }

// IsZero says whether l is "no handle".
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l Local) IsZero() bool { return l == 0 }

// NewNet puts a net handle together. Of index only the low 24 bits count.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func NewNet(owner uint8, index, generation uint32) Net {
	return Net(uint64(generation)<<32 | uint64(owner)<<24 | uint64(index&MaxNetIndex))
}

// Owner is the process that issued the handle; 0 is the server.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n Net) Owner() uint8 { return uint8(n >> 24) }

// Index is the entity's index in its owner's space.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n Net) Index() uint32 { return uint32(n) & MaxNetIndex }

// Generation says which life of the index is meant; the first is 1.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n Net) Generation() uint32 { return uint32(n >> 32) }

// IsZero says whether n is "no handle".
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n Net) IsZero() bool { return n == 0 }
