package logic_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// many is how often a fault is tried: few in a test run, the number of the long run if AIRLOCK_FAULTS is
// set.
func many(few, long int) int {
	if os.Getenv("AIRLOCK_FAULTS") != "" {
		return long
	}
	return few
}

// logged is a log that is kept.
type logged struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// theOneThatNeverReturns is a callback that holds Logic until it is let go.
//
//go:noinline
func theOneThatNeverReturns(holding, release chan struct{}) {
	close(holding)
	<-release
}

// stuckTask is a parallel loop with a part that never returns.
type stuckTask func()

func (s stuckTask) Part(_ *registry.Frame, _, part int) {
	if part == 1 {
		s()
	}
}

func TestACallbackThatNeverReturnsIsNamed(t *testing.T) {
	window := func(stuck func()) func(*registry.Window) error {
		return func(*registry.Window) error { stuck(); return nil }
	}
	inSystem := func(p logic.Phase) func(*world, func()) {
		return func(w *world, stuck func()) {
			_, err := w.e.AddSystem(p, "stuck", func(*logic.Frame) { stuck() })
			require.NoError(w.t, err)
		}
	}
	observing := func(kind registry.EventKind) func(*world, func()) {
		return func(w *world, stuck func()) {
			_, err := w.r.Observe(kind, func(*registry.Frame, []registry.Event) { stuck() })
			require.NoError(w.t, err)
			require.NoError(w.t, w.e.Defer(func(win *registry.Window) error {
				h, err := w.class.Spawn(win, thing{})
				if err == nil {
					err = registry.Add(win, h, tag{})
				}
				return err
			}))
		}
	}
	sites := []struct {
		name string // what the watchdog calls it
		arm  func(w *world, stuck func())
	}{
		{"Spawn callback", func(w *world, stuck func()) { go func() { _ = w.e.Spawn(background(), window(stuck)) }() }},
		{"Spawn callback", func(w *world, stuck func()) {
			go w.e.SpawnBatch(background(), noChange, window(stuck), noChange)
		}},
		{"deferred operation", func(w *world, stuck func()) { require.NoError(w.t, w.e.Defer(window(stuck))) }},
		{"deferred operation", func(w *world, stuck func()) {
			_, err := w.e.Producer().Enqueue(window(stuck))
			require.NoError(w.t, err)
		}},
		{"deferred operations of systems and observers", func(w *world, stuck func()) {
			var once sync.Once
			_, err := w.e.AddSystem(logic.Physics, "wishes", func(f *logic.Frame) {
				once.Do(func() { f.Defer(window(stuck)) })
			})
			require.NoError(w.t, err)
		}},
		{"system stuck", inSystem(logic.PrePhysics)},
		{"system stuck", inSystem(logic.Physics)},
		{"system stuck", inSystem(logic.PostPhysics)},
		{"system stuck", inSystem(logic.Late)},
		{"system parallel", func(w *world, stuck func()) {
			_, err := w.e.AddSystem(logic.Physics, "parallel", func(f *logic.Frame) { registry.Fork(f, stuckTask(stuck), 4, true) })
			require.NoError(w.t, err)
		}},
		{"observers", observing(registry.Spawned)},
		{"observers", observing(registry.Added)},
		{"deferred operation", func(w *world, stuck func()) {
			_, err := w.r.OnMove(func([]registry.Move) { stuck() })
			require.NoError(w.t, err)
			require.NoError(w.t, w.e.Defer(func(win *registry.Window) error {
				h, err := w.class.Spawn(win, thing{})
				if err == nil {
					err = registry.Add(win, h, tag{})
				}
				return err
			}))
		}},
		{"OnError", func(w *world, stuck func()) {
			w.mu.Lock()
			w.onError = stuck
			w.mu.Unlock()
			require.NoError(w.t, w.e.Defer(func(*registry.Window) error { return errTest }))
		}},
	}
	const watchdog = 50 * time.Millisecond
	for i, site := range sites {
		t.Run(fmt.Sprint(i, " ", site.name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(logged)
				w := newWorld(t, func(c *logic.Config) {
					c.Watchdog, c.Workers = watchdog, 2
					c.Logger = slog.New(slog.NewTextHandler(log, nil))
				})
				stop := w.run()
				holding, release := make(chan struct{}), make(chan struct{})
				let := sync.OnceFunc(func() { close(release) })
				defer let()
				var once sync.Once
				site.arm(w, func() { once.Do(func() { theOneThatNeverReturns(holding, release) }) })
				<-holding

				start := time.Now()
				deadline, cancel := context.WithTimeout(background(), 20*watchdog)
				defer cancel()
				patient, hasty := make(chan error, 1), make(chan error, 1)
				go func() { patient <- w.e.Spawn(background(), noChange) }()
				go func() { hasty <- w.e.Spawn(deadline, noChange) }()
				ran := false
				ticket, err := w.e.Enqueue(func(*registry.Window) error { ran = true; return nil })
				require.NoError(t, err)

				time.Sleep(2 * watchdog)
				assert.EqualValues(t, 1, w.e.Stats().Overruns, "within two watchdogs")
				assert.Contains(t, log.String(), site.name)
				assert.Contains(t, log.String(), "theOneThatNeverReturns")
				require.ErrorIs(t, <-hasty, context.DeadlineExceeded)
				assert.Equal(t, 20*watchdog, time.Since(start), "a waiter keeps its own deadline")

				start = time.Now()
				bound, cancel := context.WithTimeout(background(), time.Second)
				defer cancel()
				err = w.e.Shutdown(bound)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, time.Second, time.Since(start))
				assert.ErrorContains(t, err, site.name)
				assert.ErrorContains(t, err, "theOneThatNeverReturns")
				require.ErrorIs(t, <-patient, logic.ErrStopped, "nobody waits for the one who holds it")
				assert.EqualValues(t, 1, w.e.Stats().Overruns, "it is counted once")

				let()
				require.NoError(t, w.e.Shutdown(background()))
				require.NoError(t, stop())
				<-ticket.Done()
				if ran { // the frame has got no further than the wishes
					require.NoError(t, ticket.Err())
				} else {
					require.ErrorIs(t, ticket.Err(), logic.ErrStopped)
				}
			})
		})
	}
}

