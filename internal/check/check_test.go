package check_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/check"
)

// inDebug asserts that fn panics with want in a debug build, and does nothing in a release build.
func inDebug(t *testing.T, want string, fn func()) {
	t.Helper()
	if check.Enabled {
		assert.PanicsWithValue(t, want, fn)
	} else {
		assert.NotPanics(t, fn)
	}
}

func TestFailfNamesTheBrokenInvariant(t *testing.T) {
	assert.PanicsWithValue(t, "airlock: invariant broken: live 3 > allocated 2", func() {
		check.Failf("live %d > allocated %d", 3, 2)
	})
}

func TestGuardReportsAnOverlapInDebugBuildsOnly(t *testing.T) {
	var g check.Guard
	g.Enter("first")
	inDebug(t, "airlock: invariant broken: second entered while first is inside", func() { g.Enter("second") })
	g.Exit()
	inDebug(t, "airlock: invariant broken: exit from a place that nobody entered", g.Exit)
	g.Enter("third") // a guard is reusable after it complained
	g.Exit()
}

func TestGuardNoticesTwoGoroutines(t *testing.T) {
	var (
		g        check.Guard
		overlaps atomic.Int64
		inside   = make(chan struct{})
		leave    = make(chan struct{})
		callers  sync.WaitGroup
	)
	g.Enter("holder")
	for range 4 {
		callers.Go(func() {
			defer func() {
				if recover() != nil {
					overlaps.Add(1)
				}
			}()
			inside <- struct{}{}
			<-leave
			g.Enter("intruder")
		})
	}
	for range 4 {
		<-inside
	}
	close(leave)
	callers.Wait()
	if check.Enabled {
		require.EqualValues(t, 4, overlaps.Load())
		g.Exit()
	} else {
		require.Zero(t, overlaps.Load())
	}
}

func TestGuardCostsNothingInAReleaseBuild(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build pays for its checks")
	}
	assert.Zero(t, reflect.TypeFor[check.Guard]().Size())
	var g check.Guard
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		g.Enter("nobody")
		g.Exit()
	}))
}
