package inspect_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestStatsShowWhatThereIs(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	_, err := k.e.AddSystem(logic.Late, "drift", func(*logic.Frame) {})
	require.NoError(t, err)
	hs := k.fleet(10)
	k.step(func(w *registry.Window) {
		require.NoError(t, k.prefabs.Declare(w, "Gull", 2, pool.Fixed(), true))
		for range 2 {
			_, err := k.prefabs.Spawn(w, "Gull")
			require.NoError(t, err)
		}
		_, err := k.prefabs.Spawn(w, "Gull")
		require.ErrorIs(t, err, pool.ErrExhausted)
		_, err = w.AssignNet(hs[0])
		require.NoError(t, err)
		w.DestroyBatch(hs[:4])
	})
	k.step(func(*registry.Window) {})
	k.step(func(*registry.Window) {})

	s := k.stats()
	assert.Equal(t, "idle", s.State)
	assert.Nil(t, s.Held)
	assert.EqualValues(t, 4, s.Frame)
	assert.Equal(t, 8, s.Registry.Live)
	assert.Equal(t, 12, s.Registry.Allocated)
	require.Len(t, s.Registry.Archetypes, 2)
	a := s.Registry.Archetypes[0]
	assert.Equal(t, "ship", a.Class)
	assert.Equal(t, "Volatile", a.Tier)
	assert.InDelta(t, 0.4, a.Fragmentation, 1e-9)
	assert.Equal(t, "position", a.Parts[0].Name[strings.LastIndex(a.Parts[0].Name, ".")+1:])
	assert.Equal(t, []string{"X float32", "Y float32"}, a.Parts[0].Fields)
	require.Len(t, a.Places, 2)
	require.Len(t, s.Pools, 1)
	p := s.Pools[0]
	assert.Equal(t, "Gull", p.Name)
	assert.Equal(t, []int{2, 2, 0, 2, 2, 1}, []int{p.Cap, p.InUse, p.Free, p.Peak, p.Built, p.Refused})
	assert.True(t, p.AtCap && p.Fixed && p.Warm)
	require.Len(t, s.Systems, 1)
	assert.Equal(t, "drift", s.Systems[0].Name)
	require.Len(t, s.Spaces, 3)
	net := s.Spaces[2]
	assert.Equal(t, 1, net.Pending)
	assert.EqualValues(t, 1, net.AgeFrames)
	assert.Contains(t, net.HeldBy, "no peer")
}

func TestThePeerThatHoldsNetHandlesBackIsNamed(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	require.NoError(t, k.e.AddPeer(7))
	require.NoError(t, k.e.AddPeer(8))
	hs := k.fleet(1)
	k.step(func(w *registry.Window) {
		_, err := w.AssignNet(hs[0])
		require.NoError(t, err)
	})
	k.step(func(w *registry.Window) { require.NoError(t, w.Destroy(hs[0])) })
	k.step(func(*registry.Window) {})
	require.NoError(t, k.e.Ack(7, 4))
	assert.Contains(t, k.stats().Spaces[2].HeldBy, "peer 8")
	require.NoError(t, k.e.Ack(8, 4))
	assert.Contains(t, k.stats().Spaces[2].HeldBy, "nobody")
}

func TestTheWorldIsDrawnFromAPublishedFrame(t *testing.T) {
	synctest.Test(t, theWorldIsDrawnFromAPublishedFrame)
}

func theWorldIsDrawnFromAPublishedFrame(t *testing.T) {
	k := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{})
	var v struct {
		Frame     uint64
		Error     string
		Choices   []string
		Classes   []string
		Total     int
		Elsewhere int
		Handle    []handles.Local
		Class     []int
		X, Y      []float64
	}
	k.json("/world.json", &v)
	assert.NotEmpty(t, v.Error) // nothing is published yet
	hs := k.fleet(5)
	k.step(func(w *registry.Window) {
		require.NoError(t, registry.SetActive(w, hs[1], false))
		require.NoError(t, registry.Set(w, hs[2], position{X: nan(), Y: 1}))
	})
	require.Eventually(t, func() bool {
		v.Error = ""
		k.json("/world.json", &v)
		return v.Frame == 2
	}, time.Second, time.Millisecond)
	assert.Empty(t, v.Error)
	assert.Equal(t, []string{"ship"}, v.Classes)
	assert.Equal(t, 4, v.Total)
	assert.Equal(t, 1, v.Elsewhere)
	assert.Equal(t, []handles.Local{hs[0], hs[3], hs[4]}, v.Handle)
	assert.Equal(t, []float64{1, 4, 5}, v.X)
	assert.Equal(t, []float64{1, 4, 5}, v.Y)
	assert.Equal(t, []int{0, 0, 0}, v.Class)
	require.Len(t, v.Choices, 2)
	slow := v.Choices[slices.IndexFunc(v.Choices, func(s string) bool { return strings.Contains(s, "velocity") })]
	k.json("/world.json?component="+slow, &v)
	assert.Equal(t, []float64{0, 0, 0, 0}, v.X)
}