func TestAContextThatEndsHasOneOutcome(t *testing.T) {
	w := newWorld(t)
	inWindow := func(ran *atomic.Int32, more func()) func(*registry.Window) error {
		return func(win *registry.Window) error {
			ran.Add(1)
			more()
			_, err := w.class.Spawn(win, thing{})
			return err
		}
	}
	for _, batch := range []bool{false, true} {
		for _, at := range []string{"before", "queued", "during", "after"} {
			for range many(10, 10_000) {
				ctx, cancel := context.WithCancel(background())
				var ran atomic.Int32
				more := func() {}
				if at == "during" {
					more = cancel
				}
				live := w.r.Stats().Live
				outcome := make(chan error, 1)
				if at == "before" {
					cancel()
				}
				go func() {
					if !batch {
						outcome <- w.e.Spawn(ctx, inWindow(&ran, more))
						return
					}
					errs := w.e.SpawnBatch(ctx, inWindow(&ran, more), noChange)
					if (errs[0] == nil) != (errs[1] == nil) {
						t.Errorf("%s: half of a batch ran: %v", at, errs)
					}
					outcome <- errs[0]
				}()
				switch at {
				case "before":
					require.ErrorIs(t, <-outcome, context.Canceled)
				case "queued":
					w.queued(1)
					cancel()
					require.ErrorIs(t, <-outcome, context.Canceled)
					require.Zero(t, w.e.Stats().Waiting)
				default:
					w.queued(1)
				}
				w.step()
				applied := 0
				if at == "during" || at == "after" {
					require.NoError(t, <-outcome)
					applied = 1
				}
				cancel()
				w.step()
				require.EqualValues(t, applied, ran.Load(), at)
				require.Equal(t, live+applied, w.r.Stats().Live, at)
			}
		}
	}
}

