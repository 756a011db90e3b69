package logic

import "sync"

// workers are the goroutines that share a parallel loop with Logic. They are started for each loop and
// end with it: the runtime keeps dead goroutines for reuse, which costs no more than waking ones that
// wait, and there is nobody to be ended by Stop.
//
// Rejected: goroutines that park between loops. An engine that is only stepped has no point at which
// it could end them.
//
// run is written by Logic before a worker starts and read by the workers until Logic has joined them.
type workers struct {
	run   func(worker int)
	each  []func() // of the workers but the first, which is Logic; made once
	group sync.WaitGroup
}

func (w *workers) init(n int) {
	for i := 1; i < n; i++ {
		w.each = append(w.each, func() {
			defer w.group.Done()
			w.run(i)
		})
	}
}

// spread is what registry.Hooks.Spread asks for. Logic only.
func (w *workers) spread(n int, run func(worker int)) {
	w.run = run
	w.group.Add(n - 1)
	for _, worker := range w.each[:n-1] {
		go worker()
	}
	defer w.group.Wait() // also when a part ends this goroutine
	run(0)
}
