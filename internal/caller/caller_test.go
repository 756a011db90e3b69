package caller_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/caller"
)

// object stands for a registry: something with an address.
type object struct{ _ int }

// deep calls fn below n further frames.
//
//go:noinline
func deep(n int, fn func()) {
	if n == 0 {
		fn()
		return
	}
	deep(n-1, fn)
	runtime.KeepAlive(n)
}

func TestInsideIsTrueOnlyBelowWithin(t *testing.T) {
	a, b := caller.ID(new(object)), caller.ID(new(object))
	require.NotEqual(t, a, b)
	assert.False(t, caller.Inside(a))
	caller.Within(a, func() {
		assert.True(t, caller.Inside(a))
		assert.False(t, caller.Inside(b))
		caller.Within(b, func() {
			assert.True(t, caller.Inside(a), "the outer one")
			assert.True(t, caller.Inside(b), "the inner one")
			assert.False(t, caller.Inside(a+1))
			assert.False(t, caller.Inside(a>>4), "a prefix of the number")
			assert.False(t, caller.Inside(0))
		})
		assert.False(t, caller.Inside(b), "after the inner one")
	})
	assert.False(t, caller.Inside(a), "after the outer one")
}

func TestInsideTellsManyIdsApart(t *testing.T) {
	objects := make([]*object, 64)
	for i := range objects {
		objects[i] = new(object)
	}
	for i, o := range objects {
		caller.Within(caller.ID(o), func() {
			for j, other := range objects {
				require.Equal(t, i == j, caller.Inside(caller.ID(other)), "inside %d, asked for %d", i, j)
			}
		})
	}
}

func TestTheRuntimeIsSureOfTheArgument(t *testing.T) {
	// The question mark of an unsure argument would still be answered safely, but this package
	// exists to know: a new compiler that no longer keeps the argument must fail here.
	id := caller.ID(new(object))
	caller.Within(id, func() {
		deep(10, func() {
			assert.Contains(t, caller.Trace(), fmt.Sprintf("%s(%#x, ", caller.WithinName(), id))
		})
	})
}

func TestAPanicAndAnExitLeaveNothingBehind(t *testing.T) {
	outer, id := caller.ID(new(object)), caller.ID(new(object))
	for name, leave := range map[string]func(){"panic": func() { panic("out") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var below, above, aboveOuter, after []bool
			ask := func() []bool { return []bool{caller.Inside(outer), caller.Inside(id)} }
			var done sync.WaitGroup
			done.Go(func() {
				defer func() { after = ask() }()
				func() {
					defer func() { _ = recover() }()
					caller.Within(outer, func() {
						// The frame of the inner call is still on the stack when this runs.
						defer func() { above = ask() }()
						caller.Within(id, func() {
							defer func() { below = ask() }()
							leave()
						})
					})
				}()
				aboveOuter = ask() // after a recovered panic, but not after an exit
			})
			done.Wait()
			assert.Equal(t, []bool{true, true}, below, "in a deferred call of the callback")
			assert.Equal(t, []bool{true, false}, above, "in a deferred call of who called Within")
			assert.Equal(t, []bool{false, false}, after, "in a deferred call outside of both")
			if name == "panic" {
				assert.Equal(t, []bool{false, false}, aboveOuter, "after the panic was recovered")
			}
			assert.Empty(t, caller.Stacks(id))
		})
	}
}

func TestAGoroutineStartedInsideIsOutside(t *testing.T) {
	id := caller.ID(new(object))
	caller.Within(id, func() {
		var inside bool
		var done sync.WaitGroup
		done.Go(func() { inside = caller.Inside(id) })
		done.Wait()
		assert.False(t, inside)
	})
}

func TestDeepStacksAreNeverTakenForOutside(t *testing.T) {
	id, other := caller.ID(new(object)), caller.ID(new(object))
	for _, above := range []int{0, 20, 300} {
		for _, below := range []int{0, 20, 48, 300, 3000} {
			t.Run(fmt.Sprintf("above=%d/below=%d", above, below), func(t *testing.T) {
				deep(above, func() {
					caller.Within(id, func() {
						deep(below, func() { assert.True(t, caller.Inside(id)) })
					})
					deep(below, func() { assert.False(t, caller.Inside(id), "outside") })
				})
			})
		}
	}
	t.Run("another id whose frame is left out of the trace counts as the one asked for", func(t *testing.T) {
		deep(300, func() {
			caller.Within(other, func() {
				deep(300, func() { assert.True(t, caller.Inside(id)) })
			})
		})
	})
	t.Run("another id whose frame is in the trace does not", func(t *testing.T) {
		deep(300, func() {
			caller.Within(other, func() {
				deep(20, func() { assert.False(t, caller.Inside(id)) })
			})
		})
	})
}

