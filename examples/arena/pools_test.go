package arena

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/pool"
)

// poolFile writes a file and returns its path.
func poolFile(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.pools.ron")
	require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
	return path
}

func TestThePoolFileOfTheRepositoryIsTheOneThatIsBuiltIn(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", PoolFile))
	require.NoError(t, err)
	assert.Equal(t, string(src), string(builtinPools))
}

func TestArrowsAndSparksComeFromPools(t *testing.T) {
	s := newStage(t)
	require.NoError(t, s.declarePools(""))
	assert.Equal(t, " Arrow 0/64 Grunt 0/24 HitSpark 0/32", s.poolsLine())
	bob, ann := s.player("bob", Position{50, 50}), s.player("ann", Position{80, 50})
	s.fire(bob, 1, 0)
	assert.Equal(t, " Arrow 1/64 Grunt 0/24 HitSpark 0/32", s.poolsLine())
	for s.tally.hits.Load() == 0 {
		s.step(1)
	}
	assert.Equal(t, " Arrow 1/64 Grunt 0/24 HitSpark 1/32", s.poolsLine(), "the arrow's slot is idle in the next frame")
	s.step(1)
	assert.Equal(t, " Arrow 0/64 Grunt 0/24 HitSpark 1/32", s.poolsLine())
	s.step(int(sparkLife*60) + 1)
	assert.Equal(t, " Arrow 0/64 Grunt 0/24 HitSpark 0/32", s.poolsLine())
	assert.True(t, s.reg.Alive(ann))
	assert.Equal(t, 2, s.reg.Stats().Live)
}

func TestSparksAreReadyForEachArrow(t *testing.T) {
	s := newStage(t)
	require.NoError(t, s.declarePools(poolFile(t, `Pools([ Pool( prefab: "Arrow", capacity: 1 ), Pool( prefab: "HitSpark", capacity: 0, grow: Additive(2) ) ])`)))
	bob, _ := s.player("bob", Position{50, 50}), s.player("ann", Position{80, 50})
	for range 3 {
		s.fire(bob, 1, 0)
	}
	assert.Equal(t, " Arrow 3/4 HitSpark 0/4", s.poolsLine())
	s.step(40)
	assert.EqualValues(t, 3, s.tally.hits.Load())
	assert.EqualValues(t, 3, s.tally.sparks.Load())

	few := newStage(t)
	require.NoError(t, few.declarePools(poolFile(t, `Pools([ Pool( prefab: "HitSpark", capacity: 1, grow: Fixed ) ])`)))
	bob, _ = few.player("bob", Position{50, 50}), few.player("ann", Position{56, 50})
	for range 3 {
		few.fire(bob, 1, 0)
	}
	few.step(20)
	assert.EqualValues(t, 3, few.tally.hits.Load())
	assert.EqualValues(t, 1, few.tally.sparks.Load(), "the other hits do not show")
}

func TestAJournalWithPoolsThatGrowIsReplayed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	s := start(t, Config{Bots: 24, Rate: 200, Journal: dir,
		Pools: poolFile(t, `Pools([ Pool( prefab: "Arrow", capacity: 2, grow: Additive(5) ), Pool( prefab: "HitSpark", capacity: 1, prewarm: true ) ])`)})
	c := s.enter(t)
	c.lookUntil(func(_, arrows int) bool { return arrows > 30 && s.tally.sparks.Load() > 0 })
	arrows, _ := s.world.prefabs.StatsOf(prefabArrow)
	require.Greater(t, arrows.Grown, 5)
	sum := s.end(t)
	frame, err := Replay(os.DirFS(dir))
	require.NoError(t, err)
	require.EqualValues(t, sum.Frames, frame)
}

func TestAFullPoolIsAnsweredAndCounted(t *testing.T) {
	s := start(t, Config{Pools: poolFile(t, `Pools([ Pool( prefab: "Arrow", capacity: 1, grow: Fixed ) ])`)})
	c := s.enter(t)
	require.Contains(t, c.ask("join bob"), "ok")
	answer := "ok"
	for _, way := range []string{"1 1", "-1 -1", "1 -1", "-1 1", "1 1"} { // some leave the field at once
		if answer == "ok" {
			answer = c.ask("fire " + way)
		}
	}
	require.Equal(t, "error: the arena is full, try again", answer)
	arrows, _ := s.world.prefabs.StatsOf(prefabArrow)
	require.Equal(t, 1, arrows.Refused)
}

func TestPoolFilesThatTheArenaCannotUse(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"): "there is no pool file",
		dir:                           "is no regular file",
		poolFile(t, `Pools([ Pool( prefab: "Arrow", capacity: 70000, prewarm: true ) ])`): "cannot be made",
	} {
		_, err := New(Config{Pools: path})
		require.ErrorIs(t, err, ErrConfig, path)
		require.ErrorContains(t, err, want)
		assertSentence(t, err.Error())
	}
	_, err := New(Config{Pools: poolFile(t, "Pools([\n")})
	require.ErrorIs(t, err, pool.ErrFile)
}