func TestProducersThatVanishLeaveTheirWork(t *testing.T) {
	w := newWorld(t)
	ends := []func(){func() {}, runtime.Goexit, func() {
		defer func() { _ = recover() }()
		panic(errTest)
	}}
	var group sync.WaitGroup
	n := many(200, 10_000)
	for i := range n {
		group.Go(func() {
			lane := w.e.Producer() // nobody knows it when its goroutine is gone
			_, err := lane.Enqueue(func(win *registry.Window) error {
				_, err := w.class.Spawn(win, thing{value{i}})
				return err
			})
			assert.NoError(t, err)
			assert.NoError(t, lane.Defer(noChange))
			ends[i%len(ends)]()
		})
		if i%64 == 63 {
			group.Wait()
			w.step()
			assert.Zero(t, w.e.Stats().Queued)
		}
	}
	group.Wait()
	runtime.GC()
	w.step()
	assert.Equal(t, n, w.r.Stats().Live)
	assert.Empty(t, w.told())
}

func TestASlowLogicKeepsItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, size = 100, 8
		w := newWorld(t, func(c *logic.Config) { c.Rate, c.QueueSize, c.Watchdog = rate, size, time.Hour })
		rng := rand.New(rand.NewPCG(7, 7))
		_, err := w.e.AddSystem(logic.Physics, "slow", func(*logic.Frame) {
			time.Sleep(time.Duration(rng.IntN(100)) * time.Second / rate)
		})
		require.NoError(t, err)
		stop := w.run()
		start := time.Now()
		var asked, ran, refused int
		for range many(500, 10_000) {
			asked++
			if err := w.e.Defer(func(*registry.Window) error { ran++; return nil }); err != nil {
				require.ErrorIs(t, err, logic.ErrQueueFull)
				refused++
			}
			s := w.e.Stats()
			require.LessOrEqual(t, s.Waiting+s.Queued, size)
			time.Sleep(time.Second / rate / 2)
		}
		due := uint64(time.Since(start) / (time.Second / rate))
		for w.e.Stats().Queued > 0 {
			time.Sleep(time.Second)
		}
		require.NoError(t, stop())
		assert.Equal(t, asked, ran+refused)
		assert.Positive(t, refused)
		s := w.e.Stats()
		assert.Positive(t, s.DroppedFrames)
		assert.GreaterOrEqual(t, s.Frames+s.DroppedFrames+6, due, "what was not run was dropped, but for what is caught up")
	})
}

func TestFullIsFullAndOneThatLeavesLetsOneIn(t *testing.T) {
	const most = 8
	for name, rc := range map[string]registry.Config{
		"plain": {MaxEntities: most}, "deterministic": {MaxEntities: most, Deterministic: true}, "ring": {MaxEntities: most, TemporalFrames: 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldIn(t, rc, func(c *logic.Config) { c.QueueSize = most })
			var hs []handles.Local
			birth := func(win *registry.Window) error {
				h, err := w.class.Spawn(win, thing{})
				if err == nil {
					hs = append(hs, h)
				}
				return err
			}
			for range most {
				require.NoError(t, w.e.Defer(birth))
			}
			for range many(100, 100_000) {
				require.ErrorIs(t, w.e.Defer(birth), logic.ErrQueueFull)
				_, err := w.e.Enqueue(birth)
				require.ErrorIs(t, err, logic.ErrQueueFull)
				require.ErrorIs(t, w.e.Spawn(background(), birth), logic.ErrQueueFull)
			}
			assert.Zero(t, testing.AllocsPerRun(100, func() { _ = w.e.Defer(birth) }), "a refusal costs no memory")
			w.step()
			require.Len(t, hs, most)
			require.Equal(t, most, w.r.Stats().Live)

			for range many(20, 10_000) {
				w.full(birth)
			}
			for range 3 {
				victim := hs[0]
				hs = hs[1:]
				require.NoError(t, w.r.Destroy(victim))
				for range 12 { // it is buried, and out of the ring
					w.step()
				}
				w.update(func(win *registry.Window) error {
					require.NoError(t, birth(win), "one has left")
					require.ErrorIs(t, birth(win), registry.ErrExhausted, "and one only")
					return nil
				})
				require.NotContains(t, hs, victim)
				w.full(birth)
			}
			assert.Empty(t, w.told())
		})
	}
}

