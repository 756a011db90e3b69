package pool_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/airlock-ecs/airlock/pool"
)

func TestGrowIsWrittenAsInFilesAndTables(t *testing.T) {
	for _, c := range []struct {
		grow        pool.Grow
		file, table string
	}{
		{pool.Grow{}, "Double", "×2"},
		{pool.Double(), "Double", "×2"},
		{pool.Fixed(), "Fixed", "fix"},
		{pool.Additive(16), "Additive(16)", "+16"},
		{pool.Additive(0), "Additive(0)", "+0"},
		{pool.Additive(-3), "Additive(-3)", "-3"},
	} {
		assert.Equal(t, c.file, c.grow.String())
		assert.Equal(t, c.table, c.grow.Short())
	}
	same := map[pool.Grow]int{}
	for _, g := range []pool.Grow{{}, pool.Double(), pool.Additive(2), pool.Additive(2), pool.Additive(3), pool.Fixed()} {
		same[g]++
	}
	assert.Equal(t, map[pool.Grow]int{pool.Double(): 2, pool.Additive(2): 2, pool.Additive(3): 1, pool.Fixed(): 1}, same)
}

func TestGrowNeverWrapsAroundOrPassesItsLimit(t *testing.T) {
	const most = math.MaxInt
	for _, c := range []struct {
		grow                  pool.Grow
		capacity, limit, want int
	}{
		{pool.Double(), 0, 0, 8},
		{pool.Double(), 0, 5, 5},
		{pool.Double(), 1, 0, 2},
		{pool.Double(), 24, 40, 40},
		{pool.Double(), 40, 40, 40},
		{pool.Double(), 41, 40, 41},
		{pool.Double(), most/2 + 1, 0, most},
		{pool.Double(), most, 0, most},
		{pool.Additive(16), 0, 0, 16},
		{pool.Additive(16), 30, 40, 40},
		{pool.Additive(most), 1, 0, most},
		{pool.Additive(most), 1, 9, 9},
		{pool.Additive(0), 3, 0, 3},
		{pool.Additive(-1), 3, 0, 3},
		{pool.Fixed(), 0, 0, 0},
		{pool.Fixed(), 3, 9, 3},
	} {
		assert.Equal(t, c.want, c.grow.Next(c.capacity, c.limit), "%v from %d, at most %d", c.grow, c.capacity, c.limit)
	}
}
