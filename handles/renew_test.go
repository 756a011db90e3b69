package handles_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// runOf are the names of a run.
func runOf(first handles.Local, n int) []handles.Local {
	hs := make([]handles.Local, n)
	for i := range hs {
		hs[i] = handles.NewLocal(first.Index()+uint32(i), first.Generation())
	}
	return hs
}

func TestARunHasConsecutiveIndicesAndPlaces(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 1 << 16})
	for range 3 {
		_, ok := l.Issue(7)
		require.True(t, ok)
	}
	first, ok := l.IssueRun(5000, 640)
	require.True(t, ok)
	require.Equal(t, uint32(4), first.Index())
	for i, h := range runOf(first, 5000) {
		require.True(t, l.Alive(h))
		require.Equal(t, uint32(640+i), l.Word(h.Index()).Place())
	}
	h, ok := l.Issue(7)
	require.True(t, ok)
	require.Equal(t, uint32(5004), h.Index())
	require.Equal(t, 5004, l.Stats().Issued)
	require.NoError(t, l.Verify())
}

func TestARunIsRefusedWhole(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 10, MostPending: 1})
	for _, n := range []int{0, -1, 11} {
		_, ok := l.IssueRun(n, 0)
		require.False(t, ok, n)
	}
	first, ok := l.IssueRun(8, 0)
	require.True(t, ok)
	_, ok = l.IssueRun(3, 0)
	require.False(t, ok)
	require.Equal(t, 8, l.Stats().Issued)
	for _, h := range runOf(first, 2) {
		_, ok = l.Kill(h)
		require.True(t, ok)
		l.Free(h, 1)
	}
	_, ok = l.IssueRun(2, 0)
	require.False(t, ok, "more are pending than may be")
	require.NoError(t, l.Verify())
}

// TestARunThatIsTakenBackIsClaimedAgain makes a run and takes it back more often than there are indices for.
func TestARunThatIsTakenBackIsClaimedAgain(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 100})
	for try := range 30 {
		first, ok := l.IssueRun(60, 0)
		require.True(t, ok)
		require.Equal(t, handles.NewLocal(1, uint32(try+1)), first)
		hs := runOf(first, 60)
		for i := len(hs) - 1; i >= 0; i-- {
			require.True(t, l.Unissue(hs[i]))
		}
		require.NoError(t, l.Verify())
	}
	one, ok := l.Issue(0)
	require.True(t, ok)
	require.Equal(t, uint32(1), one.Index())
	first, ok := l.IssueRun(40, 0)
	require.True(t, ok)
	require.Equal(t, uint32(2), first.Index(), "those taken back, as far as they go on")
	require.NoError(t, l.Verify())
}

func TestARunPassesOverNamesThatWereClaimed(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 100})
	require.True(t, l.Claim(handles.NewLocal(20, 3), handles.Alive, 5))
	first, ok := l.IssueRun(30, 0)
	require.True(t, ok)
	require.Equal(t, uint32(21), first.Index())
	h, ok := l.Issue(0)
	require.True(t, ok)
	require.Less(t, h.Index(), uint32(20), "those before it are not lost")
	require.NoError(t, l.Verify())
}

func TestANameIsSucceededByLaterOnesOnly(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 10, GenerationBits: 3})
	h, ok := l.IssueRun(2, 64)
	require.True(t, ok)
	_, ok = l.Renew(h, 0, 64)
	require.False(t, ok, "is alive")
	_, ok = l.Kill(h)
	require.True(t, ok)
	next, ok := l.Renew(h, 0, 64)
	require.True(t, ok)
	require.Equal(t, handles.NewLocal(h.Index(), 2), next)
	require.False(t, l.Alive(h))
	require.Equal(t, handles.Stale, l.Status(h))
	require.Equal(t, handles.MakeWord(2, handles.Alive, 64), l.Word(h.Index()))

	_, ok = l.Kill(next)
	require.True(t, ok)
	require.True(t, l.Unrenew(next, 1))
	require.False(t, l.Unrenew(next, 1), "is not the name any more")
	require.True(t, l.Revive(h, 64))

	_, ok = l.Kill(h)
	require.True(t, ok)
	next, ok = l.Renew(h, 5, 64)
	require.True(t, ok)
	require.Equal(t, uint32(6), next.Generation(), "after those that are not to be had again")
	_, ok = l.Kill(next)
	require.True(t, ok)
	_, ok = l.Renew(next, 7, 64)
	require.False(t, ok, "there is none after it")
	last, ok := l.Renew(next, 0, 64)
	require.True(t, ok)
	_, ok = l.Kill(last)
	require.True(t, ok)
	_, ok = l.Renew(last, 0, 64)
	require.False(t, ok)
	l.Free(last, 1)
	require.Equal(t, handles.SpaceStats{Issued: 1, Retired: 1}, l.Stats())
	require.NoError(t, l.Verify())
}