// full tries every way into a registry that has no room.
func (w *world) full(birth func(*registry.Window) error) {
	before := w.r.Stats()
	_, err := w.r.Reserve()
	require.ErrorIs(w.t, err, registry.ErrExhausted)
	ticket, err := w.e.Enqueue(func(win *registry.Window) error {
		_, err := w.class.SpawnBatch(win, 3, nil)
		assert.ErrorIs(w.t, err, registry.ErrExhausted)
		_, err = pool.NewEntities(win, w.class, 2)
		assert.ErrorIs(w.t, err, registry.ErrExhausted)
		return birth(win)
	})
	require.NoError(w.t, err)
	w.step()
	require.ErrorIs(w.t, ticket.Err(), registry.ErrExhausted)
	after := w.r.Stats()
	require.Equal(w.t, before.Live, after.Live)
	require.Equal(w.t, before.Allocated, after.Allocated, "a refusal leaves nothing")
	require.Equal(w.t, before.Local, after.Local)
}

func TestAFullPoolIsFull(t *testing.T) {
	const size = 4
	w := newWorld(t)
	var p *pool.Entities[thing]
	w.update(func(win *registry.Window) (err error) {
		p, err = pool.NewEntities(win, w.class, size)
		return err
	})
	var hs []handles.Local
	take := func(win *registry.Window) bool {
		h, ok := p.Spawn(win, thing{})
		if ok {
			hs = append(hs, h)
		}
		return ok
	}
	w.update(func(win *registry.Window) error {
		for range size {
			require.True(t, take(win))
		}
		for range many(100, 10_000) {
			require.False(t, take(win))
		}
		return nil
	})
	seen := map[handles.Local]bool{}
	for i := range many(100, 10_000) {
		h := hs[0]
		hs = hs[1:]
		require.False(t, seen[h], "%v was given out twice", h)
		seen[h] = true
		if i%2 == 0 {
			require.NoError(t, w.r.Destroy(h))
			w.step()
		}
		w.update(func(win *registry.Window) error {
			if i%2 == 1 {
				require.NoError(t, p.Despawn(win, h))
			}
			require.Error(t, p.Despawn(win, h))
			require.True(t, take(win), "one has left")
			require.False(t, take(win), "and one only")
			return nil
		})
	}
}

// netModel says which net indices wait for whom: peers as they knew them when the entity died, in the order of death.
type netModel struct {
	ever   bool
	acks   map[uint32]uint64
	deaths []netDeath
}

type netDeath struct {
	frame uint64
	knew  map[uint32]uint64 // peers that were there; by which of their lives
}

// confirm lets those go that nobody waits for, oldest first.
func (m *netModel) confirm(lives map[uint32]uint64) {
	for len(m.deaths) > 0 && m.ever {
		d := m.deaths[0]
		for id, life := range d.knew {
			if lives[id] == life && m.acks[id] < d.frame {
				return
			}
		}
		m.deaths = m.deaths[1:]
	}
}

func TestPeersThatMisbehaveHoldBackWhatTheyMust(t *testing.T) {
	for range many(40, 2000) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		m := netModel{acks: map[uint32]uint64{}}
		lives, life := map[uint32]uint64{}, uint64(0)
		for i := range 60 {
			for range rng.IntN(4) {
				id := uint32(rng.IntN(4))
				now := w.e.FrameNumber()
				_, there := lives[id]
				switch rng.IntN(8) {
				case 0, 1: // comes, or comes twice
					require.Equal(t, there, w.e.AddPeer(id) != nil)
					if !there {
						life++
						lives[id], m.acks[id], m.ever = life, 0, true
					}
				case 2: // leaves, or leaves twice
					require.Equal(t, there, w.e.DropPeer(id) == nil)
					delete(lives, id)
				case 3: // the future
					err := w.e.Ack(id, now+1+uint64(rng.IntN(1000)))
					require.Error(t, err)
					if there {
						require.ErrorIs(t, err, registry.ErrNotPublished)
					}
				default: // late, twice, out of order, or never
					frame := now - min(now, uint64(rng.IntN(12)))
					for range 1 + rng.IntN(2) {
						require.Equal(t, there, w.e.Ack(id, frame) == nil)
					}
					if there {
						m.acks[id] = max(m.acks[id], frame)
					}
				}
			}
			died := rng.IntN(3)
			knew := map[uint32]uint64{}
			for id, life := range lives {
				knew[id] = life
			}
			for range died {
				h, _ := w.spawnNet(i)
				w.update(func(win *registry.Window) error { return win.Destroy(h) })
			}
			w.step()
			for range died {
				m.deaths = append(m.deaths, netDeath{w.e.FrameNumber(), knew})
			}
			m.confirm(lives)
			require.Equal(t, len(m.deaths), w.r.Stats().Net.Pending, "seed %d, step %d", seed, i)
		}
		require.NoError(t, w.e.Stop())
		require.NoError(t, w.r.Verify())
	}
}

