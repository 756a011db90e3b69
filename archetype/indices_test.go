package archetype_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIndicesAreThemselves(t *testing.T) {
	store, a := newPlainStore(t, 64)
	require.Empty(t, store.Indices(0))
	short := store.Indices(10)
	require.GreaterOrEqual(t, len(short), 10)
	for range 1000 {
		_, _, _ = a.Take()
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, index := range store.Indices(store.CacheCap()) {
				if index != uint32(i) {
					t.Errorf("%d at %d", index, i)
				}
			}
		})
	}
	wg.Wait()
	for i, index := range short {
		require.EqualValues(t, i, index, "what was handed out stays good")
	}
	long := store.Indices(store.CacheCap())
	require.GreaterOrEqual(t, len(long), 1000)
	require.Same(t, &long[0], &store.Indices(5)[0], "made once")
	require.NoError(t, store.Verify())
	long[3]++
	require.ErrorContains(t, store.Verify(), "cache indices")
	long[3]--
}
