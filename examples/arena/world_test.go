package arena

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// stage is a world without a server, moved on a frame at a time.
type stage struct {
	*world
	t      *testing.T
	engine *logic.Engine
}

func newStage(t *testing.T) *stage {
	t.Helper()
	reg, err := registry.New(registry.Config{})
	require.NoError(t, err)
	tally := new(tally)
	engine, err := logic.New(reg, logic.Config{Rate: 60, OnError: tally.check})
	require.NoError(t, err)
	w, err := newWorld(reg, tally, 1)
	require.NoError(t, err)
	require.NoError(t, w.play(engine))
	t.Cleanup(func() {
		require.NoError(t, engine.Stop())
		_, err := tally.audit(reg, 0, 0)
		require.NoError(t, err)
	})
	return &stage{w, t, engine}
}

func (s *stage) step(frames int) {
	s.t.Helper()
	for range frames {
		require.NoError(s.t, s.engine.Step())
	}
}

// do runs fn in the window of the next frame.
func (s *stage) do(fn func(*registry.Window) error) {
	s.t.Helper()
	ticket, err := s.engine.Enqueue(fn)
	require.NoError(s.t, err)
	s.step(1)
	<-ticket.Done()
	require.NoError(s.t, ticket.Err())
}

func (s *stage) player(name string, at Position) (id handles.Local) {
	s.t.Helper()
	s.do(func(w *registry.Window) (err error) {
		if id, _, _, err = s.spawnPlayer(w, name); err != nil {
			return err
		}
		return registry.Set(w, id, at)
	})
	s.tally.joined.Inc()
	return id
}

func (s *stage) fire(who handles.Local, dx, dy float64) {
	s.t.Helper()
	s.do(func(w *registry.Window) error { return s.spawnArrow(w, who, dx, dy) })
	s.tally.fired.Inc()
}

func (s *stage) see() *scene {
	s.t.Helper()
	asked := make(chan *scene)
	go func() {
		seen, err := s.lookout.look(context.Background())
		assert.NoError(s.t, err)
		asked <- seen
	}()
	for {
		s.step(1) // until one of the frames ended after the goroutine asked
		select {
		case seen := <-asked:
			return seen
		default:
		}
	}
}

func (s *stage) sighting(id handles.Local) sighting {
	s.t.Helper()
	for _, p := range s.see().players {
		if p.id == id {
			return p
		}
	}
	s.t.Fatal("not seen")
	return sighting{}
}

func TestAnArrowThatHitsWoundsAndTheThirdHitScores(t *testing.T) {
	s := newStage(t)
	bob, ann := s.player("bob", Position{50, 50}), s.player("ann", Position{80, 50})
	for n := 1; n <= fullHealth; n++ {
		s.fire(bob, 1, 0)
		s.step(40) // 30 units at 60 units a second, and some
		assert.EqualValues(t, n, s.tally.hits.Load())
	}
	got := s.sighting(ann)
	assert.Equal(t, Fighter{nameOf("ann"), fullHealth, 0, 1}, got.Fighter)
	assert.NotEqual(t, Position{80, 50}, got.at, "a killed player appears somewhere else")
	assert.Equal(t, Fighter{nameOf("bob"), fullHealth, 1, 0}, s.sighting(bob).Fighter)
	assert.EqualValues(t, 1, s.tally.kills.Load())
	assert.EqualValues(t, 3, s.tally.destroyed.Load(), "the arrows are gone")
}

func TestAnArrowFallsWhenItLeavesTheFieldOrIsOld(t *testing.T) {
	s := newStage(t)
	edge := s.player("edge", Position{199, 100})
	s.fire(edge, 1, 0)
	s.step(2)
	assert.EqualValues(t, 1, s.tally.destroyed.Load(), "one unit to the border is one frame")

	far := s.player("far", Position{1, 1})
	s.fire(far, 1, 0)
	s.step(int(arrowLife*60) - 2)
	assert.EqualValues(t, 1, s.tally.destroyed.Load(), "still young")
	s.step(3)
	assert.EqualValues(t, 2, s.tally.destroyed.Load())
	assert.Zero(t, s.tally.hits.Load(), "nobody hits himself")
}

