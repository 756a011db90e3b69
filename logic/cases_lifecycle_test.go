package logic_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func ordersToTheDead(t *testing.T) {
	for _, setFirst := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			w := newWorld(t)
			h := w.spawn(1)
			setter, killer := w.e.Producer(), w.e.Producer()
			var set, kill *logic.Ticket
			orders := []func(){
				func() {
					set, _ = setter.Enqueue(func(win *registry.Window) error { return registry.Set(win, h, value{2}) })
				},
				func() {
					kill, _ = killer.Enqueue(func(win *registry.Window) error { return win.Destroy(h) })
				},
			}
			if !setFirst {
				slices.Reverse(orders)
			}
			for _, order := range orders {
				order()
				if !together {
					w.step()
				}
			}
			w.step()
			w.step()
			assert.NoError(t, kill.Err())
			assert.False(t, w.r.Alive(h))
			if setFirst {
				assert.NoError(t, set.Err())
			} else {
				assert.ErrorIs(t, set.Err(), registry.ErrStale)
			}
			assert.Zero(t, w.r.Stats().Live)
			assert.Zero(t, w.r.Stats().PendingDestructions)
		}
	}
	w := newWorld(t)
	dead := w.spawn(1)
	require.NoError(t, w.r.Destroy(dead))
	var fns []func(*registry.Window) error
	for i := range 5 {
		fns = append(fns, func(win *registry.Window) error {
			if i == 2 {
				return registry.Set(win, dead, value{i})
			}
			_, err := w.class.Spawn(win, thing{value{i}})
			return err
		})
	}
	errs := make(chan []error, 1)
	go func() { errs <- w.e.SpawnBatch(background(), fns...) }()
	w.queued(1)
	w.step()
	for i, err := range <-errs {
		if i == 2 {
			assert.ErrorIs(t, err, registry.ErrStale)
		} else {
			assert.NoError(t, err)
		}
	}
	assert.Equal(t, 4, w.r.Stats().Live)
}

func ordersForAnEarlierLife(t *testing.T) {
	w := newWorld(t)
	h := w.spawn(1)
	order := func(win *registry.Window) error { return registry.Set(win, h, value{2}) }
	require.NoError(t, w.r.Destroy(h))
	w.update(func(win *registry.Window) error {
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
		return nil
	})
	h2 := w.spawn(3)
	require.Equal(t, h.Index(), h2.Index())
	first, err := w.e.Enqueue(order)
	require.NoError(t, err)
	second, err := w.e.Enqueue(func(win *registry.Window) error { return registry.Set(win, h2, value{4}) })
	require.NoError(t, err)
	w.step()
	assert.ErrorIs(t, first.Err(), registry.ErrStale)
	assert.NoError(t, second.Err())
	assert.Equal(t, 4, w.n(h2))
}

func deferringNeverSticks(t *testing.T) {
	w := newWorld(t)
	const depth = 5
	var ran []string // name and frame
	var nest func(name string, level int) func(*registry.Window) error
	nest = func(name string, level int) func(*registry.Window) error {
		return func(win *registry.Window) error {
			ran = append(ran, fmt.Sprint(name, level, "@", win.FrameNumber()))
			if level < depth {
				assert.NoError(t, w.e.Defer(nest(name, level+1)))
			}
			switch level % 3 {
			case 1:
				return errTest
			case 2:
				panic(errTest)
			}
			return nil
		}
	}
	require.NoError(t, w.e.Defer(nest("engine", 1)))
	wished := make(map[int]uint64)
	_, err := w.e.AddSystem(logic.Physics, "defers", func(f *logic.Frame) {
		level := int(f.FrameNumber())
		if level > depth {
			return
		}
		f.Defer(func(win *registry.Window) error {
			wished[level] = win.FrameNumber()
			if level%2 == 0 {
				panic(errTest)
			}
			return errTest
		})
	})
	require.NoError(t, err)
	for range depth + 2 {
		w.step()
	}
	assert.Equal(t, []string{"engine1@1", "engine2@2", "engine3@3", "engine4@4", "engine5@5"}, ran)
	assert.Equal(t, map[int]uint64{1: 2, 2: 3, 3: 4, 4: 5, 5: 6}, wished)
	assert.Len(t, w.told(), 4+5)
	s := w.e.Stats()
	assert.Zero(t, s.Queued)
	h := w.spawn(1)
	assert.True(t, w.r.Alive(h), "direct operations act at once")
}

