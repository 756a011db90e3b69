package handles_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

// crowd is an owner and others on one space. Every handle that anybody claims is entered in a
// book, where an entry may be made once.
type crowd struct {
	t      *testing.T
	locals *handles.Locals
	book   []atomic.Uint32 // by index: a bit for each generation
	claims atomic.Int64
	kills  atomic.Int64
	last   uint32

	mu       sync.Mutex // guards what goes from the others to the owner; leaf lock
	killed   []handles.Local
	reserved []handles.Local

	elders []handles.Local // the owner's: spawned from reservations, to be killed in its next frame

	board [64]atomic.Uint64 // handles that anybody may try to kill
}

func newCrowd(t *testing.T, limit uint32) *crowd {
	return &crowd{t: t, last: 7, book: make([]atomic.Uint32, limit+1),
		locals: handles.NewLocals(handles.LocalsConfig{Limit: limit, GenerationBits: 3})}
}

func (c *crowd) claimed(h handles.Local) {
	bit := uint32(1) << h.Generation()
	if c.book[h.Index()].Or(bit)&bit != 0 {
		c.t.Errorf("%v was given out twice", h)
	}
	c.claims.Add(1)
	c.board[rand.N(len(c.board))].Store(uint64(h))
}

// kill ends h; whoever wins reports it to the owner, who frees the index.
func (c *crowd) kill(h handles.Local) {
	old, won := c.locals.Kill(h)
	if !won {
		return
	}
	assert.Equal(c.t, h.Generation(), old.Generation())
	c.kills.Add(1)
	c.mu.Lock()
	c.killed = append(c.killed, h)
	c.mu.Unlock()
}

// other reserves, kills and asks.
func (c *crowd) other(stop *atomic.Bool) {
	for !stop.Load() {
		switch rand.N(4) {
		case 0:
			if h, ok := c.locals.Reserve(); ok {
				c.claimed(h)
				c.mu.Lock()
				c.reserved = append(c.reserved, h)
				c.mu.Unlock()
			}
		case 1, 2:
			c.kill(handles.Local(c.board[rand.N(len(c.board))].Load()))
		case 3:
			h := handles.Local(c.board[rand.N(len(c.board))].Load())
			// A name on the board was given out. It may be spawned, or revived, between two looks.
			if status := c.locals.Status(h); h != 0 && status == handles.Invalid {
				c.t.Errorf("%v was given out and is %v", h, status)
			}
			_ = c.locals.Alive(h)
			runtime.Gosched()
		}
	}
}

// drain is the owner's: it frees what was killed, and spawns or takes back what was reserved.
func (c *crowd) drain(frame uint64) {
	c.mu.Lock()
	killed, reserved := c.killed, c.reserved
	c.killed, c.reserved = nil, nil
	c.mu.Unlock()
	for _, h := range killed {
		c.locals.Free(h, frame)
	}
	for _, h := range c.elders {
		c.kill(h)
	}
	c.elders = c.elders[:0]
	for i, h := range reserved {
		switch i % 4 {
		case 0:
			c.locals.Unissue(h)
		case 1:
			if c.locals.Spawned(h, 9) {
				c.elders = append(c.elders, h)
			}
		case 2:
			if c.locals.Spawned(h, 9) && c.locals.Unspawned(h) {
				c.locals.Unissue(h)
			}
		case 3:
			c.kill(h)
		}
	}
}

// own is a frame of the owner.
func (c *crowd) own(frame uint64) {
	c.drain(frame)
	var claims []handles.Local
	for range rand.N(40) {
		h, ok := c.locals.Issue(3)
		if !ok {
			break
		}
		c.claimed(h)
		claims = append(claims, h)
	}
	for i := len(claims) - 1; i >= 0; i-- {
		switch h := claims[i]; rand.N(4) {
		case 0:
			c.locals.Unissue(h)
		case 1:
			c.locals.Move(h, 4)
			c.locals.SetPlace(h, 5)
			c.kill(h)
		case 2:
			// Taking a kill back is only for who made it, before it is freed.
			if _, won := c.locals.Kill(h); won {
				assert.True(c.t, c.locals.Revive(h, 6))
			}
			c.kill(h)
		case 3:
			c.kill(h)
		}
	}
	if frame%2 == 0 {
		c.locals.ConfirmThrough(frame - 1)
	}
	if frame%3 == 0 {
		c.locals.Publish()
	}
}

// Owner and others use a space up, to the last generation of the last index: every name was
// given out exactly once, and every name has one end.
func TestACrowdUsesASpaceUp(t *testing.T) {
	for _, others := range []int{2, runtime.GOMAXPROCS(0), 16, 100} {
		t.Run(fmt.Sprintf("others=%d", others), func(t *testing.T) {
			limit := uint32(700)
			if testing.Short() {
				limit = 200
			}
			c := newCrowd(t, limit)
			var (
				stop atomic.Bool
				wait sync.WaitGroup
			)
			for range others {
				wait.Go(func() { c.other(&stop) })
			}
			frame := uint64(1)
			for c.locals.Stats().Retired < int(limit) && !t.Failed() {
				c.own(frame)
				frame++
				runtime.Gosched()
			}
			stop.Store(true)
			wait.Wait()
			assert.Equal(t, handles.SpaceStats{Retired: int(limit)}, c.locals.Stats())
			require.NoError(t, c.locals.Verify())
			assert.EqualValues(t, limit*c.last, c.claims.Load())
			for index := uint32(1); index <= limit; index++ {
				require.EqualValues(t, 0b1111_1110, c.book[index].Load(), "index %d", index)
			}
		})
	}
}

