package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// loadConfigs are those of the registries that damaged states are loaded into.
var loadConfigs = []registry.Config{
	{MaxEntities: 500, Owner: 2},
	{MaxEntities: 500, Owner: 2, Deterministic: true},
	{MaxEntities: 500, Owner: 2, TemporalFrames: 8},
}

// rich is a state with something in every list, one for each config.
var rich = sync.OnceValue(func() [][]byte {
	t := new(testing.T)
	var all [][]byte
	for _, c := range loadConfigs {
		all = append(all, richState(t, c))
	}
	return all
})

func richState(t *testing.T, c registry.Config) (saved []byte) {
	m := newRealm(t, realmConfig{Config: c, slots: 64})
	hs := m.spawnArrows(100)
	m.window(func(w *registry.Window) {
		for i, h := range hs[:30] {
			_, _ = w.AssignNet(h)
			_ = registry.SetParent(w, hs[30+i/4], hs[40+i])
			_ = registry.SetActive(w, h, i%2 == 0)
		}
		for i, h := range hs[30:40] {
			_ = w.BindNet(h, handles.NewNet(7, uint32(i+1), 3))
		}
		for range 70 {
			_, _ = m.sparks.Spawn(w, spark{})
		}
	})
	_ = m.frame(func(w *registry.Window) error { // fails: generations are burned
		for range 5 {
			h, _ := m.stones.Spawn(w, stone{})
			_, _ = w.AssignNet(h)
		}
		return errFails
	}, nil)
	for round := range 3 {
		m.window(func(w *registry.Window) {
			w.Named(fmt.Sprint("round ", round))
			w.DestroyBatch(hs[10*round : 10*round+7])
			if round == 0 {
				w.ProcessDeferredDestructions()
				w.ConfirmLocalRecyclesThrough(w.FrameNumber())
			}
			for range 4 {
				h, _ := m.stones.Spawn(w, stone{})
				_ = registry.Add(w, h, frozen{})
			}
		})
		_, _ = m.r.Reserve()
	}
	m.window(func(w *registry.Window) {
		w.DestroyBatch(hs[60:64])
		_ = m.r.Destroy(hs[70])
		h, _ := m.r.Reserve()
		_ = m.r.Destroy(h)
		saved = save(t, w)
	})
	return saved
}

// edit is a change to the bytes of a section.
type edit struct {
	section byte
	at      uint16
	how     byte
	value   uint64
}

// apply makes the change.
func (e edit) apply(sections map[uint32][]byte) {
	id := 1 + uint32(e.section)%sectionCells
	b := sections[id]
	if len(b) == 0 {
		return
	}
	at := int(e.at) % len(b)
	switch e.how % 8 {
	case 0:
		b[at] ^= 1 << (e.value % 8)
	case 1:
		b[at] = byte(e.value)
	case 2:
		if at+4 <= len(b) {
			binary.LittleEndian.PutUint32(b[at:], uint32(e.value))
		}
	case 3:
		if at+8 <= len(b) {
			binary.LittleEndian.PutUint64(b[at:], e.value)
		}
	case 4:
		if at+4 <= len(b) { // nearly right
			binary.LittleEndian.PutUint32(b[at:], binary.LittleEndian.Uint32(b[at:])+uint32(e.value%5)-2)
		}
	case 5:
		n := min(1+int(e.value%40), len(b)-at)
		sections[id] = slices.Delete(b, at, at+n)
	case 6:
		sections[id] = slices.Insert(b, at, slices.Repeat([]byte{byte(e.value >> 8)}, 1+int(e.value%40))...)
	case 7: // two stretches change places
		n := 1 + int(e.value%24)
		other := int(e.value>>8) % len(b)
		if max(at, other)+n <= len(b) {
			x, y := bytes.Clone(b[at:at+n]), bytes.Clone(b[other:other+n])
			copy(b[at:], y)
			copy(b[other:], x)
		}
	}
}

