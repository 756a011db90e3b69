//go:build faults

package fault

import "sync/atomic"

// Enabled says whether functions can be hung on the points: the build tag faults. It is a constant, so
// that what stands behind it is compiled away in any other build.
const Enabled = true

// hung are the functions, nil where there is none. Hang stores, any goroutine loads.
var hung [Points]atomic.Pointer[func()]

// simulation decides who runs next, nil as a rule. Simulate stores, any goroutine loads.
var simulation atomic.Pointer[Simulation]

// Hang has fn run by every goroutine that comes by p, until the function it returns is called. There is
// one function to a point: a second one takes the place of the first.
//
// Concurrency: any goroutine; a goroutine that is at p already may still run the one before.
func Hang(p Point, fn func()) (down func()) {
	hung[p].Store(&fn)
	return func() { hung[p].CompareAndSwap(&fn, nil) }
}

// Simulate has s decide who runs, until the function it returns is called. Every goroutine that comes by
// a point or pause meanwhile must be one that s knows.
//
// Concurrency: one goroutine at a time.
func Simulate(s Simulation) (over func()) {
	simulation.Store(&s)
	return func() { simulation.CompareAndSwap(&s, nil) }
}

// At runs what hangs on p.
func At(p Point) {
	if fn := hung[p].Load(); fn != nil {
		(*fn)()
	}
	if s := simulation.Load(); s != nil {
		(*s).At(p)
	}
}

// Yield lets others go first, in a simulation.
func Yield(p Pause) {
	if s := simulation.Load(); s != nil {
		(*s).At(p)
	}
}

// Wait waits in a simulation until one of the cases of a select is ready, and says which one to take;
// -1 for any.
func Wait(p Pause, ready ...func() bool) int {
	if s := simulation.Load(); s != nil {
		return (*s).Wait(p, ready...)
	}
	return -1
}

// Fork announces a goroutine, in a simulation.
func Fork(p Pause) {
	if s := simulation.Load(); s != nil {
		(*s).Fork(p)
	}
}

// Begin is the beginning of an announced goroutine. What it returns goes to End.
func Begin() (id int) {
	if s := simulation.Load(); s != nil {
		return (*s).Begin()
	}
	return -1
}

// End is the end of an announced goroutine, and is deferred: a simulation is told of its panic.
func End(id int) {
	if s := simulation.Load(); s != nil && id >= 0 {
		(*s).End(id, recover())
	}
}