func TestALargeWorldIsThinnedOutEvenly(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	k.fleet(10000)
	var v struct {
		Total int
		X     []float64
	}
	k.json("/world.json", &v)
	assert.Equal(t, 10000, v.Total)
	require.Len(t, v.X, 3334)
	assert.Equal(t, []float64{1, 4, 7}, v.X[:3])
}

// answered steps until a look at an address has its answer from Logic, or 5 s are over.
func answered[T any](k *world, path string, into *T, done func() bool) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		require.NoError(k.t, k.e.Step())
		*into = *new(T)
		k.json(path, into)
		return done()
	}, 5*time.Second, time.Millisecond)
}

func TestTheChunkMapHasALetterForEachSlot(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	hs := k.fleet(100)
	k.step(func(w *registry.Window) {
		require.NoError(t, registry.SetActive(w, hs[1], false))
		w.DestroyBatch(hs[4:6])
	})
	var m struct {
		Class                    string
		First, Chunks, Allocated int
		Letters                  map[string]string
		Map                      []struct {
			Index int
			Base  uint32
			Slots string
		}
	}
	answered(k, "/chunks.json?archetype=0", &m, func() bool { return m.Class != "" })
	assert.Equal(t, "ship", m.Class)
	assert.Equal(t, []int{0, 2, 100}, []int{m.First, m.Chunks, m.Allocated})
	require.Len(t, m.Map, 2)
	assert.Equal(t, "LILL..LL", m.Map[0].Slots[:8])
	assert.Equal(t, "LLLL____", m.Map[1].Slots[32:40])
	assert.Len(t, m.Letters, 7)
	answered(k, "/chunks.json?archetype=0&first=1", &m, func() bool { return m.First == 1 })
	require.Len(t, m.Map, 1)
	assert.Equal(t, 1, m.Map[0].Index)
	answered(k, "/chunks.json?archetype=99", &m, func() bool { return m.Class == "" && m.Chunks == 0 })
	for _, query := range []string{"", "?archetype=-1", "?archetype=x", "?archetype=0&first=-2", "?archetype=0&first=99999999999999999999"} {
		status, _ := k.get("/chunks.json" + query)
		assert.Equal(t, http.StatusBadRequest, status, query)
	}
}

func TestAnEntityHasAPageAndAfterDeathAnObituary(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	hs := k.fleet(2)
	k.step(func(w *registry.Window) {
		require.NoError(t, registry.SetParent(w, hs[1], hs[0]))
		_, err := w.AssignNet(hs[1])
		require.NoError(t, err)
		require.NoError(t, registry.Set(w, hs[1], cargo{Name: [8]byte{'t', 'e', 'a'}, Owner: hs[0], Goods: []string{"a", "b"}}))
	})
	type page struct {
		State, Source, Class, Net, Parent string
		Obituary                          *struct {
			Frame uint64
			Cause string
		}
		Components []struct {
			Name, Tier, Error string
			Fields            []struct{ Name, Value string }
		}
	}
	var p page
	path := "/entity.json?handle=" + hs[1].String()
	k.json(path, &p) // Logic is not there to answer: what is published
	assert.Equal(t, []string{"alive", "published", "ship", "N0:1.1", ""}, []string{p.State, p.Source, p.Class, p.Net, p.Parent})
	require.Len(t, p.Components, 3)
	assert.NotEmpty(t, p.Components[2].Error)
	answered(k, path, &p, func() bool { return p.Source == "window" })
	assert.Equal(t, hs[0].String(), p.Parent)
	require.Len(t, p.Components, 3)
	assert.Equal(t, []struct{ Name, Value string }{{"X", "2"}, {"Y", "2"}}, p.Components[0].Fields)
	assert.Equal(t, []struct{ Name, Value string }{{"Name", `"tea"`}, {"Owner", hs[0].String()}, {"Goods", "[]string, 2 long"}}, p.Components[2].Fields)

	k.step(func(w *registry.Window) {
		w.Named("sunk")
		require.NoError(t, w.Destroy(hs[1]))
	})
	answered(k, path, &p, func() bool { return p.State == "dead" && p.Source == "window" })
	require.NotNil(t, p.Obituary)
	assert.Equal(t, "sunk", p.Obituary.Cause)
	assert.Empty(t, p.Components)
	k.json("/entity.json?handle=L4000.1", &p)
	assert.Equal(t, "never issued", p.State)
	status, _ := k.get("/entity.json?handle=<b>")
	assert.Equal(t, http.StatusBadRequest, status)
}