func twoMillionDeaths(t *testing.T) {
	n := 2_000_000
	if raceEnabled {
		n = 100_000
	}
	w := newWorldIn(t, registry.Config{MaxEntities: n}, func(c *logic.Config) { c.LocalWindow = 1 })
	var hs []handles.Local
	w.update(func(win *registry.Window) (err error) {
		hs, err = w.class.SpawnBatch(win, n, nil)
		return err
	})
	for i, h := range hs {
		if i%2 == 0 {
			require.NoError(t, w.r.Destroy(h))
		}
	}
	_, err := w.e.AddSystem(logic.Physics, "kills", func(f *logic.Frame) {
		if f.FrameNumber() == 1 {
			for i, h := range hs {
				if i%2 == 1 && f.Destroy(h) != nil {
					t.Errorf("death %d failed", i)
				}
			}
		}
	})
	require.NoError(t, err)
	w.step()
	w.step()
	s := w.r.Stats()
	assert.Zero(t, s.PendingDestructions)
	assert.Zero(t, s.Live)
	assert.Equal(t, n/2, s.Local.Pending)
	w.step()
	assert.Equal(t, n, w.r.Stats().Local.Free)
	require.NoError(t, w.e.Stop())
	for _, start := range []uint64{1<<31 - 2, 1<<32 - 2} {
		logic.CheckGauge(t, start)
	}
}

func childOfTheUnborn(t *testing.T) {
	w := newWorld(t)
	for _, refused := range []bool{false, true} {
		p, err := w.r.Reserve()
		require.NoError(t, err)
		c, err := w.r.Reserve()
		require.NoError(t, err)
		outcome := make(chan []error, 1)
		go func() {
			outcome <- w.e.SpawnBatch(background(),
				func(win *registry.Window) error {
					err := w.class.SpawnReserved(win, p, thing{value{1}})
					if refused {
						err = errTest
					}
					return err
				},
				func(win *registry.Window) error { return w.class.SpawnReserved(win, c, thing{value{2}}) },
				func(win *registry.Window) error { return registry.SetParent(win, c, p) })
		}()
		w.queued(1)
		w.step()
		errs := <-outcome
		require.NoError(t, errs[1])
		if refused {
			assert.ErrorIs(t, errs[0], errTest)
			assert.ErrorIs(t, errs[2], registry.ErrNotSpawned)
			require.NoError(t, w.r.Destroy(p))
			w.step()
			assert.True(t, w.r.Alive(c), "nothing is half linked")
		} else {
			require.NoError(t, errs[0])
			require.NoError(t, errs[2])
			require.NoError(t, w.r.Destroy(p))
			w.step()
			assert.False(t, w.r.Alive(c), "the child dies with its parent")
		}
		require.NoError(t, w.r.Verify())
	}
}

// spawnNet makes an entity with a net handle, between frames.
func (w *world) spawnNet(n int) (h handles.Local, net handles.Net) {
	w.t.Helper()
	w.update(func(win *registry.Window) (err error) {
		if h, err = w.class.Spawn(win, thing{value{n}}); err != nil {
			return err
		}
		net, err = win.AssignNet(h)
		return err
	})
	return h, net
}

