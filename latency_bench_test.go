package airlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// outsider is one way for a goroutine to put a ship into the world.
type outsider struct {
	name  string
	batch int           // operations that are timed together: many where one is too short for the clock
	gap   time.Duration // between two of them, at most; whole frames, so that no moment of a frame is met more often
	// open gives what is timed, called with the number of operations, and what cleans up behind it.
	open func(b *testing.B) (do func(n int), clean func())
}

// BenchmarkLatency measures how long a goroutine takes until its ship is in the world and it has the handle. It is
// what the README's table of when not to use this is made of: read p50-ns and p99-ns.
func BenchmarkLatency(b *testing.B) {
	for _, way := range []outsider{
		{"spawn/rate=60", 1, time.Second / 60, func(b *testing.B) (func(int), func()) { return throughEngine(b, 60) }},
		{"spawn/rate=1000", 1, 3 * time.Second / 1000, func(b *testing.B) (func(int), func()) { return throughEngine(b, 1000) }},
		{"spawn/tight", 1, 0, func(b *testing.B) (func(int), func()) { return throughEngine(b, 0) }},
		{"defer", 100, 0, deferred},
		{"update", 100, 0, throughUpdate},
		{"mutex-map", 100, 0, throughMutex},
		{"mutex-map/frames=4ms", 1, time.Second / 60, throughBusyMutex},
		{"direct", 100, 0, directly},
		{"alive", 100, 0, asking},
	} {
		b.Run(way.name, func(b *testing.B) {
			do, clean := way.open(b)
			var samples []time.Duration
			for b.Loop() {
				if way.gap > 0 {
					<-time.After(rand.N(way.gap))
				}
				start := time.Now()
				do(way.batch)
				samples = append(samples, time.Since(start))
				clean()
			}
			slices.Sort(samples)
			for name, p := range map[string]int{"p50-ns": 50, "p99-ns": 99} {
				b.ReportMetric(float64(samples[(len(samples)-1)*p/100])/float64(way.batch), name)
			}
			b.ReportMetric(0, "ns/op") // has the gaps and the cleaning in it
		})
	}
}

// throughEngine spawns by the handshake, with an engine that runs at a rate, or with 0 steps without a pause.
func throughEngine(b *testing.B, rate int) (do func(int), clean func()) {
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Ship](reg))
	engine := must(logic.New(reg, logic.Config{Rate: max(rate, 1)}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if rate > 0 {
			_ = engine.Run(context.Background())
			return
		}
		for engine.Step() == nil {
		}
	}()
	b.Cleanup(func() { _ = engine.Stop(); <-ended })
	var h handles.Local
	return func(int) {
			h = must(logic.Spawn(context.Background(), engine, class, Ship{}))
		}, func() {
			require.NoError(b, reg.Destroy(h))
		}
}

// deferred leaves operations behind and does not wait.
func deferred(b *testing.B) (do func(int), clean func()) {
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Ship](reg))
	engine := must(logic.New(reg, logic.Config{}))
	lane := engine.Producer()
	spawn := func(w *registry.Window) error { _, err := class.Spawn(w, Ship{}); return err }
	b.Cleanup(func() { _ = engine.Stop() })
	return func(n int) {
			for range n {
				if lane.Defer(spawn) != nil {
					b.Fatal("full")
				}
			}
		}, func() {
			require.NoError(b, engine.Step())
			require.NoError(b, reg.Update((*registry.Window).Reset))
		}
}

// throughUpdate has no engine: the registry is locked for each ship.
func throughUpdate(b *testing.B) (do func(int), clean func()) {
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Ship](reg))
	spawn := func(w *registry.Window) error { _, err := class.Spawn(w, Ship{}); return err }
	return func(n int) {
		for range n {
			_ = reg.Update(spawn)
		}
	}, func() { require.NoError(b, reg.Update((*registry.Window).Reset)) }
}

// fleet is what one writes without a library.
type fleet struct {
	mu    sync.Mutex // guards ships and last
	ships map[uint64]Ship
	last  uint64
}

func (f *fleet) spawn() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	f.ships[f.last] = Ship{}
	return f.last
}

func throughMutex(*testing.B) (do func(int), clean func()) {
	f := &fleet{ships: map[uint64]Ship{}}
	return func(n int) {
		for range n {
			f.spawn()
		}
	}, func() { clear(f.ships) }
}

// throughBusyMutex has a loop that holds the mutex for 4 of the 16 ms of a frame.
func throughBusyMutex(b *testing.B) (do func(int), clean func()) {
	f := &fleet{ships: map[uint64]Ship{}}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		frames := time.NewTicker(time.Second / 60)
		defer frames.Stop()
		for {
			select {
			case <-over:
				return
			case <-frames.C:
				f.mu.Lock()
				for start := time.Now(); time.Since(start) < 4*time.Millisecond; {
				}
				f.mu.Unlock()
			}
		}
	}()
	b.Cleanup(func() { close(over); <-ended })
	return func(int) { f.spawn() }, func() {}
}

// directly spawns where the window is open already: what a loop on one goroutine has.
func directly(b *testing.B) (do func(int), clean func()) {
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Ship](reg))
	return func(n int) {
		_ = reg.Update(func(w *registry.Window) error {
			for range n {
				if _, err := class.Spawn(w, Ship{}); err != nil {
					return err
				}
			}
			return nil
		})
	}, func() { require.NoError(b, reg.Update((*registry.Window).Reset)) }
}

// asking needs no window.
func asking(*testing.B) (do func(int), clean func()) {
	reg := must(registry.New(registry.Config{}))
	class := must(registry.RegisterClass[Ship](reg))
	var h handles.Local
	_ = reg.Update(func(w *registry.Window) (err error) { h, err = class.Spawn(w, Ship{}); return err })
	return func(n int) {
		for range n {
			if !reg.Alive(h) {
				panic("dead")
			}
		}
	}, func() {}
}
