package stress_test

import (
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	place  struct{ X, Y int32 }
	title  struct{ Text string }
	frozen struct{}
	piece  struct {
		Place place
		Title title
	}
)

var errPlanned = errors.New("planned")

// machine does the same things to a registry and to the model.
type machine struct {
	r      *registry.Registry
	e      *logic.Engine
	pieces *registry.Class[piece]
	m      *stress.Model
	all    []handles.Local // every handle ever seen
	nets   []handles.Net
	frame  uint64
	peers  map[uint32]bool
}

func newMachine(t require.TestingT, rc registry.Config, lc logic.Config) *machine {
	r, err := registry.New(rc)
	require.NoError(t, err)
	pieces, err := registry.RegisterClass[piece](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[frozen](r)
	require.NoError(t, err)
	e, err := logic.New(r, lc)
	require.NoError(t, err)
	k := &machine{r: r, e: e, pieces: pieces, m: stress.NewModel(rc), peers: map[uint32]bool{}}
	stress.Component[place](k.m)
	stress.Component[title](k.m)
	stress.Component[frozen](k.m)
	return k
}

func (k *machine) pick(t *rapid.T) handles.Local {
	if len(k.all) == 0 || rapid.IntRange(0, 20).Draw(t, "forge") == 0 {
		return handles.NewLocal(rapid.Uint32Range(0, 40).Draw(t, "index"), rapid.Uint32Range(0, 3).Draw(t, "generation"))
	}
	return rapid.SampledFrom(k.all[max(0, len(k.all)-60):]).Draw(t, "handle")
}

// change does one random thing in a window, on both sides.
func (k *machine) change(t *rapid.T, w *registry.Window) {
	h, m := k.pick(t), k.m
	switch rapid.SampledFrom([]string{"spawn", "spawn", "spawn", "reserved", "destroy", "destroy", "set", "add", "remove", "frozen", "active", "parent", "net", "net", "process", "confirm", "reset"}).Draw(t, "what") {
	case "spawn":
		e := piece{Place: place{X: rapid.Int32().Draw(t, "x")}, Title: title{"new"}}
		h, err := k.pieces.Spawn(w, e)
		if m.Full() {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		if errors.Is(err, registry.ErrExhausted) {
			return // too many indices wait
		}
		require.NoError(t, err)
		require.NoError(t, m.Spawned(h, e))
		k.all = append(k.all, h)
	case "reserved":
		e := piece{Title: title{"late"}}
		require.NoError(t, stress.SameAnswer(m.SpawnReserved(h, e), k.pieces.SpawnReserved(w, h, e)))
	case "destroy":
		require.NoError(t, stress.SameAnswer(m.Destroy(h), w.Destroy(h)))
	case "set", "add":
		v, add := place{Y: rapid.Int32().Draw(t, "y")}, rapid.Bool().Draw(t, "add")
		put := registry.Set[place]
		if add {
			put = func(a registry.Access, h handles.Local, v place) error { return registry.Add(w, h, v) }
		}
		require.NoError(t, stress.SameAnswer(m.Put(h, v, add), put(w, h, v)))
	case "remove":
		require.NoError(t, stress.SameAnswer(m.Remove(h, title{}), registry.Remove[title](w, h)))
	case "frozen":
		require.NoError(t, stress.SameAnswer(m.Put(h, frozen{}, true), registry.Add(w, h, frozen{})))
	case "active":
		on := rapid.Bool().Draw(t, "on")
		require.NoError(t, stress.SameAnswer(m.SetActive(h, on), registry.SetActive(w, h, on)))
	case "parent":
		p := k.pick(t)
		require.NoError(t, stress.SameAnswer(m.SetParent(h, p), registry.SetParent(w, h, p)))
	case "net":
		n, err := w.AssignNet(h)
		if err != nil {
			require.NoError(t, stress.SameAnswer(m.Answer(h), err))
			return
		}
		require.NoError(t, m.Named(h, n))
		k.nets = append(k.nets, n)
	case "process":
		require.Equal(t, m.Process(), w.ProcessDeferredDestructions())
	case "confirm":
		f := rapid.Uint64Range(0, 2*k.frame).Draw(t, "through")
		require.Equal(t, m.ConfirmLocal(f), w.ConfirmLocalRecyclesThrough(f))
		require.Equal(t, m.ConfirmNet(f), w.ConfirmNetRecyclesThrough(f))
	case "reset":
		if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
			require.NoError(t, w.Reset())
			m.Reset()
		}
	}
}

func (k *machine) run(t *rapid.T) {
	k.m.Advance(2, 3)
	k.frame++
	steps, fails := rapid.IntRange(0, 5).Draw(t, "steps"), rapid.IntRange(0, 4).Draw(t, "fails") == 0
	ticket, err := k.e.Enqueue(func(w *registry.Window) error {
		return k.m.Callback(func() error {
			for range steps {
				k.change(t, w)
			}
			if fails {
				return errPlanned
			}
			return nil
		})
	})
	require.NoError(t, err)
	require.NoError(t, k.e.Step())
	<-ticket.Done()
	if fails {
		require.ErrorIs(t, ticket.Err(), errPlanned)
	} else {
		require.NoError(t, ticket.Err())
	}
}

func (k *machine) agree(t *rapid.T) {
	require.NoError(t, k.r.Verify())
	require.NoError(t, k.m.CompareStats(k.r.Stats()))
	require.NoError(t, k.e.Step()) // a window for the look: the frame that the model takes with it
	k.m.Advance(2, 3)
	k.frame++
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		require.NoError(t, k.m.Compare(w))
		require.NoError(t, stress.Distinct(w))
		for _, n := range k.nets[max(0, len(k.nets)-20):] {
			want, answer := k.m.ResolveNet(n)
			h, err := k.r.ResolveNet(n)
			require.NoError(t, stress.SameAnswer(answer, err))
			require.Equal(t, want, h)
		}
		return nil
	}))
}