// Many kill the same handles while the owner moves them: each dies once.
func TestExactlyOneKillerWins(t *testing.T) {
	for _, killers := range []int{2, runtime.GOMAXPROCS(0), 100} {
		s := handles.NewLocals(handles.LocalsConfig{Limit: 64})
		for range 50 {
			names := fill(t, s)
			var (
				wins [64]atomic.Int32
				wait sync.WaitGroup
			)
			for range killers {
				wait.Go(func() {
					for i, h := range names {
						if old, won := s.Kill(h); won {
							wins[i].Add(1)
							if old.State() != handles.Alive || old.Place() != uint32(i) && old.Place() != uint32(i)+100 {
								t.Errorf("%v was %v at %d", h, old.State(), old.Place())
							}
						}
						if s.Alive(h) {
							t.Errorf("%v lives after its end", h)
						}
					}
				})
			}
			for i, h := range names {
				s.Move(h, uint32(i)+100)
			}
			wait.Wait()
			for i, h := range names {
				require.EqualValues(t, 1, wins[i].Load())
				require.False(t, s.Move(h, 1) || s.Unissue(h) || s.Alive(h))
				s.Free(h, 1)
			}
			require.Equal(t, 64, s.Confirm())
		}
		require.NoError(t, s.Verify())
	}
}

// Of the owner, who takes a claim back, and a killer exactly one wins.
func TestUnissueAndKillExcludeEachOther(t *testing.T) {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 4})
	for range 3000 {
		h, ok := s.Issue(1)
		require.True(t, ok)
		done := make(chan bool)
		go func() {
			_, won := s.Kill(h)
			done <- won
		}()
		undone := s.Unissue(h)
		killed := <-done
		require.NotEqual(t, undone, killed)
		if killed {
			s.Free(h, 1)
			s.Confirm()
		}
		require.False(t, s.Alive(h))
		require.Zero(t, s.Stats().Issued)
	}
	require.NoError(t, s.Verify())
}

// Reservers and the owner, over many segments of the line and many pages of fresh indices.
func TestReserversAndTheOwnerShareALargeSpace(t *testing.T) {
	const limit, perFrame = 40_000, 3000
	frames := 20
	if testing.Short() {
		frames = 5
	}
	s := handles.NewLocals(handles.LocalsConfig{Limit: limit})
	var (
		wait  sync.WaitGroup
		stop  atomic.Bool
		lanes [6]struct {
			mu    sync.Mutex // guards names; leaf lock
			names []handles.Local
		}
		seen = map[handles.Local]bool{}
	)
	for i := range lanes {
		lane := &lanes[i]
		wait.Go(func() {
			for !stop.Load() {
				if h, ok := s.Reserve(); ok {
					lane.mu.Lock()
					lane.names = append(lane.names, h)
					lane.mu.Unlock()
				}
				runtime.Gosched()
			}
		})
	}
	collect := func(frame uint64) {
		for i := range lanes {
			lanes[i].mu.Lock()
			names := lanes[i].names
			lanes[i].names = nil
			lanes[i].mu.Unlock()
			for _, h := range names {
				require.False(t, seen[h])
				seen[h] = true
				require.True(t, s.Spawned(h, 1))
				_, won := s.Kill(h)
				require.True(t, won)
				s.Free(h, frame)
			}
		}
	}
	for frame := range uint64(frames) {
		collect(frame)
		for range perFrame {
			h, ok := s.Issue(1)
			if !ok {
				break
			}
			require.False(t, seen[h])
			seen[h] = true
			_, won := s.Kill(h)
			require.True(t, won)
			s.Free(h, frame)
		}
		s.Confirm()
		if frame%2 == 0 {
			s.Publish()
		}
	}
	stop.Store(true)
	wait.Wait()
	collect(uint64(frames))
	require.NoError(t, s.Verify())
	assert.Zero(t, s.Stats().Issued)
}

// Reservers and the owner meet at the fresh indices of a space, down to the last one.
func TestFreshIndicesAreClaimedOnce(t *testing.T) {
	const limit = 9000
	for range 20 {
		s := handles.NewLocals(handles.LocalsConfig{Limit: limit})
		var (
			wait   sync.WaitGroup
			begin  = make(chan struct{})
			claims [4][]handles.Local
		)
		for i := range claims {
			claim := s.Reserve
			if i == 0 { // the owner
				claim = func() (handles.Local, bool) { return s.Issue(1) }
			}
			wait.Go(func() {
				<-begin
				for {
					h, ok := claim()
					if !ok {
						return
					}
					claims[i] = append(claims[i], h)
				}
			})
		}
		close(begin)
		wait.Wait()
		var seen [limit + 1]bool
		total := 0
		for i := range claims {
			for _, h := range claims[i] {
				if seen[h.Index()] || h.Generation() != 1 {
					t.Fatalf("%v was given out twice", h)
				}
				seen[h.Index()] = true
				total++
			}
		}
		require.Equal(t, limit, total)
		require.NoError(t, s.Verify())
		require.Equal(t, handles.SpaceStats{Issued: limit}, s.Stats())
	}
}

// A long walk over all steps, longer than what a model test or a fuzzer takes.
func TestALongWalkNeverAliases(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newSmallWorld(t)
		for i := range 600 {
			w.step(byte(random.Uint32()))
			if i%20 == 0 {
				w.check()
			}
		}
		w.check()
	}
}