func TestSkippedNamesAreNeverIssued(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 1, GenerationBits: 3})
	h, ok := l.IssueRun(1, 0)
	require.True(t, ok)
	require.Equal(t, h, l.Skip(h, 1))
	require.Equal(t, h, l.Skip(h, 8), "there is no such name")
	skipped := l.Skip(h, 4)
	require.Equal(t, handles.NewLocal(1, 4), skipped)
	require.Equal(t, skipped, l.Skip(skipped, 2))
	require.True(t, l.Unissue(skipped))
	require.Equal(t, handles.SpaceStats{}, l.Stats())
	next, ok := l.Issue(0)
	require.True(t, ok)
	require.Equal(t, handles.NewLocal(1, 5), next)

	_, ok = l.Kill(next)
	require.True(t, ok)
	last := l.Skip(next, 7)
	require.Equal(t, uint32(7), last.Generation(), "dying, too")
	l.Free(last, 1)
	require.Equal(t, 1, l.Stats().Retired)
	require.NoError(t, l.Verify())
}

func TestOnlyTheCurrentNameIsSkipped(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 2})
	never := handles.NewLocal(2, 1)
	require.Equal(t, never, l.Skip(never, 3), "its index was never claimed")
	h, ok := l.IssueRun(1, 0)
	require.True(t, ok)
	require.True(t, handles.Succeed(l.WordAt(h.Index()), h, 4, 0))
	l.Succeeded(1)
	before, word := l.Stats(), l.Word(h.Index())
	for _, other := range []handles.Local{h, handles.NewLocal(h.Index(), 3), handles.NewLocal(h.Index(), 6)} {
		require.Equal(t, other, l.Skip(other, 9), "%v is not the name", other)
	}
	require.Equal(t, before, l.Stats())
	require.Equal(t, word, l.Word(h.Index()))
	require.NoError(t, l.Verify())
}

// TestARunThatOthersReserveFrom has somebody reserve while names that were taken back are claimed again as a run, which takes
// a while: it is the run or another one, and whoever reserved keeps the name.
func TestARunThatOthersReserveFrom(t *testing.T) {
	const n = 4096
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	l := handles.NewLocals(handles.LocalsConfig{Limit: uint32(n * (rounds + 2))})
	var turn atomic.Int64
	done := make(chan handles.Local)
	go func() {
		for round := range int64(rounds) {
			for turn.Load() <= round {
				runtime.Gosched()
			}
			h, _ := l.Reserve()
			done <- h
		}
	}()
	first, ok := l.IssueRun(n, 0)
	require.True(t, ok)
	reserved := map[handles.Local]bool{}
	for round := range rounds {
		hs := runOf(first, n)
		for i := n - 1; i >= 0; i-- {
			if !l.Unissue(hs[i]) {
				t.Fatalf("round %d: %v is not taken back", round, hs[i])
			}
		}
		turn.Add(1)
		first, ok = l.IssueRun(n, 0)
		h := <-done
		require.True(t, ok, "round %d", round)
		require.False(t, h == 0 || reserved[h])
		reserved[h] = true
		require.Equal(t, handles.NotSpawned, l.Status(h))
		for _, own := range runOf(first, n) {
			if own == h || !l.Alive(own) {
				t.Fatalf("round %d: %v, alive %t, beside %v", round, own, l.Alive(own), h)
			}
		}
	}
	require.Equal(t, n+rounds, l.Stats().Issued)
	require.NoError(t, l.Verify())
}

