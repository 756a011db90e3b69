//go:build faults

package fault

import "sync"

// Pool is a sync.Pool, but in a simulation the last one put in is the first one out: what a sync.Pool has
// left depends on processors and the garbage collector, which no seed repeats.
type Pool struct {
	sync.Pool

	mu   sync.Mutex // guards free; leaf lock
	free []any
}

// Get takes one out, or makes one.
func (p *Pool) Get() any {
	if simulation.Load() == nil {
		return p.Pool.Get()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return p.New()
	}
	v := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return v
}

// Put puts one in.
func (p *Pool) Put(v any) {
	if simulation.Load() == nil {
		p.Pool.Put(v)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, v)
}