func TestARegistryAgreesWithTheModel(t *testing.T) {
	checks := "40"
	if raceEnabled {
		checks = "8"
	}
	was := flag.Lookup("rapid.checks").Value.String()
	require.NoError(t, flag.Set("rapid.checks", checks)) // each looks at everything after every step
	defer flag.Set("rapid.checks", was)
	for _, rc := range []registry.Config{{MaxEntities: 30}, {MaxEntities: 30, Deterministic: true}, {}} {
		rapid.Check(t, func(t *rapid.T) {
			k := newMachine(t, rc, logic.Config{NetWindow: 3, Workers: 1})
			defer k.e.Stop()
			t.Repeat(map[string]func(*rapid.T){
				"frame":  k.run,
				"frame2": k.run,
				"reserve": func(t *rapid.T) {
					h, err := k.r.Reserve()
					if err != nil {
						require.ErrorIs(t, err, registry.ErrExhausted)
						return
					}
					require.NoError(t, k.m.Reserved(h))
					k.all = append(k.all, h)
				},
				"join": func(t *rapid.T) {
					if id := rapid.Uint32Range(1, 3).Draw(t, "peer"); !k.peers[id] {
						require.NoError(t, k.e.AddPeer(id))
						k.m.AddPeer(id)
						k.peers[id] = true
					}
				},
				"ack": func(t *rapid.T) {
					id, frame := rapid.Uint32Range(1, 3).Draw(t, "peer"), rapid.Uint64Range(0, k.frame).Draw(t, "frame")
					require.Equal(t, k.peers[id], k.e.Ack(id, frame) == nil)
					k.m.Ack(id, frame)
				},
				"drop": func(t *rapid.T) {
					if id := rapid.Uint32Range(1, 3).Draw(t, "peer"); k.peers[id] {
						require.NoError(t, k.e.DropPeer(id))
						k.m.DropPeer(id)
						delete(k.peers, id)
					}
				},
				"": k.agree,
			})
		})
	}
}

