package logic_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Also when the budget cuts the queue anywhere.
func TestWhatAGoroutineDefersComesBeforeWhatItSpawnsLater(t *testing.T) {
	for _, budget := range []time.Duration{1, 20 * time.Microsecond, time.Second} {
		w := newWorld(t, fast, func(c *logic.Config) { c.WindowBudget = budget })
		stop := w.run()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var own, shared []int // written in windows
				lane := w.e.Producer()
				for i := range 100 {
					note := func(list *[]int, n int) func(*registry.Window) error {
						return func(*registry.Window) error { *list = append(*list, n); return nil }
					}
					assert.NoError(t, lane.Defer(note(&own, 2*i)))
					assert.NoError(t, w.e.Defer(note(&shared, 2*i)))
					assert.NoError(t, lane.Defer(note(&own, 2*i+1)))
					assert.NoError(t, w.e.Defer(note(&shared, 2*i+1)))
					assert.NoError(t, w.e.Spawn(background(), func(*registry.Window) error {
						for _, list := range [][]int{own, shared} {
							if assert.Len(t, list, 2*i+2) {
								assert.Equal(t, 2*i+1, list[2*i+1])
							}
						}
						return nil
					}))
				}
			})
		}
		wg.Wait()
		require.NoError(t, stop())
	}
}

func TestTicketsAnswerWhoeverAsksWhenever(t *testing.T) {
	w := newWorld(t)
	early, err := w.e.Enqueue(func(*registry.Window) error { return errTest })
	require.NoError(t, err)
	late, err := w.e.Enqueue(noChange)
	require.NoError(t, err)
	done := early.Done()
	assert.NoError(t, early.Err())
	w.step()
	<-done
	<-early.Done()
	<-late.Done()
	assert.Equal(t, errTest, early.Err())
	assert.NoError(t, late.Err())
}

func TestAForgottenProducerLosesNothing(t *testing.T) {
	w := newWorld(t)
	ran := 0
	for range 100 {
		require.NoError(t, w.e.Producer().Defer(func(*registry.Window) error { ran++; return nil }))
	}
	w.step()
	assert.Equal(t, 100, ran)
}

// In a large queue a lane takes places ahead, many at once. They are found before anybody is refused, and nothing counts them.
func TestPlacesTakenAheadAreNotMissed(t *testing.T) {
	const size, lanes = 1 << 14, 1000
	w := newWorld(t, func(c *logic.Config) { c.QueueSize, c.WindowBudget = size, time.Hour })
	accepted, ran := 0, 0
	fn := func(*registry.Window) error { ran++; return nil }
	for range 3 {
		accepted, ran = 0, 0
		var own []*logic.Producer
		for range lanes {
			own = append(own, w.e.Producer())
			require.NoError(t, own[accepted].Defer(fn))
			accepted++
		}
		require.Equal(t, accepted, w.e.Stats().Queued)
		for _, p := range own { // they take ahead once more
			require.NoError(t, p.Defer(fn))
			accepted++
		}
		for w.e.Defer(fn) == nil {
			accepted++
		}
		require.Equal(t, size, accepted)
		require.ErrorIs(t, own[0].Defer(fn), logic.ErrQueueFull)
		require.ErrorIs(t, w.e.Spawn(background(), fn), logic.ErrQueueFull)
		require.Equal(t, size, w.e.Stats().Queued)
		w.step()
		require.Equal(t, size, ran)
		require.Zero(t, w.e.Stats().Queued)
	}
	const stride = size / 1024
	for range lanes { // as many as it takes take ahead until half of the places are taken
		require.NoError(t, w.e.Producer().Defer(fn))
	}
	for range size/2 - (lanes - size/2/stride) { // and now all are
		require.NoError(t, w.e.Defer(fn))
	}
	ctx, cancel := context.WithTimeout(background(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, w.e.Spawn(ctx, fn), context.DeadlineExceeded, "a caller finds a place, and waits")
}

// Producers that always find the queue nearly full, or full, beside a Logic that empties it: no place is lost or won.
func TestAQueueThatIsFullAgainAndAgainLosesNoPlace(t *testing.T) {
	const size, producers, each = 1 << 12, 8, 5000
	w := newWorld(t, fast, func(c *logic.Config) { c.QueueSize = size })
	stop := w.run()
	ran := 0 // Logic's
	var all sync.WaitGroup
	for i := range producers {
		all.Go(func() {
			add := w.e.Producer().Defer
			if i%2 == 0 {
				add = w.e.Defer
			}
			for range each {
				for add(func(*registry.Window) error { ran++; return nil }) != nil {
					s := w.e.Stats()
					assert.LessOrEqual(t, s.Queued+s.Waiting, size)
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, w.e.Spawn(background(), noChange))
	require.Zero(t, w.e.Stats().Queued)
	require.NoError(t, stop())
	require.Equal(t, producers*each, ran)
}

func TestASteadyStreamOfDeferredOperationsAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	w := newWorld(t)
	lane := w.e.Producer()
	if w.r.Update(noChange) != nil || testing.AllocsPerRun(200, func() { _ = w.r.Update(noChange) }) > 0 {
		t.Skip("callbacks allocate in this build")
	}
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		for range 50 {
			_ = w.e.Defer(noChange)
			_ = lane.Defer(noChange)
		}
		_ = w.e.Step()
	}))
}

// Operations are served in rows. Whatever ends one in the middle, those behind it have their turn in the same window, and
// each is answered once, in order.
func TestOperationsThatEndARowKeepNobodyFromTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []error
		w := newWorld(t, func(c *logic.Config) {
			c.Watchdog, c.WindowBudget = 50*time.Millisecond, time.Hour
			c.OnError = func(err error) { failed = append(failed, err) }
		})
		ends := []string{"", "slow", "", "fails", "panics", "", "exits", "slow", "exits", "fails", ""}
		var ran []int
		var tickets []*logic.Ticket
		var born []handles.Local
		for i, end := range ends {
			op := func(win *registry.Window) error {
				ran = append(ran, i)
				h, err := w.class.Spawn(win, thing{})
				require.NoError(t, err)
				switch end {
				case "slow":
					time.Sleep(60 * time.Millisecond)
				case "fails":
					return errTest
				case "panics":
					panic(errTest)
				case "exits":
					runtime.Goexit()
				}
				born = append(born, h)
				return nil
			}
			require.NoError(t, w.e.Defer(op))
			ticket, err := w.e.Enqueue(op)
			require.NoError(t, err)
			tickets = append(tickets, ticket)
		}
		w.step()
		var want []int
		var wantFailed []string
		for i, end := range ends {
			want = append(want, i, i)
			<-tickets[i].Done()
			if end == "" || end == "slow" {
				require.NoError(t, tickets[i].Err())
				continue
			}
			wantFailed = append(wantFailed, tickets[i].Err().Error())
		}
		require.Equal(t, want, ran)
		var got []string
		for _, err := range failed {
			got = append(got, err.Error())
		}
		require.Equal(t, wantFailed, got)
		require.Len(t, born, 12)
		require.Equal(t, 12, w.r.Stats().Live)
		require.EqualValues(t, 4, w.e.Stats().Overruns)
		require.Zero(t, w.e.Stats().Queued)
	})
}
