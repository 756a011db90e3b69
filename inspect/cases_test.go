package inspect_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// plausible checks sums that hold in every copy of the figures.
func plausible(t *testing.T, s *stats) {
	r := &s.Registry
	assert.LessOrEqual(t, r.Live+r.Idle+r.Tombstoned, r.Allocated)
	for _, n := range []int{r.Live, r.Idle, r.Tombstoned, r.Inactive} {
		assert.GreaterOrEqual(t, n, 0)
	}
	live := 0
	for _, a := range r.Archetypes {
		assert.LessOrEqual(t, a.Live+a.Idle, a.Allocated)
		assert.True(t, a.Fragmentation >= 0 && a.Fragmentation <= 1, a.Fragmentation)
		live += a.Live
	}
	assert.Equal(t, r.Live, live)
	for _, p := range s.Pools {
		assert.Equal(t, p.Cap, p.InUse+p.Free, p.Name)
		assert.True(t, p.InUse >= 0 && p.Free >= 0 && p.InUse <= p.Peak, p)
	}
	for _, space := range s.Spaces {
		assert.True(t, space.Issued >= 0 && space.Free >= 0 && space.Pending >= 0 && space.Retired >= 0, space)
	}
}

func TestInspect1NoImpossibleRow(t *testing.T) { t.Run("inspect-1", noImpossibleRow) }

func noImpossibleRow(t *testing.T) {
	things, err := pool.New(pool.Config[int]{Name: "ints", Capacity: 4, Reset: func(*int) {}})
	require.NoError(t, err)
	k := newWorld(t, registry.Config{}, inspect.Config{Pools: []pool.Source{things}})
	k.step(func(w *registry.Window) { require.NoError(t, k.prefabs.Declare(w, "Gull", 32, pool.Double(), true)) })
	k.run()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				thing, err := things.Take()
				if !assert.NoError(t, err) {
					return
				}
				err = k.e.Spawn(ctx, func(w *registry.Window) error {
					a, err := k.ships.Spawn(w, ship{})
					if err != nil {
						return err
					}
					b, err := k.prefabs.Spawn(w, "Gull")
					if err != nil {
						return err
					}
					if i%2 == 0 {
						return w.Destroy(b)
					}
					assert.NoError(t, k.r.Destroy(b))
					return w.Destroy(a)
				})
				if ctx.Err() == nil {
					assert.NoError(t, err)
				}
				assert.NoError(t, thing.Release())
			}
		})
	}
	events := k.events(ctx, "")
	for range 30 {
		s := k.stats()
		plausible(t, &s)
		status, text := k.get("/metrics")
		require.Equal(t, http.StatusOK, status)
		m := parse(t, text)
		assert.LessOrEqual(t, m.value("airlock_live_entities")+m.value("airlock_entities", "state", "tombstoned"), m.value("airlock_allocated_slots"))
		for _, p := range m["airlock_pool_cap"] {
			assert.Equal(t, p.value, m.value("airlock_pool_in_use", p.pairs()...)+m.value("airlock_pool_free", p.pairs()...))
		}
		for name, samples := range m {
			for _, one := range samples {
				assert.GreaterOrEqual(t, one.value, 0.0, name)
			}
		}
		select {
		case e := <-events:
			if e.name == "stats" {
				var s stats
				require.NoError(t, json.Unmarshal([]byte(e.data), &s))
				plausible(t, &s)
			}
		default:
		}
	}
	stop()
	all.Wait()
}

func TestInspect2TheLastFiguresWhenLogicHangs(t *testing.T) {
	t.Run("inspect-2", func(t *testing.T) { synctest.Test(t, theLastFiguresWhenLogicHangs) })
}