func TestScanBelievesOnlyWhatTheRuntimeIsSureOf(t *testing.T) {
	for _, test := range []struct {
		name, text string
		found      bool
		others     int
	}{
		{"nothing", "", false, 0},
		{"the id", "W(0xc0de, 0x1)\n\tfile.go:1 +0x1\n", true, 0},
		{"another id", "W(0xc0df, 0x1)\n", false, 1},
		{"a longer number", "W(0xc0de0, 0x1)\n", false, 1},
		{"unsure", "W(0xc0de?, 0x1)\n", false, 0},
		{"unsure of another", "W(0xc0df?, 0x1)\n", false, 0},
		{"cut off", "W(0xc0d", false, 1},
		{"nested", "W(0xc0df, 0x1)\nW(0xc0de, 0x1)\nW(0x1, 0x1)\n", true, 2},
		{"not at the start of a line", "x W(0xc0de, 0x1)\n", false, 0},
		{"a closure of the function", "W.func1(0xc0de, 0x1)\n", false, 0},
		{"who created the goroutine", "created by W in goroutine 7\n", false, 0},
		{"too large", "W(0xc0dec0dec0dec0dec0de, 0x1)\n", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.ReplaceAll(test.text, "W", caller.WithinName())
			found, others := caller.Scan(text, 0xc0de)
			assert.Equal(t, test.found, found)
			assert.Equal(t, test.others, others)
		})
	}
}

func TestInsideAnswersManyGoroutinesAtOnce(t *testing.T) {
	ids := [4]uintptr{}
	for i := range ids {
		ids[i] = caller.ID(new(object))
	}
	for _, goroutines := range []int{2, runtime.GOMAXPROCS(0), 100} {
		var done sync.WaitGroup
		for g := range goroutines {
			done.Go(func() {
				for range 10 {
					caller.Within(ids[g%4], func() {
						assert.True(t, caller.Inside(ids[g%4]))
						assert.False(t, caller.Inside(ids[(g+1)%4]))
					})
				}
			})
		}
		done.Wait()
	}
}

//go:noinline
func waitsInTheWindow(entered chan<- struct{}, leave <-chan struct{}) {
	entered <- struct{}{}
	<-leave
}

//go:noinline
func waitsElsewhere(entered chan<- struct{}, leave <-chan struct{}) {
	entered <- struct{}{}
	<-leave
}

func TestStacksShowsWhoIsInside(t *testing.T) {
	id, other, nobody := caller.ID(new(object)), caller.ID(new(object)), caller.ID(new(object))
	entered, leave := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { caller.Within(id, func() { waitsInTheWindow(entered, leave) }) })
	for range 50 { // enough text to make the buffer grow
		done.Go(func() { caller.Within(other, func() { waitsElsewhere(entered, leave) }) })
	}
	for range 51 {
		<-entered
	}
	stacks := caller.Stacks(id)
	assert.Contains(t, stacks, "waitsInTheWindow")
	assert.NotContains(t, stacks, "waitsElsewhere")
	assert.Equal(t, 1, strings.Count(stacks, "goroutine "+strings.Fields(stacks)[1]+" ["))
	assert.Equal(t, 50, strings.Count(caller.Stacks(other), ".waitsElsewhere("))
	assert.Empty(t, caller.Stacks(nobody))
	close(leave)
	done.Wait()
	assert.Empty(t, caller.Stacks(id))
}

func TestStacksFallsBackToTracesWithoutTheirMiddle(t *testing.T) {
	id := caller.ID(new(object))
	entered, leave := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		deep(200, func() {
			caller.Within(id, func() {
				deep(200, func() { waitsInTheWindow(entered, leave) })
			})
		})
	})
	<-entered
	assert.Contains(t, caller.Stacks(id), "waitsInTheWindow")
	close(leave)
	done.Wait()
}

func TestInsideWorksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := caller.ID(new(object))
		caller.Within(id, func() { assert.True(t, caller.Inside(id)) })
		assert.False(t, caller.Inside(id))
	})
}

func TestWithinAllocatesNothing(t *testing.T) {
	id, calls := caller.ID(new(object)), 0
	fn := func() { calls++ }
	assert.Zero(t, testing.AllocsPerRun(100, func() { caller.Within(id, fn) }))
	out := func() { defer func() { _ = recover() }(); caller.Within(id, func() { panic(nil) }) }
	bare := func() { defer func() { _ = recover() }(); func() { panic(nil) }() }
	assert.Equal(t, testing.AllocsPerRun(100, bare), testing.AllocsPerRun(100, out), "a panic allocates, Within adds nothing")
	assert.Zero(t, testing.AllocsPerRun(100, func() { id = caller.ID(t) }))
}

func TestWhoIsOutsideIsToldSoWithoutAllocation(t *testing.T) {
	id := caller.ID(new(object))
	deep(100, func() {
		assert.Zero(t, testing.AllocsPerRun(100, func() { caller.Inside(id) }))
	})
}
