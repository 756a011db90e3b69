package handles_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

func TestWordsReadZeroUntilTheyAreCreated(t *testing.T) {
	for _, limit := range []uint32{0, 1, 4095, 4096, 4097, 100_000} {
		w := handles.NewWords(limit)
		for _, i := range []uint32{0, 1, limit, limit + 1, 1 << 20, math.MaxUint32} {
			assert.Zero(t, w.Get(i))
			assert.Nil(t, w.At(i))
		}
		w.Ensure(limit).Store(7)
		assert.EqualValues(t, 7, w.Get(limit))
		assert.Same(t, w.Ensure(limit), w.At(limit))
		assert.Zero(t, w.Get(math.MaxUint32))
		assert.Panics(t, func() { w.Ensure(limit + 1) }, "limit %d", limit)
	}
}

func TestOnePageWinsWhenManyCreateIt(t *testing.T) {
	for range 50 {
		w := handles.NewWords(1 << 13)
		var (
			all  [8]*atomic.Uint64
			wait sync.WaitGroup
		)
		for g := range all {
			wait.Go(func() {
				all[g] = w.Ensure(5000)
				all[g].Add(1)
			})
		}
		wait.Wait()
		assert.EqualValues(t, len(all), w.Get(5000))
		for _, at := range all {
			assert.Same(t, all[0], at)
		}
	}
}

// A directory that takes long to make, so that several goroutines are at it at once.
func TestOneDirectoryWinsWhenManyMakeIt(t *testing.T) {
	for range 20 {
		l := handles.NewLazyWords(1 << 28)
		var (
			all   [8]*atomic.Uint64
			wait  sync.WaitGroup
			start = make(chan struct{})
		)
		for g := range all {
			wait.Go(func() {
				<-start
				all[g] = l.Ensure(5000)
				all[g].Add(1)
			})
		}
		close(start)
		wait.Wait()
		assert.EqualValues(t, len(all), l.Get(5000))
		for _, at := range all {
			assert.Same(t, all[0], at)
		}
	}
}

// The directory of a lazy table is made once, however many goroutines need it first.
func TestLazyWordsAreMadeOnce(t *testing.T) {
	for range 50 {
		l := handles.NewLazyWords(10_000)
		require.Zero(t, l.Get(5))
		require.Nil(t, l.At(5))
		var all sync.WaitGroup
		for i := range uint32(8) {
			all.Go(func() { l.Ensure(5).Add(1 << (8 * i)) })
		}
		all.Wait()
		require.EqualValues(t, uint64(0x0101010101010101), l.Get(5))
		require.Same(t, l.At(5), l.Ensure(5))
		require.Panics(t, func() { l.Ensure(10_001) })
	}
}