// Who looks at one entity after the other, while Logic hangs or is paused, does not fill the engine's queue.
func TestQuestionsToLogicHaveABound(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	hs := k.fleet(200)
	var all sync.WaitGroup
	for _, h := range hs {
		all.Go(func() {
			k.h.ServeHTTP(httptest.NewRecorder(), request(t.Context(), "GET", "/entity.json?handle="+h.String(), nil))
		})
	}
	all.Wait()
	most := k.e.Stats().Queued
	assert.Positive(t, most)
	assert.LessOrEqual(t, most, 32)
	var p struct{ Source string }
	answered(k, "/entity.json?handle="+hs[0].String(), &p, func() bool { return p.Source == "window" })
	require.NoError(t, k.e.Step())
	assert.Zero(t, k.e.Stats().Queued)
}

// Of a map, and of a channel, the length is behind a pointer: their owner may change it meanwhile.
func TestNothingBehindAPointerIsLookedAt(t *testing.T) {
	type shared struct {
		Names map[string]int
		Calls chan int
		None  map[string]int
	}
	k := newWorld(t, registry.Config{}, inspect.Config{})
	class, err := registry.RegisterClass[struct{ Shared shared }](k.r)
	require.NoError(t, err)
	var h handles.Local
	names := map[string]int{}
	k.step(func(w *registry.Window) {
		h, err = class.Spawn(w, struct{ Shared shared }{shared{names, make(chan int, 1), nil}})
		require.NoError(t, err)
	})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				names[strconv.Itoa(n%10)] = n
			}
		}
	}()
	var p struct {
		Source     string
		Components []struct {
			Fields []struct{ Name, Value string }
		}
	}
	answered(k, "/entity.json?handle="+h.String(), &p, func() bool { return p.Source == "window" })
	close(stop)
	<-stopped
	require.Len(t, p.Components, 1)
	assert.Equal(t, []struct{ Name, Value string }{
		{"Names", "map[string]int"}, {"Calls", "chan int"}, {"None", "map[string]int, nil"},
	}, p.Components[0].Fields)
}

func TestAStreamTellsWhatChangesAndEndsWithTheEngine(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	k.fleet(3)
	k.run()
	seen := map[string]int{}
	var last stats
	stopped := false
	for e := range k.events(t.Context(), "?archetype=0&component=&handle=L1.1") {
		require.True(t, json.Valid([]byte(e.data)), e.data)
		seen[e.name]++
		if e.name == "stats" {
			require.NoError(t, json.Unmarshal([]byte(e.data), &last))
		}
		if !stopped && len(seen) == 5 && seen["stats"] > 2 {
			stopped = true
			require.NoError(t, k.e.Stop())
		}
	}
	assert.True(t, stopped, seen)
	assert.Equal(t, "stopped", last.State)
	assert.Equal(t, 3, last.Registry.Live)

	// After the end, too, whoever looks is told, and the stream ends.
	n := 0
	for e := range k.events(t.Context(), "") {
		if e.name == "stats" {
			require.NoError(t, json.Unmarshal([]byte(e.data), &last))
			n++
		}
	}
	assert.Positive(t, n)
	assert.Equal(t, "stopped", last.State)
}

func TestCloseEndsStreamsAndTheHandlerRefuses(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	all := k.events(t.Context(), "")
	<-all
	require.NoError(t, k.h.Close())
	for range all {
	}
	status, _ := k.get("/stats.json")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	require.NoError(t, k.h.Close())
}

func TestStreamsHaveABound(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	for range 64 {
		<-k.events(t.Context(), "")
	}
	status, _ := k.get("/events")
	assert.Equal(t, http.StatusServiceUnavailable, status)
}

func TestHistoryGrowsByPoints(t *testing.T) { synctest.Test(t, historyGrowsByPoints) }

func historyGrowsByPoints(t *testing.T) {
	k := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{})
	k.run()
	var points []struct {
		Number uint64
		Frames float64
	}
	require.Eventually(t, func() bool { k.json("/history.json", &points); return len(points) >= 2 }, 10*time.Second, 20*time.Millisecond)
	assert.Equal(t, points[0].Number+1, points[1].Number)
	assert.Positive(t, points[1].Frames)
}

func TestThePageAndItsPartsAreServed(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	resp, err := k.server.Client().Get(k.server.URL + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"))
	assert.Contains(t, string(body), "<title>airlock")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		assert.Contains(t, resp.Header.Get(name), want)
	}
	for _, path := range []string{"/nothing", "/assets/nothing.js", "/assets/..%2fdoc.go", "/debug/pprof/", "/assets/"} {
		status, _ := k.get(path)
		assert.Equal(t, http.StatusNotFound, status, path)
	}
}
