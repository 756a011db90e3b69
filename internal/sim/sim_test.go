package sim_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/sim"
)

// within is how many seeds may be needed to find the mistake of a toy.
const within = 200

var mistakes = map[mistake]error{
	lostWakeUp: sim.ErrNobody, neverAtAll: sim.ErrNobody,
	doubleReply: errToy, cancelledAndRan: errToy, answerAfterReturn: errToy,
}

func TestEveryMistakeIsFoundWithinSomeSeeds(t *testing.T) {
	for m, kind := range mistakes {
		t.Run(string(m), func(t *testing.T) {
			for first := range uint64(20) { // wherever a run begins
				seed := first * 10_000
				for {
					_, err := play(m, sim.BySeed(seed))
					if err != nil {
						require.ErrorIs(t, err, kind)
						again, same := play(m, sim.BySeed(seed))
						require.EqualError(t, same, err.Error(), "a seed repeats it")
						require.NotZero(t, again.Fingerprint())
						break
					}
					seed++
					require.Less(t, seed, first*10_000+within)
				}
			}
		})
	}
}

func TestEveryMistakeIsFoundByFewPreemptions(t *testing.T) {
	for m, kind := range mistakes {
		t.Run(string(m), func(t *testing.T) {
			x := sim.NewExplorer(1)
			_, err := play(m, x)
			for err == nil && x.More() {
				_, err = play(m, x)
			}
			require.ErrorIs(t, err, kind)
		})
	}
}

func TestAToyWithoutMistakesPasses(t *testing.T) {
	for seed := range uint64(2000) {
		_, err := play(none, sim.BySeed(seed))
		require.NoError(t, err, "seed %d", seed)
	}
	runs := 0
	for p := range 4 {
		x := sim.NewExplorer(p)
		seen := map[uint64]bool{}
		for {
			y, err := play(none, x)
			require.NoError(t, err)
			require.False(t, seen[y.Fingerprint()], "no schedule comes twice")
			seen[y.Fingerprint()] = true
			if !x.More() {
				break
			}
		}
		require.False(t, x.Astray())
		require.Equal(t, x.Runs(), len(seen))
		require.Greater(t, x.Runs(), runs, "another preemption, more schedules")
		runs = x.Runs()
	}
}

// Two actors with n places each have (2n)!/(n!)² orders: without a bound the explorer finds all of them.
func TestTheExplorerFindsEveryOrder(t *testing.T) {
	orders := map[string]bool{}
	x := sim.NewExplorer(10)
	for {
		order := ""
		s := sim.New(x, 100)
		for _, name := range []string{"a", "b"} {
			s.Go(name, func() {
				for i := range 3 {
					order += name
					if i < 2 {
						s.At(sim.Name("between"))
					}
				}
			})
		}
		require.NoError(t, s.Run())
		orders[order] = true
		if !x.More() {
			break
		}
	}
	assert.Len(t, orders, 20)
	assert.Equal(t, 20, x.Runs())
}

func TestAnExplorerNoticesAProgramThatGoesAstray(t *testing.T) {
	x := sim.NewExplorer(2)
	for i := 0; ; i++ {
		s := sim.New(x, 100)
		for range 2 + i%2 {
			s.Go("actor", func() { s.At(sim.Name("place")) })
		}
		require.NoError(t, s.Run())
		if !x.More() || x.Astray() {
			break
		}
	}
	assert.True(t, x.Astray())
}

// crowd is actors that meet in every way there is; what it returns is the order in which they did.
func crowd(s *sim.Sim) *[]string {
	order := new([]string)
	tokens := 0
	for i := range 4 {
		s.Go(fmt.Sprint("actor ", i), func() {
			for n := range 20 {
				switch s.Choose(4) {
				case 0:
					tokens++
				case 1:
					s.At(sim.Name("passing"))
				case 2:
					s.Fork(sim.Name("child"))
					go func() {
						id := s.Begin()
						defer func() { s.End(id, recover()) }()
						s.At(sim.Name("growing up"))
						tokens++
					}()
				case 3:
					which := s.Wait(sim.Name("waiting"), func() bool { return true }, func() bool { return tokens > 0 })
					tokens -= which
				}
				*order = append(*order, fmt.Sprint(i, n, tokens))
			}
			if i == 2 {
				runtime.Goexit()
			}
		})
	}
	return order
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	prints := map[uint64]bool{}
	for seed := range uint64(200) {
		first := sim.New(sim.BySeed(seed), 10_000)
		a := crowd(first)
		require.NoError(t, first.Run())
		second := sim.New(sim.BySeed(seed), 10_000)
		b := crowd(second)
		require.NoError(t, second.Run())
		require.Equal(t, *a, *b)
		require.Equal(t, first.Fingerprint(), second.Fingerprint())
		require.Equal(t, first.Steps(), second.Steps())
		prints[first.Fingerprint()] = true
	}
	assert.Len(t, prints, 200, "and another seed another one")
}

func TestAFailureEndsEverybodyAndSaysWhoStoodWhere(t *testing.T) {
	before := runtime.NumGoroutine()
	wrong := errors.New("wrong")
	for name, fail := range map[string]func(*sim.Sim){
		"told":    func(s *sim.Sim) { s.Fail(wrong) },
		"panic":   func(*sim.Sim) { panic(wrong) },
		"blocked": func(s *sim.Sim) { s.Wait(sim.Name("for ever"), func() bool { return false }) },
		"endless": func(s *sim.Sim) {
			for {
				s.At(sim.Name("round"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sim.New(sim.NewRandom(1, 1), 1000)
			inside, cleaned := 0, 0
			for range 3 {
				s.Go("bystander", func() {
					defer func() {
						s.At(sim.Name("cleaning")) // passes
						cleaned++
					}()
					inside++
					s.Wait(sim.Name("at the window"), func() bool { return false })
				})
			}
			s.Fork(sim.Name("child"))
			go func() {
				id := s.Begin()
				defer func() { s.End(id, recover()) }()
				s.Wait(sim.Name("at home"), func() bool { return false })
			}()
			s.Go("culprit", func() {
				s.Wait(sim.Name("here"), func() bool { return inside == 3 })
				fail(s)
			})
			err := s.Run()
			var failure *sim.Failure
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, 3, cleaned)
			assert.Contains(t, err.Error(), "bystander#1: at the window, waits")
			assert.Contains(t, err.Error(), "culprit#5: ")
			switch name {
			case "told":
				assert.ErrorIs(t, err, wrong)
			case "panic":
				assert.Contains(t, err.Error(), "culprit panicked: wrong")
			case "blocked":
				assert.ErrorIs(t, err, sim.ErrNobody)
			case "endless":
				assert.ErrorIs(t, err, sim.ErrSteps)
			}
		})
	}
	for runtime.NumGoroutine() > before { // the last ones are on their way out
		runtime.Gosched()
	}
}

func BenchmarkStep(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, strategy := range map[string]sim.Strategy{
		"random": sim.NewRandom(1, 1), "stay=8": sim.NewRandom(1, 8), "priorities": sim.NewPriorities(1, 2, 64),
	} {
		b.Run(name, func(b *testing.B) {
			s := sim.New(strategy, b.N*5)
			for range 4 {
				s.Go("actor", func() {
					for range b.N / 4 {
						s.At(sim.Name("place"))
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := s.Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