// TestRunsAgreeWithPlainSlices renews, succeeds and takes back the names of runs beside ordinary claims.
func TestRunsAgreeWithPlainSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := handles.NewLocals(handles.LocalsConfig{Limit: 200, GenerationBits: 4})
		var names []handles.Local // of runs, alive
		dead, plain := map[handles.Local]bool{}, map[handles.Local]bool{}
		retired := 0
		pick := func(t *rapid.T) int {
			if len(names) == 0 {
				t.Skip("no run")
			}
			return rapid.IntRange(0, len(names)-1).Draw(t, "name")
		}
		t.Repeat(map[string]func(*rapid.T){
			"run": func(t *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(t, "n")
				first, ok := l.IssueRun(n, 1000)
				if !ok {
					return
				}
				for _, h := range runOf(first, n) {
					require.False(t, dead[h])
					require.NotContains(t, plain, h)
				}
				if rapid.Bool().Draw(t, "taken back") {
					hs := runOf(first, n)
					for i := n - 1; i >= 0; i-- {
						require.True(t, l.Unissue(hs[i]))
						dead[hs[i]] = true
					}
					return
				}
				names = append(names, runOf(first, n)...)
			},
			"renew": func(t *rapid.T) {
				i := pick(t)
				after := rapid.Uint32Range(0, 15).Draw(t, "after")
				h := names[i]
				_, won := l.Kill(h)
				require.True(t, won)
				dead[h] = true
				next, ok := l.Renew(h, after, 7)
				require.Equal(t, max(h.Generation(), after) < 15, ok)
				if !ok {
					l.Free(l.Skip(h, 15), 1)
					names = append(names[:i], names[i+1:]...)
					retired++
					return
				}
				require.Equal(t, handles.NewLocal(h.Index(), max(h.Generation(), after)+1), next)
				names[i] = next
			},
			"succeed": func(t *rapid.T) {
				i := pick(t)
				h := names[i]
				word := &l.WordsFrom(h.Index())[0]
				place := l.Word(h.Index()).Place()
				require.False(t, handles.Succeed(word, h, h.Generation()+1, place+1), "is somewhere else")
				if h.Generation() == 15 {
					return
				}
				require.True(t, handles.Succeed(word, h, h.Generation()+1, place))
				l.Succeeded(1)
				require.False(t, handles.Succeed(word, h, h.Generation()+1, place), "is dead")
				dead[h] = true
				names[i] = handles.NewLocal(h.Index(), h.Generation()+1)
			},
			"issue": func(t *rapid.T) {
				if h, ok := l.Issue(3); ok {
					require.False(t, dead[h])
					plain[h] = true
				}
			},
			"reserve": func(t *rapid.T) {
				if h, ok := l.Reserve(); ok {
					require.False(t, dead[h])
					plain[h] = true
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, l.Verify())
				for _, h := range names {
					require.True(t, l.Alive(h))
				}
				for h := range dead {
					require.False(t, l.Alive(h))
				}
				s := l.Stats()
				require.Equal(t, len(names)+len(plain), s.Issued)
				require.Equal(t, retired, s.Retired)
			},
		})
	})
}

// TestRunsAreWholeWhileOthersReserve has goroutines reserve while the owner makes runs, takes them back, and kills and
// succeeds names that others kill at the same time.
func TestRunsAreWholeWhileOthersReserve(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 1 << 16})
	names := make(chan handles.Local, 1024)
	var wg sync.WaitGroup
	killed := make([]int, 4)
	for g := range killed {
		wg.Go(func() {
			for h := range names {
				_, _ = l.Reserve()
				if _, won := l.Kill(h); won {
					killed[g]++
				}
			}
		})
	}
	succeeded, runs := 0, 0
	for range 200 {
		first, ok := l.IssueRun(20, 0)
		require.True(t, ok)
		runs++
		hs := runOf(first, 20)
		for i, h := range hs {
			names <- h
			if handles.Succeed(&l.WordsFrom(h.Index())[0], h, h.Generation()+1, uint32(i)) {
				l.Succeeded(1)
				succeeded++
				require.True(t, l.Alive(handles.NewLocal(h.Index(), h.Generation()+1)))
			}
			require.False(t, l.Alive(h))
		}
	}
	close(names)
	wg.Wait()
	total := 0
	for _, n := range killed {
		total += n
	}
	require.Equal(t, runs*20, succeeded+total, "each name ends once")
	require.NoError(t, l.Verify())
}
