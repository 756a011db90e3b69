package logic_test

import (
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

func TestASteadyStreamOfDeferredOperationsAllocatesNothing(t *testing.T) {
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
