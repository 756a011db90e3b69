package logic

import "sync"

// workers are the goroutines that share a parallel loop with Logic. They are started for each loop and
// end with it: the runtime keeps dead goroutines for reuse, so that starting one costs no more than
// waking one that waits, and Stop finds nobody to end.
//
// Rejected: goroutines that park between loops. An engine that is only stepped has no point at which
// it could end them.
//
// All of it is Logic's, but for run, which workers read: it is written before the go statements that
// start them, and not again before the group has been waited for.
type workers struct {
	run   func(worker int)
	each  []func()       // of the workers but the first, which is Logic; made when first needed
	group sync.WaitGroup // counts them in; Done is how they, and what they did, come back
}

// spread is what registry.Hooks.Spread asks for. A func value is started as it is, so that a steady
// frame allocates nothing.
func (w *workers) spread(n int, run func(worker int)) {
	for i := len(w.each) + 1; i < n; i++ {
		w.each = append(w.each, func() {
			defer w.group.Done() // also when a part ends this goroutine
			w.run(i)
		})
	}
	w.run = run
	w.group.Add(n - 1)
	for _, worker := range w.each[:n-1] {
		go worker()
	}
	defer w.group.Wait() // also when a part ends Logic's goroutine
	run(0)
}