// loadAnything loads bytes that may be anything. Either nothing changes, or there is a registry that is sound and goes on.
func loadAnything(t *testing.T, c registry.Config, data []byte) error {
	m := newRealm(t, realmConfig{Config: c, slots: 64})
	before := m.r.Stats()
	err := m.load(data)
	require.NoError(t, m.r.Verify(), "after %v", err)
	if err != nil {
		require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrSchema) || errors.Is(err, registry.ErrConfig) ||
			errors.Is(err, registry.ErrExhausted) || strings.Contains(err.Error(), "an item without an end"), "%v", err)
		require.Equal(t, before, m.r.Stats())
		require.NoError(t, m.load(rich()[slices.Index(loadConfigs, c)]), "it is as good as new")
		return err
	}
	saved := m.save()
	again := newRealm(t, realmConfig{Config: c, slots: 64})
	require.NoError(t, again.load(saved), "what was loaded can be saved and loaded")
	require.True(t, bytes.Equal(saved, again.save()))
	for range 3 {
		_ = m.frame(func(w *registry.Window) error {
			for range 3 {
				h, err := m.arrows.Spawn(w, anArrow(1))
				if err == nil {
					_, _ = w.AssignNet(h)
				}
			}
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
			w.ConfirmNetRecycles()
			return nil
		}, nil)
		require.NoError(t, m.r.Verify())
	}
	m.update(func(w *registry.Window) { require.NoError(t, w.Reset()) })
	require.NoError(t, m.r.Verify())
	return nil
}

func TestStatesWithGoodChecksumsAreNotBelieved(t *testing.T) {
	rounds := 1500
	if raceEnabled {
		rounds = 60
	}
	r := rand.New(rand.NewPCG(4, 2))
	refused, loaded := 0, 0
	for i := range rounds {
		n := i % len(loadConfigs)
		data := resealed(t, rich()[n], func(sections map[uint32][]byte) {
			for range 1 + r.IntN(2) {
				e := edit{byte(r.Uint32()), uint16(r.Uint32()), byte(r.Uint32()), r.Uint64()}
				if r.IntN(2) == 0 {
					e.value &= 0xff
				}
				e.apply(sections)
			}
		})
		if loadAnything(t, loadConfigs[n], data) != nil {
			refused++
		} else {
			loaded++
		}
	}
	require.Positive(t, loaded, "a cell has another value")
	require.Greater(t, refused, loaded)
}