// forgery is a handle that is not what it claims to be.
type forgery struct {
	name string
	h    handles.Local
	err  error // what every operation that needs a living entity answers
}

func TestForgedHandlesTouchNobody(t *testing.T) {
	for name, rc := range map[string]registry.Config{
		"plain": {}, "deterministic": {Deterministic: true}, "ring": {TemporalFrames: 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldIn(t, rc, func(c *logic.Config) { c.LocalWindow = -1 })
			alive, net := w.spawnNet(1)
			dead, deadNet := w.spawnNet(2)
			buried := w.spawn(3)
			require.NoError(t, w.r.Destroy(buried))
			w.step()
			w.update(func(win *registry.Window) error {
				win.ProcessDeferredDestructions()
				return win.Destroy(dead)
			})
			reserved, err := w.r.Reserve()
			require.NoError(t, err)
			stale, invalid := registry.ErrStale, registry.ErrInvalidHandle
			forgeries := []forgery{
				{"zero", 0, invalid},
				{"no index", handles.NewLocal(0, 1), invalid},
				{"no generation", handles.NewLocal(alive.Index(), 0), invalid},
				{"the next generation", handles.NewLocal(alive.Index(), alive.Generation()+1), invalid},
				{"the last generation", handles.NewLocal(alive.Index(), 1<<32-1), invalid},
				{"an index never used", handles.NewLocal(1<<20, 1), invalid},
				{"an index beyond all", handles.NewLocal(1<<32-1, 1), invalid},
				{"all bits", 1<<64 - 1, invalid},
				{"a net handle", handles.Local(handles.NewNet(3, 77, 9)), invalid},
				{"dying", dead, stale},
				{"buried", buried, stale},
				{"reserved", reserved, registry.ErrNotSpawned},
			}
			before := w.r.Stats()
			for _, f := range forgeries {
				w.forged(f, alive)
				require.NoError(t, w.r.Verify(), f.name)
			}
			for _, n := range []handles.Net{
				0, 1<<64 - 1, deadNet, handles.NewNet(net.Owner(), net.Index(), net.Generation()+1),
				handles.NewNet(net.Owner()+1, net.Index(), net.Generation()), handles.NewNet(net.Owner(), net.Index()+100, 1),
				handles.NewNet(net.Owner(), 0, 1), handles.Net(alive),
			} {
				if n == net {
					continue
				}
				_, err := w.r.ResolveNet(n)
				assert.Error(t, err, "%v", n)
				assert.False(t, w.r.AliveNet(n), "%v", n)
			}
			for range 2 {
				w.step()
			}
			after := w.r.Stats()
			assert.Equal(t, before.Live, after.Live)
			assert.Equal(t, 1, w.n(alive), "nobody was touched")
			back, err := w.r.ResolveNet(net)
			require.NoError(t, err)
			assert.Equal(t, alive, back)
			assert.Empty(t, w.told())
		})
	}
}

