package pool_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/pool"
)

// A path keeps its points when it goes back, so that the next search does not allocate them again.
type path struct{ points [][2]int }

func (p *path) Reset() { p.points = p.points[:0] }

func Example() {
	paths, err := pool.New(pool.Config[path]{Name: "paths", Capacity: 2, Grow: pool.Fixed()})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, _ := paths.Take()
	a.Ptr().points = append(a.Ptr().points, [2]int{3, 4})

	// Around a call there is no guard to lose.
	_ = paths.With(func(p *path) error {
		fmt.Println("as new:", len(p.points) == 0)
		_, err := paths.Take()
		fmt.Println("exhausted:", errors.Is(err, pool.ErrExhausted))
		return nil
	})

	b := a // a copy ends with its original
	fmt.Println(a.Release())
	fmt.Println("released twice:", errors.Is(b.Release(), pool.ErrReleased))

	s := paths.Stats()
	fmt.Println(s.Cap, "=", s.InUse, "in use +", s.Free, "free, at most", s.Peak, "at once;", s.Refused, "refused")
	// Output:
	// as new: true
	// exhausted: true
	// <nil>
	// released twice: true
	// 2 = 0 in use + 2 free, at most 2 at once; 1 refused
}