func FuzzLoad(f *testing.F) {
	for n := range loadConfigs {
		f.Add(byte(n), rich()[n], byte(0), uint16(0), byte(0), uint64(0))
		for id := range sectionCells {
			f.Add(byte(n), []byte(nil), byte(id), uint16(9), byte(4), uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, config byte, data []byte, section byte, at uint16, how byte, value uint64) {
		n := int(config) % len(loadConfigs)
		if len(data) == 0 {
			data = resealed(t, rich()[n], func(sections map[uint32][]byte) { edit{section, at, how, value}.apply(sections) })
		}
		_ = loadAnything(t, loadConfigs[n], data)
	})
}

// Another world's classes: each is like one of the realm, but for one thing.
type (
	otherPosition struct{ X, Z, Y float32 }
	longPosition  struct{ X, Y, Z float64 }
	flatPosition  struct{ X, Y float32 }
	deepPosition  struct{ X, Y, Z, W float32 }
	namedPosition struct{ P *string }

	flipped struct {
		Feeling  feeling
		Position position
	}
	straight struct {
		Position position
		Feeling  feeling
	}
)

func TestStatesOfOtherClassesAreRefused(t *testing.T) {
	a := newRealm(t, realmConfig{})
	a.spawnArrows(3)
	saved := a.save()

	other := func(build func(r *registry.Registry) error, want ...string) {
		t.Helper()
		r, err := registry.New(registry.Config{MaxEntities: 2_000_000})
		require.NoError(t, err)
		require.NoError(t, build(r))
		before := r.Stats()
		err = r.Update(func(w *registry.Window) error { return Load(bytes.NewReader(saved), w) })
		require.ErrorIs(t, err, ErrSchema)
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
		require.Equal(t, before, r.Stats())
		require.NoError(t, r.Verify())
	}
	temporal := registry.InTier(archetype.Temporal)
	named := func(name string) registry.Option { return registry.Named(name) }
	rest := func(r *registry.Registry, position error) error {
		return errors.Join(position,
			component[velocity](r, temporal, registry.Split(), named("Velocity")),
			component[armor](r, temporal, named("Armor")),
			component[feeling](r, registry.InTier(archetype.Volatile), named("Feeling")),
			component[bag](r, named("Bag")), component[frozen](r, named("Frozen")))
	}
	classes := func(r *registry.Registry, opts ...registry.ClassOption) error {
		_, err := registry.RegisterClass[arrow](r, append(opts, named("Arrow"))...)
		_, err2 := registry.RegisterClass[stone](r, named("Stone"))
		_, err3 := registry.RegisterClass[ghost](r, named("Ghost"))
		return errors.Join(err, err2, err3)
	}
	right := func(r *registry.Registry) error { return rest(r, component[position](r, temporal, named("Position"))) }

	other(func(r *registry.Registry) error { return nil }, "component Armor is not registered here")
	other(right, "class Arrow is not registered here")
	other(func(r *registry.Registry) error {
		return rest(r, component[otherPosition](r, temporal, named("Position")))
	},
		"component Position", "field 1 was saved as Y float32, and is Z float32")
	other(func(r *registry.Registry) error {
		return rest(r, component[longPosition](r, temporal, named("Position")))
	},
		"component Position", "X float32, and is X float64")
	other(func(r *registry.Registry) error {
		return rest(r, component[flatPosition](r, temporal, named("Position")))
	},
		"component Position was saved with a field Z float32")
	other(func(r *registry.Registry) error {
		return rest(r, component[deepPosition](r, temporal, named("Position")))
	},
		"component Position has a field W float32")
	other(func(r *registry.Registry) error { return rest(r, component[namedPosition](r, named("Position"))) },
		"component Position was saved as Temporal, and is Cold")
	other(func(r *registry.Registry) error { return rest(r, component[position](r, named("Position"))) },
		"component Position was saved as Temporal, and is Cold")
	other(func(r *registry.Registry) error {
		return rest(r, component[position](r, temporal, registry.Split(), named("Position")))
	}, "component Position was saved as one that is split: false")
	other(func(r *registry.Registry) error { return errors.Join(right(r), classes(r, registry.SlotsPerChunk(64))) },
		"class Arrow was saved with 0 slots a chunk")
	other(func(r *registry.Registry) error { return errors.Join(right(r), classes(r, registry.Cosmetic())) },
		"class Arrow was saved as a cosmetic one: false")
	other(func(r *registry.Registry) error {
		err := right(r)
		_, err2 := registry.RegisterClass[struct{ Position position }](r, named("Arrow"))
		return errors.Join(err, err2)
	}, "class Arrow was saved with components Position Velocity Armor Feeling Bag")

	// In the order of a class's fields.
	b, err := registry.New(registry.Config{})
	require.NoError(t, err)
	require.NoError(t, component[position](b, named("Position")))
	require.NoError(t, component[feeling](b, named("Feeling")))
	flips, err := registry.RegisterClass[flipped](b, named("Both"))
	require.NoError(t, err)
	require.NoError(t, b.Update(func(w *registry.Window) error {
		_, err := flips.Spawn(w, flipped{})
		require.NoError(t, err)
		saved = save(t, w)
		return nil
	}))
	other(func(r *registry.Registry) error {
		err := errors.Join(component[position](r, named("Position")), component[feeling](r, named("Feeling")))
		_, err2 := registry.RegisterClass[straight](r, named("Both"))
		return errors.Join(err, err2)
	}, "class Both was saved with components Feeling Position, and has Position Feeling")
}

func TestWhatIsRegisteredBesideDoesNotMatter(t *testing.T) {
	a := newRealm(t, realmConfig{})
	hs := a.spawnArrows(5)
	saved := a.save()
	b := newRealm(t, realmConfig{backward: true})
	require.NoError(t, component[longPosition](b.r))
	_, err := registry.RegisterClass[struct{ P longPosition }](b.r, registry.Named("A class of its own"))
	require.NoError(t, err)
	require.NoError(t, b.load(saved))
	require.NoError(t, b.r.Verify())
	b.update(func(w *registry.Window) {
		for i, h := range hs {
			p, err := registry.Peek[position](w, h)
			require.NoError(t, err)
			require.Equal(t, anArrow(i).Position, p)
			g, err := registry.Peek[armor](w, h)
			require.NoError(t, err)
			require.Equal(t, anArrow(i).Armor, g)
		}
	})
}

func TestStatesOfOtherConfigs(t *testing.T) {
	full := registry.Config{MaxEntities: 1000, Owner: 2}
	load := func(from, to registry.Config) error {
		a, b := newRealm(t, realmConfig{Config: from}), newRealm(t, realmConfig{Config: to})
		a.spawnArrows(300)
		before := b.r.Stats()
		err := b.load(a.save())
		require.NoError(t, b.r.Verify())
		if err != nil {
			require.Equal(t, before, b.r.Stats())
			h, err := b.r.Reserve()
			require.NoError(t, err, "all room is there again")
			require.EqualValues(t, 1, h.Generation())
		}
		return err
	}
	with := func(change func(c *registry.Config)) registry.Config {
		c := full
		change(&c)
		return c
	}
	require.NoError(t, load(full, full))
	require.NoError(t, load(full, with(func(c *registry.Config) { c.MaxEntities = 100_000 })))
	require.NoError(t, load(full, with(func(c *registry.Config) { c.MaxEntities = 300 })))
	require.ErrorIs(t, load(full, with(func(c *registry.Config) { c.MaxEntities = 299 })), registry.ErrExhausted)
	require.ErrorIs(t, load(full, with(func(c *registry.Config) { c.Owner = 3 })), registry.ErrConfig)
	fixed := with(func(c *registry.Config) { c.Deterministic = true })
	ring := with(func(c *registry.Config) { c.TemporalFrames = 8 })
	require.ErrorIs(t, load(full, fixed), registry.ErrConfig)
	require.ErrorIs(t, load(fixed, full), registry.ErrConfig)
	require.ErrorIs(t, load(full, ring), registry.ErrConfig)
	require.ErrorIs(t, load(fixed, ring), registry.ErrConfig)
	require.NoError(t, load(ring, with(func(c *registry.Config) { c.TemporalFrames = 64 })))
	require.ErrorIs(t, load(ring, with(func(c *registry.Config) { c.TemporalFrames, c.MaxEntities = 8, 999 })), registry.ErrConfig)
}

func TestSchemaHashTellsSchemasApart(t *testing.T) {
	m := newRealm(t, realmConfig{})
	require.Equal(t, SchemaHash(m.r), SchemaHash(newRealm(t, realmConfig{Config: registry.Config{TemporalFrames: 8}}).r))
	seen := map[uint64]bool{SchemaHash(m.r): true}
	for _, other := range []*realm{newRealm(t, realmConfig{backward: true}), newRealm(t, realmConfig{slots: 64})} {
		require.False(t, seen[SchemaHash(other.r)])
		seen[SchemaHash(other.r)] = true
	}
	require.NoError(t, component[longPosition](m.r))
	require.False(t, seen[SchemaHash(m.r)])
}

// slowReader gives a byte at a time.
type slowReader struct{ r io.Reader }

func (s slowReader) Read(b []byte) (int, error) { return s.r.Read(b[:min(1, len(b))]) }

func TestLoadFromAnyReader(t *testing.T) {
	a := newRealm(t, realmConfig{})
	a.spawnArrows(100)
	saved := a.save()
	b := newRealm(t, realmConfig{})
	b.update(func(w *registry.Window) {
		require.ErrorIs(t, Load(io.MultiReader(bytes.NewReader(saved[:500]), failing{}), w), errDisk)
		require.NoError(t, Load(slowReader{bytes.NewReader(saved)}, w))
	})
	require.True(t, bytes.Equal(saved, b.save()))
}

// failing cannot be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func TestRunsOfBits(t *testing.T) {
	var got [][2]int
	for from, to := range runsOf([]uint64{0xf0, math.MaxUint64, 1, 1 << 63}) {
		got = append(got, [2]int{from, to})
	}
	require.Equal(t, [][2]int{{4, 8}, {64, 129}, {255, 256}}, got)
	for range runsOf([]uint64{0, 0}) {
		t.Fail()
	}
	for range runsOf(nil) {
		t.Fail()
	}
	for from, to := range runsOf([]uint64{math.MaxUint64, math.MaxUint64}) {
		require.Equal(t, [2]int{0, 128}, [2]int{from, to})
	}
}

