package pool

import (
	"math/bits"
	"reflect"
	"runtime"
	"sync/atomic"
)

// objectPlace is where an instance waits to be taken. It stays where it is for as long as the pool,
// so that guards may point to it.
//
// Except for the generation, its fields belong to whoever has the place: the call that popped it,
// until it pushes it; the guard's holder between two calls; the cleanup when the guard is lost.
type objectPlace[T any] struct {
	// generation counts the ways back. It rises when a guard is released, not when one is made: a
	// free place already has the generation of its next guard, which nobody holds yet. At 64 bits
	// it does not wrap around.
	generation atomic.Uint64
	pool       *Pool[T]
	value      *T // the instance while it is free; nil in use, and in a place still to be filled
	cleanup    runtime.Cleanup
	life       objectLife // of the last guard, for the report of a leak
	index      uint32     // where at finds it
	next       uint32     // index + 1 of the free place below, 0 at the bottom

	// A place fills a cache line, and so does the head word of the stack: eight goroutines that take
	// and release wait a tenth less than with places of 48 bytes (BenchmarkTakeRelease).
	_ [16]byte
}

// forget drops the instance v of the place, and what would report it as lost.
func (s *objectPlace[T]) forget(v *T) {
	if v != nil {
		s.cleanup.Stop()
		runtime.KeepAlive(v) // the report may not start before it is stopped
	}
	s.value = nil
}

// The first segment has 16 places, each further one twice as many as the one before.
const (
	objectSegmentBits  = 4
	objectFirstSegment = 1 << objectSegmentBits
)

// objectSegments finds places by index without ever moving one. A segment is written before the
// index of any place in it can be read from the stack, so that readers need no lock.
type objectSegments[T any] [objectBits - objectSegmentBits + 1][]objectPlace[T]

// at is the place with this index, which was added before.
func (g *objectSegments[T]) at(index uint32) *objectPlace[T] {
	n := index + objectFirstSegment
	top := bits.Len32(n) - 1
	return &g[top-objectSegmentBits][n-1<<top]
}

// add makes the place with this index; those below were made before.
func (g *objectSegments[T]) add(p *Pool[T], index uint32) *objectPlace[T] {
	n := index + objectFirstSegment
	if top := bits.Len32(n) - 1; n == 1<<top {
		g[top-objectSegmentBits] = make([]objectPlace[T], n)
	}
	s := g.at(index)
	s.pool, s.index = p, index
	return s
}

// objectName names a pool after its type.
func objectName[T any]() string { return reflect.TypeFor[T]().String() }

// objectMaker makes instances when the configuration does not say how. Those below 16 bytes get a
// block of their own: the allocator puts such together, and would find none of them lost before all
// are.
func objectMaker[T any]() func() (*T, error) {
	type box struct {
		value T
		_     [16]byte
	}
	if reflect.TypeFor[T]().Size() < 16 {
		return func() (*T, error) { return &new(box).value, nil }
	}
	return func() (*T, error) { return new(T), nil }
}

// objectResetter is the reset that T brings along, nil if it has none. It is looked up here, once, and
// not in each release.
func objectResetter[T any]() func(*T) {
	if m, ok := reflect.TypeFor[*T]().MethodByName("Reset"); ok {
		reset, _ := m.Func.Interface().(func(*T))
		return reset
	}
	return nil
}
