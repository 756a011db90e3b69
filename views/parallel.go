package views

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// spreadFrom is from how many entities on Parallel uses the workers. Below, starting and joining them
// costs more than a second processor gives, if the loop's body is as short as they come: two
// goroutines over 16k entities measured 0.9 times the speed of one.
const spreadFrom = 64 << 10

// fork is the work of one Parallel loop: chunks are its parts.
type fork[T any] struct {
	busy  atomic.Bool
	fn    func(*registry.Frame, *T)
	list  []match
	parts []part
	lanes []*lane[T] // one a worker
}

// part is a chunk, and which match it belongs to.
type part struct {
	chunk *archetype.Chunk
	match int
}

// lane is what a worker has for itself. The yield is made once, so that a run costs no closure.
// Workers write their lanes at the same time, so no two share a cache line.
type lane[T any] struct {
	_     [64]byte
	view  T
	match int // what the view's absent slices are empty for, -1: nothing
	frame *registry.Frame
	yield func(*T) bool
	_     [64]byte
}

// forks keeps one fork between loops. A loop inside or beside another one makes its own.
type forks[T any] struct{ kept fork[T] }

func (fs *forks[T]) take() *fork[T] {
	if fs.kept.busy.CompareAndSwap(false, true) {
		return &fs.kept
	}
	return new(fork[T])
}

// giveBack forgets what the loop was about.
func (f *fork[T]) giveBack() {
	clear(f.parts)
	f.parts, f.list, f.fn = f.parts[:0], nil, nil
	for i := range f.lanes {
		var empty T
		f.lanes[i].view = empty
		f.lanes[i].frame = nil
	}
	f.busy.Store(false)
}

// prepare has a lane for each worker.
func (f *fork[T]) prepare(workers int) {
	for len(f.lanes) < workers {
		l := new(lane[T])
		l.yield = func(t *T) bool {
			f.fn(l.frame, t)
			return true
		}
		f.lanes = append(f.lanes, l)
	}
	for _, l := range f.lanes {
		l.match = -1
	}
}

// Part shows the runs of one chunk to the loop's body.
//
// Concurrency: a worker, with its own number. Allocates: no.
func (f *fork[T]) Part(frame *registry.Frame, worker, i int) {
	p, l := f.parts[i], f.lanes[worker]
	m := &f.list[p.match]
	if l.match != p.match {
		l.match = p.match
		m.begin(unsafe.Pointer(&l.view))
	}
	l.frame = frame
	eachRun(m, p.chunk, &l.view, false, l.yield)
}

// Parallel is Runs with the chunks spread over the engine's workers: fn is called for every run, by
// several goroutines at the same time, each with its own struct. It gets a frame of its own, so that
// what it puts off and destroys is merged in the order of the chunks, and random numbers are the
// chunk's: what comes out is the same for any number of workers, as long as fn touches nothing but
// its run. The frame is good until Parallel returns.
//
// Loops over fewer than 64k entities run on the calling goroutine, and so do those with a window, in
// a registry without an engine, and inside another Parallel.
//
// If fn panics, the other chunks are done nevertheless, and the first panic in their order goes on
// from here.
//
// Panics: as Runs; registry.ErrReadOnly on a snapshot, which has no frame to give to fn; with what fn
// panics with.
//
// Concurrency: whoever holds a. Allocates: as Runs.
func (q *Query[T]) Parallel(a registry.Access, fn func(*registry.Frame, *T)) {
	store := registry.Iterate(a)
	if store == nil {
		panic(fmt.Errorf("views: query %v: Parallel: %w", reflect.TypeFor[T](), registry.ErrReadOnly))
	}
	defer registry.Finish(a)
	f := q.forks.take()
	defer f.giveBack()
	f.fn, f.list = fn, q.matching(a, store)
	live, recording := 0, registry.Recording(a)
	for i := range f.list {
		m := &f.list[i]
		live += m.arch.Live()
		for _, c := range m.arch.Chunks() {
			if m.shows(a, c) {
				f.parts = append(f.parts, part{c, i})
				if recording {
					registry.NoteColumns(a, c, m.marks)
				}
			}
		}
	}
	if planted.Enabled && planted.Is(planted.ParallelLosesPart) {
		f.parts = f.parts[:len(f.parts)-len(f.parts)/4]
	}
	f.prepare(registry.Workers(a))
	registry.Fork(a, f, len(f.parts), live >= q.spreadFrom)
}