// What the model is there for: each of these is a bug that a registry could have.
func TestTheModelRefusesWhatNoRegistryMayDo(t *testing.T) {
	m := stress.NewModel(registry.Config{MaxEntities: 2})
	first, second := handles.NewLocal(1, 1), handles.NewLocal(1, 2)
	require.NoError(t, m.Spawned(first, nil))
	assert.ErrorContains(t, m.Spawned(first, nil), "second time")
	assert.ErrorContains(t, m.Spawned(second, nil), "has its index")
	assert.ErrorContains(t, m.Spawned(0, nil), "nobody's name")
	require.NoError(t, m.Named(first, handles.NewNet(0, 4, 1)))
	require.NoError(t, m.Resolved(first, handles.NewGlobal(1, 1)))
	assert.ErrorContains(t, m.Resolved(first, handles.NewGlobal(1, 2)), "and now")
	require.NoError(t, m.Destroy(first))
	assert.ErrorIs(t, m.Destroy(first), registry.ErrStale)
	assert.ErrorContains(t, m.Spawned(second, nil), "has its index", "not reclaimed yet")
	require.Equal(t, 1, m.Process())
	assert.ErrorContains(t, m.Spawned(second, nil), "waits for a confirm", "too early")
	require.Equal(t, 1, m.ConfirmLocal(stress.All))
	assert.ErrorContains(t, m.Spawned(first, nil), "second time", "generation not bumped")
	require.NoError(t, m.Spawned(second, nil))
	assert.ErrorContains(t, m.Named(second, handles.NewNet(0, 4, 2)), "waits for a confirm")
	assert.ErrorContains(t, m.Resolved(second, handles.NewGlobal(1, 1)), "second time")
	require.NoError(t, m.Resolved(second, handles.NewGlobal(1, 2)), "records are ready at once")
	require.NoError(t, m.Reserved(handles.NewLocal(2, 1)))
	assert.ErrorContains(t, m.Reserved(handles.NewLocal(3, 1)), "number 3 of 2")
	require.ErrorIs(t, m.Callback(func() error {
		require.NoError(t, m.Destroy(handles.NewLocal(2, 1)))
		require.NoError(t, m.Spawned(handles.NewLocal(3, 1), nil))
		return errPlanned
	}), errPlanned)
	assert.ErrorIs(t, m.Answer(handles.NewLocal(2, 1)), registry.ErrNotSpawned)
	assert.ErrorIs(t, m.Answer(handles.NewLocal(3, 1)), registry.ErrStale, "a name that was taken back is dead")
}

func TestAPeerThatHasNotAcknowledgedHoldsWhatDiedBeforeItsEyes(t *testing.T) {
	m := stress.NewModel(registry.Config{})
	for i := range uint32(3) {
		require.NoError(t, m.Spawned(handles.NewLocal(i+1, 1), nil))
		require.NoError(t, m.Named(handles.NewLocal(i+1, 1), handles.NewNet(0, i+1, 1)))
	}
	m.AddPeer(1)
	require.NoError(t, m.Destroy(handles.NewLocal(1, 1)))
	m.Advance(2, 1)
	m.AddPeer(2)
	require.NoError(t, m.Destroy(handles.NewLocal(2, 1)))
	m.Advance(2, 1)
	require.Equal(t, 2, m.Counts().NetPending)
	m.Ack(1, 1)
	m.Ack(1, 0)
	m.Advance(2, 1)
	require.Equal(t, 1, m.Counts().NetPending, "peer 2 never knew of the first")
	m.Ack(1, 9)
	m.Advance(2, 1)
	require.Equal(t, 1, m.Counts().NetPending)
	m.DropPeer(2)
	m.Advance(2, 1)
	require.Zero(t, m.Counts().NetPending)
}

func TestAHashThatForgetsAFieldIsFound(t *testing.T) {
	build := func(tier archetype.Tier) func() (*registry.Registry, *registry.Class[piece2], error) {
		return func() (*registry.Registry, *registry.Class[piece2], error) {
			r, err := registry.New(registry.Config{Deterministic: true, TemporalFrames: 8})
			require.NoError(t, err)
			_, err = registry.RegisterComponent[place](r, registry.InTier(archetype.Temporal))
			require.NoError(t, err)
			_, err = registry.RegisterComponent[speeds](r, registry.InTier(tier))
			require.NoError(t, err)
			c, err := registry.RegisterClass[piece2](r)
			return r, c, err
		}
	}
	e := piece2{Place: place{1, 2}, Speeds: speeds{Of: [2]float64{3, 4}, Fast: true}}
	require.NoError(t, stress.HashCovers(build(archetype.Temporal), e))
	err := stress.HashCovers(build(archetype.Volatile), e) // the hash is of what is Temporal
	require.ErrorContains(t, err, "Speeds.Of[0]")
	require.ErrorContains(t, err, "Speeds.Fast")
	require.NotContains(t, err.Error(), "Place")
}

type (
	speeds struct {
		Of   [2]float64
		Fast bool
	}
	piece2 struct {
		Place  place
		Speeds speeds
	}
)