// forged gives a forgery to everything that takes a handle. Each answers once, and with the same.
func (w *world) forged(f forgery, alive handles.Local) {
	t := w.t
	is := func(what string, err error) { assert.ErrorIs(t, err, f.err, "%s of %s", what, f.name) }
	_, err := w.r.Resolve(f.h)
	is("Resolve", err)
	_, err = w.r.NetOf(f.h)
	is("NetOf", err)
	assert.False(t, w.r.Alive(f.h), f.name)
	kill := func(what string, destroy func(handles.Local) error) {
		if f.err != registry.ErrNotSpawned { // a reservation can be given up
			is(what, destroy(f.h))
		}
	}
	kill("Registry.Destroy", w.r.Destroy)
	ticket, err := w.e.Enqueue(func(win *registry.Window) error {
		kill("Window.Destroy", win.Destroy)
		is("Set", registry.Set(win, f.h, value{9}))
		_, err := registry.Get[value](win, f.h)
		is("Get", err)
		_, err = registry.Peek[value](win, f.h)
		is("Peek", err)
		is("Add", registry.Add(win, f.h, tag{9}))
		is("Remove", registry.Remove[value](win, f.h))
		is("SetParent of it", registry.SetParent(win, f.h, alive))
		if !f.h.IsZero() { // which is nobody's parent, and means that
			is("SetParent to it", registry.SetParent(win, alive, f.h))
		}
		is("SetActive", registry.SetActive(win, f.h, false))
		_, err = win.AssignNet(f.h)
		is("AssignNet", err)
		is("BindNet", win.BindNet(f.h, handles.NewNet(200, 5, 5)))
		if f.err != registry.ErrNotSpawned {
			assert.Error(t, w.class.SpawnReserved(win, f.h, thing{}), f.name)
		}
		assert.False(t, registry.Has[value](win, f.h), f.name)
		assert.Zero(t, registry.AddBatch(win, []handles.Local{f.h, f.h}, tag{9}), f.name)
		assert.Zero(t, registry.RemoveBatch[value](win, []handles.Local{f.h}), f.name)
		if f.err != registry.ErrNotSpawned {
			assert.Zero(t, win.DestroyBatch([]handles.Local{f.h, f.h}), f.name)
		}
		_, ok := registry.CacheIndex(win, f.h)
		assert.False(t, ok, f.name)
		return nil
	})
	require.NoError(t, err)
	s, err := w.e.AddSystem(logic.Physics, "forger", func(fr *logic.Frame) {
		kill("Frame.Destroy", fr.Destroy)
		is("Set in a frame", registry.Set(fr, f.h, value{9}))
		is("SetActive in a frame", registry.SetActive(fr, f.h, false))
		assert.False(t, registry.Active(fr, f.h), f.name)
	})
	require.NoError(t, err)
	w.step()
	require.NoError(t, ticket.Err())
	require.NoError(t, s.Remove())
	w.step()
}

func TestAStopAmidAnUndo(t *testing.T) {
	for i := range many(8, 1000) {
		w := newWorld(t, fast)
		stop := w.run()
		var h handles.Local
		require.NoError(t, w.e.Spawn(background(), func(win *registry.Window) (err error) {
			h, err = w.class.Spawn(win, thing{value{7}})
			return err
		}))
		undoing, heard := false, false
		var stops sync.WaitGroup
		ctx, cancel := context.WithCancel(background())
		_, err := w.r.OnMove(func([]registry.Move) {
			if !undoing {
				return
			}
			heard = true
			cancel() // too late to matter
			for range 1 + i%16 {
				stops.Go(func() { assert.NoError(t, w.e.Stop()) })
			}
			for !logic.StopAsked(w.e) {
				yield()
			}
		})
		require.NoError(t, err)
		require.NoError(t, w.e.Spawn(background(), noChange), "from then on it hears of moves")
		ended := make(chan error, 1)
		go func() {
			ended <- recovered(func() error {
				return w.e.Spawn(ctx, func(win *registry.Window) error {
					if err := registry.Add(win, h, tag{1}); err != nil {
						return err
					}
					undoing = true // which tells the mover, too
					if i%2 == 1 {
						panic(errTest)
					}
					return errTest
				})
			})
		}()
		require.ErrorIs(t, <-ended, errTest)
		require.NoError(t, stop())
		stops.Wait()
		require.True(t, heard)
		require.Equal(t, 7, w.n(h))
		w.update(func(win *registry.Window) error {
			require.False(t, registry.Has[tag](win, h))
			return nil
		})
		require.NoError(t, w.r.Verify())
	}
}