func TestAnArrowFliesAtOneSpeedHoweverItWasAimed(t *testing.T) {
	s := newStage(t)
	bob, ann := s.player("bob", Position{50, 50}), s.player("ann", Position{50, 150})
	for i, aim := range [][2]float64{{0, 1}, {0, maxNumber}, {0, 5e-324}, {1e-320, 1e-300}} {
		s.fire(bob, aim[0], aim[1])
		s.step(int(95.0 / arrowSpeed * 60))
		assert.EqualValues(t, i, s.tally.hits.Load(), "not yet: %v", aim)
		s.step(int(5.0/arrowSpeed*60) + 1)
		assert.EqualValues(t, i+1, s.tally.hits.Load(), "%v", aim)
		s.do(func(w *registry.Window) error { return registry.Set(w, ann, Position{50, 150}) })
	}
}

func TestAnArrowOutlivesItsShooter(t *testing.T) {
	s := newStage(t)
	bob, ann := s.player("bob", Position{50, 50}), s.player("ann", Position{80, 50})
	for range fullHealth {
		s.fire(bob, 1, 0)
	}
	require.NoError(t, s.reg.Destroy(bob))
	s.step(40)
	assert.EqualValues(t, 1, s.tally.kills.Load())
	assert.EqualValues(t, 1, s.sighting(ann).Deaths)
}

func TestMovesStayOnTheFieldAndOutliveNobody(t *testing.T) {
	s := newStage(t)
	bob, ann := s.player("bob", Position{1, 199}), s.player("ann", Position{50, 50})
	require.NoError(t, s.steer(step{bob, -5, 5}))
	require.NoError(t, s.steer(step{ann, 5, 5}))
	s.step(1)
	assert.Equal(t, Position{0, 200}, s.sighting(bob).at)
	assert.Equal(t, Position{55, 55}, s.sighting(ann).at)
	require.NoError(t, s.steer(step{ann, 5, 5}))
	require.NoError(t, s.reg.Destroy(ann))
	s.step(1)
	assert.Len(t, s.see().players, 1)
}

func TestLookShowsTheNearestFirst(t *testing.T) {
	s := newStage(t)
	me := s.player("me", Position{10, 10})
	for i := range nearest + 2 {
		s.player(string(rune('a'+i)), Position{float32(100 - i), 10})
	}
	seen := s.see()
	assert.Len(t, seen.players, nearest+3)
	text := seen.describe(me)
	assert.Regexp(t, `^ok frame \d+, 13 players, 0 arrows, 11 lines follow
you    N0:1\.1 +me +at  10\.0  10\.0  health 3  score 0  deaths 0
player N0:13\.1 +l +at  89\.0  10\.0  health 3  score 0  deaths 0  fire 79\.0 0\.0
player N0:12\.1 +k `, text)
	assert.NotContains(t, text, " a ", "the farthest is left out")
}

func TestASteadyFrameAllocatesNothing(t *testing.T) {
	s := newStage(t)
	for i := range 20 {
		s.player("p", Position{float32(10 * i), 100})
	}
	// Warm: what a world keeps has grown, and the arrows of the frames that count are in flight.
	first := s.player("shooter", Position{0, 0})
	for range 20 {
		s.fire(first, 1, 0)
	}
	s.step(10)
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		if err := s.engine.Step(); err != nil {
			t.Error(err)
		}
	}))
	assert.EqualValues(t, 41, s.reg.Stats().Live)
}

func TestAnArrowTouchesWhatItsWayPasses(t *testing.T) {
	for _, c := range []struct {
		from, to Position
		want     bool
	}{
		{Position{0, 50}, Position{100, 50}, true},        // straight through, however long the step
		{Position{0, 52}, Position{100, 52}, true},        // just
		{Position{0, 52.01}, Position{100, 52.01}, false}, // just not
		{Position{0, 50}, Position{47.9, 50}, false},      // ends before
		{Position{52.1, 50}, Position{100, 50}, false},    // begins behind
		{Position{50, 50}, Position{50, 50}, true},        // stands
		{Position{53, 50}, Position{53, 50}, false},
	} {
		assert.Equal(t, c.want, touches(Position{50, 50}, c.from, c.to), "%v", c)
	}
}
