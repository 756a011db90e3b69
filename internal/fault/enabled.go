//go:build faults

package fault

import "sync/atomic"

// Enabled says whether functions can be hung on the points: the build tag faults. It is a constant, so
// that what stands behind it is compiled away in any other build.
const Enabled = true

// hung are the functions, nil where there is none. Hang stores, any goroutine loads.
var hung [Points]atomic.Pointer[func()]

// Hang has fn run by every goroutine that comes by p, until the function it returns is called. There is
// one function to a point: a second one takes the place of the first.
//
// Concurrency: any goroutine; a goroutine that is at p already may still run the one before.
func Hang(p Point, fn func()) (down func()) {
	hung[p].Store(&fn)
	return func() { hung[p].CompareAndSwap(&fn, nil) }
}

// At runs what hangs on p.
func At(p Point) {
	if fn := hung[p].Load(); fn != nil {
		(*fn)()
	}
}