func theLastFiguresWhenLogicHangs(t *testing.T) {
	k := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{})
	// quick asks for everything that there is; each answer comes within a second.
	quick := func() (s stats) {
		t.Helper()
		for _, path := range []string{"/", "/metrics", "/world.json", "/chunks.json?archetype=0", "/entity.json?handle=L1.1", "/history.json"} {
			began := time.Now()
			status, _ := k.get(path)
			assert.Equal(t, http.StatusOK, status, path)
			assert.Less(t, time.Since(began), time.Second, path)
		}
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e := range k.events(ctx, "?archetype=0&component=&handle=L1.1") {
			if e.name == "stats" {
				require.NoError(t, json.Unmarshal([]byte(e.data), &s))
				break
			}
		}
		assert.Less(t, time.Since(began), time.Second)
		s = k.stats()
		assert.Less(t, time.Since(began), time.Second)
		return s
	}
	s := quick()
	assert.Equal(t, "not started", s.State)
	assert.Zero(t, s.Frame)

	k.run()
	inside, leave := make(chan struct{}), make(chan struct{})
	left := make(chan error, 1)
	asked := time.Now()
	go func() {
		left <- k.e.Spawn(context.Background(), func(w *registry.Window) error {
			if _, err := k.ships.Spawn(w, ship{}); err != nil {
				return err
			}
			close(inside)
			<-leave // far longer than anybody asks
			return nil
		})
	}()
	<-inside
	frame := k.e.FrameNumber()
	require.Eventually(t, func() bool { return k.stats().State == "held" }, time.Second, 10*time.Millisecond)
	s = quick()
	require.NotNil(t, s.Held)
	assert.Equal(t, "Spawn callback", s.Held.By)
	assert.LessOrEqual(t, time.Duration(s.Held.ForNanos), time.Since(asked))
	assert.Greater(t, time.Duration(s.Held.ForNanos), 200*time.Millisecond)
	assert.Equal(t, frame, s.Frame)
	status, text := k.get("/metrics")
	require.Equal(t, http.StatusOK, status)
	assert.Positive(t, parse(t, text).value("airlock_held_seconds", "by", "Spawn callback"))
	require.Eventually(t, func() bool { return strings.Contains(k.stats().Held.Stacks, "cases_test.go") }, 5*time.Second, 20*time.Millisecond)
	close(leave)
	require.NoError(t, <-left)
	require.Eventually(t, func() bool { return k.stats().State == "running" }, time.Second, 10*time.Millisecond)

	require.NoError(t, k.e.Stop())
	require.Eventually(t, func() bool { return k.stats().State == "stopped" }, time.Second, 10*time.Millisecond, "figures are a little old")
	s = quick()
	assert.Equal(t, "stopped", s.State)
	assert.Equal(t, 1, s.Registry.Live)
	assert.Equal(t, k.e.FrameNumber(), s.Frame)
}

func TestInspect3AwkwardNames(t *testing.T) { t.Run("inspect-3", awkwardNames) }

func awkwardNames(t *testing.T) {
	const awkward = "\"quotes\" \\back\\ new\nline <b>bold</b> </script> \x00 ü \u2028 {a=\"b\"} # HELP"
	long := strings.Repeat("long", 2500)
	things, err := pool.New(pool.Config[int]{Name: awkward, Capacity: 1, Reset: func(*int) {}})
	require.NoError(t, err)
	k := newWorld(t, registry.Config{}, inspect.Config{Pools: []pool.Source{things}})
	type odd struct{ Position position }
	type larger struct{ Position position }
	a, err := registry.RegisterClass[odd](k.r, registry.Named(awkward))
	require.NoError(t, err)
	b, err := registry.RegisterClass[larger](k.r, registry.Named(long))
	require.NoError(t, err)
	for _, name := range []string{awkward, awkward, long} {
		_, err = k.e.AddSystem(logic.Late, name, func(*logic.Frame) {})
		require.NoError(t, err)
	}
	k.step(func(w *registry.Window) {
		_, err := a.Spawn(w, odd{})
		require.NoError(t, err)
		_, err = b.Spawn(w, larger{})
		require.NoError(t, err)
		require.NoError(t, k.prefabs.Declare(w, awkward, 1, pool.Fixed(), false))
		require.NoError(t, k.prefabs.Declare(w, long, 1, pool.Fixed(), false))
	})
	s := k.stats()
	names := map[string]int{}
	for _, a := range s.Registry.Archetypes {
		names[a.Class]++
	}
	for _, p := range s.Pools {
		names[p.Name]++
	}
	for _, y := range s.Systems {
		names[y.Name]++
	}
	assert.Equal(t, map[string]int{awkward: 5, long: 3}, names)
	_, body := k.get("/stats.json")
	assert.NotContains(t, body, "<") // not even somebody who takes JSON for a page sees markup

	_, text := k.get("/metrics")
	m := parse(t, text)
	for metric, label := range map[string]string{"airlock_archetype_live": "class", "airlock_pool_cap": "pool", "airlock_system": "system"} {
		got := map[string]bool{}
		for _, one := range m[metric] {
			got[one.labels[label]] = true
		}
		assert.Equal(t, map[string]bool{awkward: true, long: true}, got, metric)
	}
}