func theSlowestPeer(t *testing.T) {
	w := newWorld(t)
	for id := range uint32(3) {
		require.NoError(t, w.e.AddPeer(id+1))
	}
	require.Error(t, w.e.AddPeer(1))
	require.Error(t, w.e.Ack(9, 0))
	require.Error(t, w.e.DropPeer(9))
	h1, _ := w.spawnNet(1)
	h2, _ := w.spawnNet(2)
	w.step()
	require.NoError(t, w.r.Destroy(h1))
	w.step()
	f := w.e.FrameNumber() // the first index is freed in it
	require.NoError(t, w.r.Destroy(h2))
	w.step()
	pending := func() int { return w.r.Stats().Net.Pending }
	require.Equal(t, 2, pending())
	require.ErrorIs(t, w.e.Ack(1, f+2), registry.ErrNotPublished, "an ack from the future")

	require.NoError(t, w.e.Ack(1, f+1))
	require.NoError(t, w.e.Ack(2, f+1))
	w.step()
	require.Equal(t, 2, pending(), "peer 3 knows nothing yet")
	require.NoError(t, w.e.Ack(3, f))
	w.step()
	require.Equal(t, 1, pending())
	require.NoError(t, w.e.Ack(3, f-1), "a lower ack changes nothing")
	require.NoError(t, w.e.AddPeer(4), "nor does a newcomer")
	w.step()
	require.Equal(t, 1, pending())
	s := w.e.Stats()
	assert.Equal(t, 4, s.Peers)
	assert.EqualValues(t, 3, s.SlowestPeer)
	assert.Equal(t, f, s.SlowestAck)
	require.NoError(t, w.e.DropPeer(3))
	w.step()
	require.Zero(t, pending())

	h3, _ := w.spawnNet(3) // the newcomer holds back what dies after it came
	require.NoError(t, w.r.Destroy(h3))
	w.step()
	now := w.e.FrameNumber()
	require.NoError(t, w.e.Ack(1, now))
	require.NoError(t, w.e.Ack(2, now))
	w.step()
	require.Equal(t, 1, pending())
	for _, id := range []uint32{1, 2, 4} { // and the last one that leaves frees it
		require.NoError(t, w.e.DropPeer(id))
	}
	w.step()
	require.Zero(t, pending())
	assert.Zero(t, w.e.Stats().Peers)
}

func messagesLateEarlyReversed(t *testing.T) {
	type message struct {
		name string
		net  handles.Net
	}
	for order := range permutations(4) {
		w := newWorld(t)
		require.NoError(t, w.e.AddPeer(1))
		h1, n1 := w.spawnNet(1)
		w.step()

		// The replica is another registry that the messages reach in any order.
		replica, err := registry.New(registry.Config{Owner: 1})
		require.NoError(t, err)
		class, err := registry.RegisterClass[thing](replica)
		require.NoError(t, err)
		bind := func(n handles.Net) error {
			return replica.Update(func(win *registry.Window) error {
				h, err := class.Spawn(win, thing{})
				if err != nil {
					return err
				}
				return win.BindNet(h, n)
			})
		}
		require.NoError(t, bind(n1))

		require.NoError(t, w.r.Destroy(h1))
		w.step()
		freed := w.e.FrameNumber()
		_, early := w.spawnNet(0)
		require.NotEqual(t, n1.Wire(), early.Wire(), "not issued before all peers acked")
		require.NoError(t, w.e.Ack(1, freed))
		w.step()
		_, n2 := w.spawnNet(2)
		require.Equal(t, n1.Wire(), n2.Wire())
		require.NotEqual(t, n1, n2)

		messages := []message{{"destroy", n1}, {"spawn", n2}, {"update", n1}, {"update", n2}}
		deliver := func(m message) error {
			switch m.name {
			case "destroy":
				h, err := replica.ResolveNet(m.net)
				if err != nil {
					return err
				}
				return replica.Destroy(h)
			case "spawn":
				return bind(m.net)
			}
			h, err := replica.ResolveNet(m.net)
			if err != nil {
				return err
			}
			return replica.Update(func(win *registry.Window) error { return registry.Set(win, h, value{int(m.net.Generation())}) })
		}
		late := order
		for range len(order) { // what fails is sent again, as a network would
			var again []int
			for _, i := range late {
				if err := deliver(messages[i]); err != nil {
					again = append(again, i)
					require.NoError(t, replica.Verify())
				}
				require.NoError(t, replica.Update(func(win *registry.Window) error {
					win.ProcessDeferredDestructions()
					return nil
				}))
			}
			late = again
		}
		h2, err := replica.ResolveNet(n2)
		require.NoError(t, err)
		_, err = replica.ResolveNet(n1)
		require.Error(t, err)
		assert.Equal(t, 1, replica.Stats().Live, "only n2 lives")
		require.NoError(t, replica.Update(func(win *registry.Window) error {
			v, err := registry.Peek[value](win, h2)
			assert.Equal(t, int(n2.Generation()), v.N)
			return err
		}))
	}
}

// permutations yields every order of n things.
func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		var grow func(prefix []int) bool
		grow = func(prefix []int) bool {
			if len(prefix) == n {
				return yield(slices.Clone(prefix))
			}
			for i := range n {
				if !slices.Contains(prefix, i) && !grow(append(slices.Clone(prefix), i)) {
					return false
				}
			}
			return true
		}
		grow(nil)
	}
}