// meddler is a reader that does something before a byte.
type meddler struct {
	io.Reader
	left int
	do   func() error
}

func (m *meddler) Read(b []byte) (int, error) {
	if m.left <= 0 {
		if err := m.do(); err != nil {
			return 0, err
		}
		m.left = math.MaxInt
	}
	n, err := m.Reader.Read(b[:min(len(b), m.left)])
	m.left -= n
	return n, err
}

func TestALargeStateThatIsDamagedLeavesNothingBehind(t *testing.T) {
	a := newRealm(t, realmConfig{})
	a.spawnArrows(15_000)
	saved := a.save()
	c, err := readContainer(bytes.NewReader(saved), 0)
	require.NoError(t, err)
	cells := int(c.sections[len(c.sections)-1].length)
	require.Greater(t, cells, wholeBytes, "it is read where it belongs")

	for _, config := range []registry.Config{{}, {TemporalFrames: 8}} {
		if raceEnabled && config.TemporalFrames > 0 {
			continue
		}
		b := newRealm(t, realmConfig{Config: config})
		if config.TemporalFrames > 0 {
			a := newRealm(t, realmConfig{Config: config})
			a.spawnArrows(15_000)
			saved = a.save()
		}
		b.window(func(w *registry.Window) { // archetypes without anybody
			for range 2 {
				_, err := b.stones.SpawnBatch(w, 0, nil)
				require.NoError(t, err)
				_, err = b.ghosts.SpawnBatch(w, 0, nil)
				require.NoError(t, err)
			}
		})
		before := b.r.Stats()
		refused := func(in io.Reader, want error, text string) {
			t.Helper()
			b.window(func(w *registry.Window) {
				_, err := b.sparks.SpawnBatch(w, 0, nil) // and one that the callback has made
				require.NoError(t, err)
				err = Load(in, w)
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, text)
				require.NoError(t, b.r.Verify())
				require.Equal(t, b.r, w.Registry(), "the window is open again")
			})
			after := b.r.Stats()
			after.Frame = before.Frame
			require.Equal(t, before, after)
			require.NoError(t, b.r.Read(func(s *registry.Snapshot) error { return nil }))
		}
		for _, at := range []int{len(saved) - cells - 9, len(saved) - cells/2, len(saved) - 9, len(saved) - 1} {
			data := bytes.Clone(saved)
			data[at] ^= 4
			refused(bytes.NewReader(data), ErrDamaged, "")
			refused(unseen{bytes.NewReader(saved[:at])}, ErrDamaged, "")
		}
		refused(io.MultiReader(bytes.NewReader(saved), strings.NewReader("x")), ErrDamaged, "behind the end")
		in := func(do func() error) io.Reader {
			return &meddler{bytes.NewReader(saved), len(saved) - cells/2, do}
		}
		refused(in(func() error { return errDisk }), errDisk, fmt.Sprint("section ", sectionCells))
		require.NoError(t, b.r.Update(func(w *registry.Window) error {
			require.PanicsWithValue(t, "reader", func() { _ = Load(in(func() error { panic("reader") }), w) })
			require.NoError(t, b.r.Verify())
			require.ErrorIs(t, Load(in(func() error { return w.Reset() }), w), registry.ErrExpired, "nobody touches what is half there")
			_, err := b.arrows.Spawn(w, arrow{})
			require.NoError(t, err)
			require.ErrorIs(t, Load(bytes.NewReader(saved), w), registry.ErrNotEmpty)
			return nil
		}))
		require.NoError(t, b.r.Verify())

		d := newRealm(t, realmConfig{Config: config})
		d.window(func(w *registry.Window) {
			_, err := d.stones.SpawnBatch(w, 0, nil)
			require.NoError(t, err)
			h, err := d.r.Reserve()
			require.NoError(t, err)
			require.NoError(t, d.r.Destroy(h))
			require.ErrorIs(t, Load(bytes.NewReader(saved), w), registry.ErrNotEmpty, "a handle was given out")
		})
		e := newRealm(t, realmConfig{Config: config})
		var handle handles.Local
		e.window(func(w *registry.Window) {
			err := Load(in(func() error { // others ask while it goes on
				_, err := e.r.Reserve()
				require.ErrorIs(t, err, registry.ErrExhausted)
				return nil
			}), w)
			require.NoError(t, err)
			handle, err = e.stones.Spawn(w, stone{})
			require.NoError(t, err)
		})
		require.NoError(t, e.r.Verify())
		require.True(t, e.r.Alive(handle))
		require.Equal(t, 15_001, e.r.Stats().Live)
	}
}