func TestAskingDoesNotChangeTheState(t *testing.T) {
	frames := 30
	if testing.Short() {
		frames = 10
	}
	// Two worlds of the same operations; at one somebody looks.
	hash := func(looked bool) (hashes []uint64) {
		k := newWorld(t, registry.Config{Deterministic: true, TemporalFrames: 8}, inspect.Config{})
		_, err := k.e.AddSystem(logic.Late, "hash", func(f *logic.Frame) {
			h, err := snapshot.Hash(f)
			assert.NoError(t, err)
			hashes = append(hashes, h)
		})
		require.NoError(t, err)
		hs := k.fleet(50)
		for i := range frames {
			ticket, err := k.e.Enqueue(func(w *registry.Window) error { return w.Destroy(hs[i]) })
			require.NoError(t, err)
			var all sync.WaitGroup
			if looked {
				for _, path := range []string{"/stats.json", "/metrics", "/world.json", "/chunks.json?archetype=0", "/entity.json?handle=" + hs[40].String()} {
					all.Go(func() { k.get(path) })
				}
			}
			require.NoError(t, k.e.Step())
			require.NoError(t, ticket.Err())
			all.Wait()
		}
		assert.Len(t, hashes, frames+1)
		assert.Zero(t, k.r.Stats().PublishSkips)
		return hashes
	}
	assert.Equal(t, hash(false), hash(true))
}

func TestManySlowClientsAndManyRequestsDisturbNoFrame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	k := newWorld(t, registry.Config{}, inspect.Config{})
	k.fleet(2000)
	k.run()
	for range 32 { // who open a stream, and read one event of it
		<-k.events(t.Context(), "?archetype=0&component=")
	}
	var requests atomic.Int64
	var taken sync.Map // when the readings were taken that were answered with
	began := time.Now()
	before := k.e.Stats()
	over := func() bool { // after two seconds, or later on a machine that stood still meanwhile
		now := k.e.Stats().FrameTime
		return time.Since(began) > 2*time.Second && (now.Count-before.FrameTime.Count > 20 || time.Since(began) > 20*time.Second)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			tick := time.NewTicker(8 * time.Millisecond)
			defer tick.Stop()
			for !over() {
				<-tick.C
				status, body := k.get("/stats.json")
				assert.Equal(t, http.StatusOK, status)
				at, _, _ := strings.Cut(body, ",")
				taken.Store(at, true)
				requests.Add(1)
			}
		})
	}
	all.Wait()
	after := k.e.Stats()
	frames := after.FrameTime.Since(&before.FrameTime)
	readings := 0
	taken.Range(func(any, any) bool { readings++; return true })
	t.Logf("%d requests, %d readings, %d frames, p50 %v, p99 %v, dropped %d", requests.Load(), readings, frames.Count, frames.Quantile(0.5), frames.Quantile(0.99), after.DroppedFrames-before.DroppedFrames)
	// Ten a second, a burst of ten, two a second for the charts: the bound of what collecting costs, whatever is asked.
	assert.LessOrEqual(t, readings, int(12*time.Since(began).Seconds())+11)
	assert.Greater(t, frames.Count, uint64(20)) // of 400: how many is up to who else has the processors
	assert.Zero(t, after.PublishSkips-before.PublishSkips)
	assert.Less(t, frames.Quantile(0.5), 2*time.Millisecond)
}
