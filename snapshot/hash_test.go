package snapshot

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// The components of the tests about states: Temporal ones whole, split, and with padding, one of each
// other tier, and a tag.
type (
	position struct{ X, Y, Z float32 }
	velocity struct{ X, Y float64 } // split
	armor    struct {               // with padding behind A, C, and each E
		A uint8
		B uint32
		C bool
		D [3]struct {
			E int8
			F uint64
		}
		_ uint8
		g complex64
	}
	feeling struct{ Now int32 }      // Volatile
	bag     struct{ Items []string } // Cold
	frozen  struct{}                 // Cold, a tag

	arrow struct {
		Position position
		Velocity velocity
		Armor    armor
		Feeling  feeling
		Bag      bag
	}
	stone struct{ Position position }
	spark struct{ Position position } // Cosmetic
	ghost struct{ Feeling feeling }   // without a Temporal component
)

// arrowTemporal is how many components of an arrow are hashed. None holds an int, whose size is the host's.
const arrowTemporal = 3

// realm is a registry with those, stepped frame by frame as package logic does.
type realm struct {
	t      testing.TB
	r      *registry.Registry
	core   *registry.Core
	arrows *registry.Class[arrow]
	stones *registry.Class[stone]
	sparks *registry.Class[spark]
	ghosts *registry.Class[ghost]
}

type realmConfig struct {
	registry.Config
	slots    int  // of a chunk, 0 for the default
	backward bool // components and classes are registered in the other order
	hooks    registry.Hooks
}

func newRealm(t testing.TB, c realmConfig) *realm {
	t.Helper()
	if c.MaxEntities == 0 {
		c.MaxEntities = 2_000_000
	}
	r, err := registry.New(c.Config)
	require.NoError(t, err)
	m := &realm{t: t, r: r}
	var opts []registry.ClassOption
	if c.slots != 0 {
		opts = append(opts, registry.SlotsPerChunk(c.slots))
	}
	steps := []func() error{
		func() error {
			return component[position](r, registry.InTier(archetype.Temporal), registry.Named("Position"))
		},
		func() error {
			return component[velocity](r, registry.InTier(archetype.Temporal), registry.Split(), registry.Named("Velocity"))
		},
		func() error { return component[armor](r, registry.InTier(archetype.Temporal), registry.Named("Armor")) },
		func() error {
			return component[feeling](r, registry.InTier(archetype.Volatile), registry.Named("Feeling"))
		},
		func() error { return component[bag](r, registry.Named("Bag")) },
		func() error { return component[frozen](r, registry.Named("Frozen")) },
	}
	classes := []func() error{
		func() (err error) {
			m.arrows, err = registry.RegisterClass[arrow](r, append(opts, registry.Named("Arrow"))...)
			return err
		},
		func() (err error) {
			m.stones, err = registry.RegisterClass[stone](r, append(opts, registry.Named("Stone"))...)
			return err
		},
		func() (err error) {
			m.sparks, err = registry.RegisterClass[spark](r, append(opts, registry.Named("Spark"), registry.Cosmetic())...)
			return err
		},
		func() (err error) {
			m.ghosts, err = registry.RegisterClass[ghost](r, append(opts, registry.Named("Ghost"))...)
			return err
		},
	}
	for _, list := range [][]func() error{steps, classes} {
		for i := range list {
			if c.backward {
				i = len(list) - 1 - i
			}
			require.NoError(t, list[i]())
		}
	}
	m.core, err = r.Attach(c.hooks)
	require.NoError(t, err)
	return m
}

func component[C any](r *registry.Registry, opts ...registry.ComponentOption) error {
	_, err := registry.RegisterComponent[C](r, opts...)
	return err
}

// frame runs a frame with a window and a system; either may be nil.
func (m *realm) frame(window func(w *registry.Window) error, system func(f *registry.Frame)) (err error) {
	m.t.Helper()
	require.NoError(m.t, m.core.Enter(false))
	defer m.core.Leave()
	m.step(func() {
		if window != nil {
			err = m.core.CallbackRecover(window)
		}
	}, system)
	return err
}

// step is the frame itself, whatever its window does.
func (m *realm) step(window func(), system func(f *registry.Frame)) {
	m.core.Advance()
	if c := m.r.Config(); !c.Deterministic && c.TemporalFrames == 0 {
		m.core.DrainDestroys()
	}
	m.core.ProcessDestructions()
	m.core.OpenWindow()
	m.core.RunWishes()
	window()
	m.core.CloseWindow()
	f := m.core.NewFrame()
	m.core.Deliver()
	m.core.Boundary()
	if system != nil {
		m.core.System("s", func() { system(f) })
	}
	m.core.Deliver()
	m.core.Boundary()
	m.core.EndFrame()
}

// goBack goes back to a frame, and simulates those after it again with their systems.
func (m *realm) goBack(to uint64, systems map[uint64]func(f *registry.Frame)) {
	m.t.Helper()
	require.NoError(m.t, m.core.Enter(false))
	defer m.core.Leave()
	require.NoError(m.t, m.core.GoBack(to))
	for {
		m.core.UpdatesAgain()
		now := m.core.FrameNumber()
		if now == m.core.Present() {
			break
		}
		m.step(m.core.OpsAgain, systems[now+1])
	}
	m.core.Revive()
}

// window runs a frame with a window that must not fail.
func (m *realm) window(fn func(w *registry.Window), systems ...func(f *registry.Frame)) {
	m.t.Helper()
	require.NoError(m.t, m.frame(func(w *registry.Window) error { fn(w); return nil }, func(f *registry.Frame) {
		for _, system := range systems {
			system(f)
		}
	}))
}

// update runs fn in a window between two frames.
func (m *realm) update(fn func(w *registry.Window)) {
	m.t.Helper()
	require.NoError(m.t, m.r.Update(func(w *registry.Window) error { fn(w); return nil }))
}

// published is the hash of the newest published frame.
func (m *realm) published() (hash uint64) {
	m.t.Helper()
	require.NoError(m.t, m.r.Read(func(s *registry.Snapshot) error {
		hash = hashOf(m.t, s)
		return nil
	}))
	return hash
}

// hashOf is the hash that Hash gives, which must be that of a walk that remembers nothing.
func hashOf(t testing.TB, a registry.Access) uint64 {
	t.Helper()
	got, err := Hash(a)
	require.NoError(t, err)
	r, _, err := registry.Source(a)
	require.NoError(t, err)
	want, err := hasherOf(r).fresh().hashOf(a)
	require.NoError(t, err)
	require.Equal(t, want, got, "what is remembered is not what is")
	return got
}

// anArrow is the i-th of many, all different.
func anArrow(i int) arrow {
	x := float32(i)
	a := arrow{
		Position: position{x, x / 3, -x},
		Velocity: velocity{float64(i) / 7, math.Copysign(0, -1)},
		Armor:    armor{A: uint8(i), B: uint32(i) * 77, C: i%2 == 0, g: complex(x, 1)},
		Feeling:  feeling{int32(i)},
		Bag:      bag{[]string{"arrow"}},
	}
	a.Armor.D[1].F = uint64(i) << 40
	return a
}

func (m *realm) spawnArrows(n int) (hs []handles.Local) {
	m.t.Helper()
	m.window(func(w *registry.Window) {
		var err error
		hs, err = m.arrows.SpawnBatch(w, n, func(i int, a *arrow) { *a = anArrow(i) })
		require.NoError(m.t, err)
	})
	return hs
}

func TestHashIsWhatItWas(t *testing.T) {
	if raceEnabled && check.Enabled {
		t.Skip("once is enough")
	}
	m := newRealm(t, realmConfig{})
	m.window(func(*registry.Window) {})
	require.Equal(t, uint64(0x15e0e6a489cc380e), m.published(), "an empty registry")
	hs := m.spawnArrows(200)
	m.window(func(w *registry.Window) {
		require.NoError(t, registry.SetActive(w, hs[7], false))
		require.NoError(t, w.Destroy(hs[9]))
		require.NoError(t, registry.Add(w, hs[70], frozen{}))
		_, err := m.ghosts.Spawn(w, ghost{feeling{1}})
		require.NoError(t, err)
	})
	m.window(func(w *registry.Window) { require.NoError(t, w.Destroy(hs[11])) })
	require.Equal(t, uint64(0x3e78aaae00283cde), m.published(), "whoever changes this changes hashes that others have kept")
}

func TestHashLeavesOutWhatIsNoState(t *testing.T) {
	type variant struct {
		name string
		c    realmConfig
	}
	spread := func(n int, run func(int)) {
		var all sync.WaitGroup
		for i := 1; i < n; i++ {
			all.Go(func() { run(i) })
		}
		run(0)
		all.Wait()
	}
	var variants []variant
	for _, slots := range []int{0, 64, 128, 192, 1024, 4096} {
		variants = append(variants, variant{fmt.Sprint(slots, " slots"), realmConfig{slots: slots}})
	}
	variants = append(variants,
		variant{"other order of registration", realmConfig{backward: true}},
		variant{"another owner", realmConfig{Config: registry.Config{Owner: 3}}},
		variant{"workers", realmConfig{hooks: registry.Hooks{Workers: 3, Spread: spread}}},
	)
	for _, v := range variants { // with rollback, handles are others
		v.name, v.c.TemporalFrames = v.name+", with a ring", 8
		variants = append(variants, v)
	}
	wants := map[int][]uint64{}
	for n, v := range variants {
		m := newRealm(t, v.c)
		var got []uint64
		m.update(func(w *registry.Window) { got = append(got, hashOf(t, w)) })
		var hs []handles.Local
		m.window(func(w *registry.Window) {
			for range 400 { // handles first, so that the archetypes can come in any order
				h, err := m.r.Reserve()
				require.NoError(t, err)
				hs = append(hs, h)
			}
			for i := range hs {
				if n%2 == 1 {
					i = (i + 200) % 400
				}
				if i < 200 {
					require.NoError(t, m.arrows.SpawnReserved(w, hs[i], anArrow(i)))
				} else {
					require.NoError(t, m.stones.SpawnReserved(w, hs[i], stone{position{X: float32(i)}}))
				}
			}
		})
		got = append(got, m.published())
		for range 5 { // blocks become empty, and small chunks are given back
			m.window(func(w *registry.Window) {
				got = append(got, hashOf(t, w))
				for _, h := range hs[64:128] {
					_ = w.Destroy(h)
				}
				_ = w.Destroy(hs[3])
			})
			got = append(got, m.published())
		}
		m.window(func(w *registry.Window) { require.NoError(t, registry.Add(w, hs[5], frozen{})) })
		got = append(got, m.published())
		m.window(func(w *registry.Window) {
			_, err := m.sparks.Spawn(w, spark{})
			require.NoError(t, err)
			require.NoError(t, registry.Set(w, hs[2], feeling{77}))
			require.NoError(t, registry.Set(w, hs[2], bag{}))
			require.NoError(t, registry.SetParent(w, hs[2], hs[0]))
			if n%2 == 1 {
				_, err = m.r.Reserve()
				require.NoError(t, err)
			}
		})
		require.Equal(t, got[len(got)-1], m.published(), "of the other tiers, cosmetic classes and parents nothing shows")
		m.window(func(w *registry.Window) { require.NoError(t, w.Reset()) })
		require.Equal(t, got[0], m.published(), "an emptied registry is like a fresh one")
		require.Equal(t, got[2], got[1], "the next window has what was published")
		want, ok := wants[v.c.TemporalFrames]
		if !ok {
			wants[v.c.TemporalFrames], want = got, got
		}
		require.Equal(t, want, got, v.name)
	}
}

// TestPaddingDoesNotShow writes what the program left between the fields.
func TestPaddingDoesNotShow(t *testing.T) {
	m := newRealm(t, realmConfig{})
	hs := m.spawnArrows(100)
	before := m.published()
	comp, ok := m.r.Schema().ByName("Armor")
	require.True(t, ok)
	data := dataBytes(comp.Type.Size(), leavesOf(comp.Type))
	m.window(func(w *registry.Window) {
		flipped := 0
		for _, h := range hs[60:] {
			c, slot, err := registry.Locate(w, h)
			require.NoError(t, err)
			column := c.Archetype().Column(comp.ID)
			cell := c.Bytes(column)[int(slot)*int(comp.Size):][:comp.Size]
			for i := range cell {
				if !data[i] {
					cell[i] ^= 0xa5
					flipped++
				}
			}
			c.Mark(column)
		}
		require.Positive(t, flipped)
		require.Equal(t, before, hashOf(t, w))
	})
	require.Equal(t, before, m.published())
}

// TestEveryBitShows flips each bit of each Temporal value of one entity: the hash changes, and
// Diff names the field.
func TestEveryBitShows(t *testing.T) {
	m := newRealm(t, realmConfig{})
	hs := m.spawnArrows(150)
	victim := hs[130]
	snap, err := m.r.Acquire()
	require.NoError(t, err)
	defer snap.Release()
	want := hashOf(t, snap)
	fields := map[string]bool{}
	seen := map[uint64]bool{want: true}
	m.window(func(w *registry.Window) {
		c, slot, err := registry.Locate(w, victim)
		require.NoError(t, err)
		p := hasherOf(m.r).planOf(c.Archetype())
		require.Len(t, p.columns, arrowTemporal+1, "one is split in two")
		for _, col := range p.columns {
			data := dataBytes(uintptr(col.leaves.cell), col.leaves)
			cell := c.Bytes(col.slot)[int(slot)*col.leaves.cell:][:col.leaves.cell]
			for i := range 8 * len(cell) {
				if !data[i/8] || raceEnabled && i%8 > 1 {
					continue
				}
				if col.comp == "Armor" && cell[i/8]^1<<(i%8) > 1 && i/8 == 8 {
					continue // a bool is 0 or 1
				}
				cell[i/8] ^= 1 << (i % 8)
				c.Mark(col.slot)
				got := hashOf(t, w)
				require.False(t, seen[got], "bit %d of %s.%s", i, col.comp, col.field)
				seen[got] = true
				d, differ := Diff(snap, w)
				require.True(t, differ)
				require.Equal(t, "Arrow[Armor Bag Feeling Position Velocity]", d.Archetype)
				require.Equal(t, 130, d.Slot)
				require.Equal(t, victim, d.Entity)
				require.Equal(t, col.comp, d.Component)
				require.NotEqual(t, fmt.Sprintf("%T %#[1]v", d.A), fmt.Sprintf("%T %#[1]v", d.B))
				fields[joinPath(d.Component, d.Field)] = true
				cell[i/8] ^= 1 << (i % 8)
			}
		}
		require.Equal(t, want, hashOf(t, w))
		_, differ := Diff(snap, w)
		require.False(t, differ)
	})
	all := []string{"Position.X", "Position.Y", "Position.Z", "Velocity.X", "Velocity.Y", "Armor.A", "Armor.B", "Armor.C", "Armor._", "Armor.g.real", "Armor.g.imag"}
	for i := range 3 {
		all = append(all, fmt.Sprintf("Armor.D[%d].E", i), fmt.Sprintf("Armor.D[%d].F", i))
	}
	for _, name := range all {
		require.True(t, fields[name], name)
		delete(fields, name)
	}
	require.Empty(t, fields)
}

// dataBytes says of each byte of a cell whether it is data, by way of put.
func dataBytes(size uintptr, l leaves) []bool {
	ones := make([]byte, l.size)
	for i := range ones {
		ones[i] = 0xff
	}
	cell := make([]byte, size)
	for i := range cell {
		cell[i] = 0x11
	}
	l.put(cell, ones)
	data := make([]bool, size)
	for i := range cell {
		data[i] = cell[i] == 0xff
	}
	return data
}

func TestHashSeesStructure(t *testing.T) {
	m := newRealm(t, realmConfig{})
	hs := m.spawnArrows(200)
	seen := map[uint64]string{m.published(): "before"}
	step := func(name string, fn func(w *registry.Window)) {
		m.window(fn)
		got := m.published()
		require.Empty(t, seen[got], name)
		seen[got] = name
	}
	step("inactive", func(w *registry.Window) { require.NoError(t, registry.SetActive(w, hs[3], false)) })
	step("dead", func(w *registry.Window) { require.NoError(t, w.Destroy(hs[5])) })
	step("dead while inactive", func(w *registry.Window) { require.NoError(t, w.Destroy(hs[3])) })
	step("a component more", func(w *registry.Window) { require.NoError(t, registry.Add(w, hs[20], frozen{})) })
	step("a component less", func(w *registry.Window) { require.NoError(t, registry.Remove[feeling](w, hs[21])) })
	step("another one in its place", func(w *registry.Window) {
		_, err := m.arrows.Spawn(w, anArrow(5))
		require.NoError(t, err)
	})
	step("of another class", func(w *registry.Window) {
		_, err := m.ghosts.Spawn(w, ghost{})
		require.NoError(t, err)
	})
}

// TestHashInsideOneCallback is about what no stamp tells of: inactive entities that die, move and come back.
func TestHashInsideOneCallback(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		m := newRealm(t, realmConfig{Config: registry.Config{TemporalFrames: temporal}})
		hs := m.spawnArrows(200)
		m.window(func(w *registry.Window) {
			for _, h := range hs[100:] {
				require.NoError(t, registry.SetActive(w, h, false))
			}
		})
		before := m.published()
		planned := errors.New("planned")
		for range 3 {
			require.ErrorIs(t, m.frame(func(w *registry.Window) error {
				require.Equal(t, before, hashOf(t, w))
				require.NoError(t, w.Destroy(hs[150]))
				dead := hashOf(t, w)
				require.NotEqual(t, before, dead)
				require.NoError(t, registry.Add(w, hs[151], frozen{}))
				require.NotEqual(t, dead, hashOf(t, w))
				return planned
			}, func(f *registry.Frame) {
				require.Equal(t, before, hashOf(t, f), "undone")
			}), planned)
			require.Equal(t, before, m.published())
		}
		require.NoError(t, m.frame(nil, func(f *registry.Frame) {
			hashOf(t, f)
			require.NoError(t, f.Destroy(hs[160]))
			hashOf(t, f)
			require.NoError(t, m.r.Destroy(hs[161]))
			hashOf(t, f)
		}))
		m.published()
		m.window(func(w *registry.Window) { // a loop is open: who is born is not shown yet
			var got uint64
			registry.Iterate(w)
			_, err := m.arrows.Spawn(w, anArrow(1))
			require.NoError(t, err)
			got = hashOf(t, w)
			registry.Finish(w)
			require.Equal(t, got, hashOf(t, w))
		})
	}
}

func TestHashErrors(t *testing.T) {
	m := newRealm(t, realmConfig{Config: registry.Config{TemporalFrames: 8}})
	_, err := Hash(nil)
	require.ErrorIs(t, err, registry.ErrExpired)
	var old *registry.Window
	m.window(func(w *registry.Window) {
		old = w
		_, err := m.sparks.Spawn(w, spark{})
		require.NoError(t, err)
	})
	_, err = Hash(old)
	require.ErrorIs(t, err, registry.ErrExpired)
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { Diff(old, old) })
	m.spawnArrows(3)
	want := m.published()
	for range 5 {
		m.window(func(*registry.Window) {})
	}
	snap, err := m.r.AcquireAt(2)
	require.NoError(t, err)
	require.Equal(t, want, hashOf(t, snap))
	snap.Release()
	_, err = Hash(snap)
	require.ErrorIs(t, err, registry.ErrExpired)

	m.window(func(w *registry.Window) {
		_, err := m.ghosts.Spawn(w, ghost{})
		require.NoError(t, err)
	})
	for range 5 {
		m.window(func(*registry.Window) {})
	}
	snap, err = m.r.AcquireAt(8)
	require.NoError(t, err)
	defer snap.Release()
	_, err = Hash(snap)
	require.ErrorIs(t, err, registry.ErrNotPublished)
	require.ErrorContains(t, err, "Ghost[Feeling]")
}

// TestHashIsThatOfAWalkWithoutMemory does whatever changes a state, in windows that fail and windows
// that do not, and hashes all along: hashOf compares.
func TestHashIsThatOfAWalkWithoutMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := realmConfig{slots: rapid.SampledFrom([]int{0, 64, 128}).Draw(rt, "slots")}
		c.TemporalFrames = rapid.SampledFrom([]int{0, 8}).Draw(rt, "ring")
		c.backward = rapid.Bool().Draw(rt, "backward")
		m := newRealm(t, c)
		defer m.core.Detach()
		var hs []handles.Local
		outside := false // somebody was destroyed whom the next window may be the first to see dead
		pick := func() handles.Local {
			if len(hs) == 0 {
				return 0
			}
			return hs[rapid.IntRange(0, len(hs)-1).Draw(rt, "who")]
		}
		structure := func(w *registry.Window) {
			switch rapid.IntRange(0, 9).Draw(rt, "op") {
			case 0, 1:
				n := rapid.SampledFrom([]int{1, 3, 64, 200}).Draw(rt, "n")
				born, err := m.arrows.SpawnBatch(w, n, func(i int, a *arrow) { *a = anArrow(i) })
				require.NoError(rt, err)
				hs = append(hs, born...)
			case 2:
				h, err := m.stones.Spawn(w, stone{})
				require.NoError(rt, err)
				hs = append(hs, h)
			case 3:
				_ = registry.Add(w, pick(), frozen{})
			case 4:
				_ = registry.Remove[frozen](w, pick())
			case 5:
				if i := rapid.IntRange(0, max(len(hs)-1, 0)).Draw(rt, "from"); len(hs) > 0 {
					w.DestroyBatch(hs[i:min(i+100, len(hs))])
				}
			case 6:
				if i := rapid.IntRange(0, max(len(hs)-1, 0)).Draw(rt, "from"); len(hs) > 0 {
					for _, h := range hs[i:min(i+70, len(hs))] {
						_ = registry.SetActive(w, h, false)
					}
				}
			case 7:
				_, outside = m.r.Destroy(pick()), true
			case 8:
				_ = w.Destroy(pick())
			case 9:
				_ = registry.Set(w, pick(), position{X: 1})
			}
		}
		planned := errors.New("planned")
		for range rapid.IntRange(1, 12).Draw(rt, "frames") {
			fails := rapid.IntRange(0, 3).Draw(rt, "fails") == 0
			known := len(hs)
			outside = false
			err := m.frame(func(w *registry.Window) error {
				hashOf(t, w)
				for range rapid.IntRange(0, 3).Draw(rt, "steps") {
					structure(w)
					hashOf(t, w)
				}
				if fails {
					hs = hs[:known]
					return planned
				}
				return nil
			}, func(f *registry.Frame) {
				hashOf(t, f)
				for range rapid.IntRange(0, 2).Draw(rt, "writes") {
					switch rapid.IntRange(0, 4).Draw(rt, "op") {
					case 0:
						_ = registry.Set(f, pick(), velocity{1, rapid.Float64().Draw(rt, "v")})
					case 1:
						_ = registry.SetActive(f, pick(), rapid.Bool().Draw(rt, "active"))
					case 2:
						_ = f.Destroy(pick())
					case 3:
						_, outside = m.r.Destroy(pick()), true
					case 4:
						if p, err := registry.Get[armor](f, pick()); err == nil {
							p.D[2].E++
						}
					}
					hashOf(t, f)
				}
			})
			if fails {
				require.ErrorIs(rt, err, planned)
			} else {
				require.NoError(rt, err)
			}
			snap, err := m.r.Acquire()
			require.NoError(rt, err)
			published := hashOf(t, snap)
			m.update(func(w *registry.Window) {
				d, differ := Diff(snap, w)
				require.Equal(rt, hashOf(t, w) != published, differ, d)
				require.True(rt, outside || !differ, "the next window has what was published, but %v", d)
			})
			if old, err := m.r.AcquireAt(snap.FrameNumber() - 1); err == nil && snap.FrameNumber() > 1 {
				h, err := Hash(old)
				if err == nil {
					_, differ := Diff(old, snap)
					require.Equal(rt, h != published, differ)
				}
				old.Release()
			}
			snap.Release()
			require.NoError(rt, m.r.Verify())
		}
	})
}

// TestHashGoesBack goes back to frames that are kept, and comes to the same hashes again.
func TestHashGoesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := realmConfig{slots: rapid.SampledFrom([]int{0, 64}).Draw(rt, "slots")}
		c.TemporalFrames = 8
		m := newRealm(t, c)
		defer m.core.Detach()
		var hs []handles.Local
		who := func() handles.Local {
			if len(hs) == 0 {
				return 0
			}
			return hs[rapid.IntRange(0, len(hs)-1).Draw(rt, "who")]
		}
		hashes, systems := map[uint64]uint64{}, map[uint64]func(f *registry.Frame){}
		for range rapid.IntRange(2, 14).Draw(rt, "frames") {
			ops := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 3).Draw(rt, "ops")
			type write struct {
				op int
				h  handles.Local
				v  float64
			}
			var writes []write
			for _, op := range rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(rt, "writes") {
				writes = append(writes, write{op, who(), rapid.Float64().Draw(rt, "v")})
			}
			system := func(f *registry.Frame) {
				hashOf(t, f)
				for _, w := range writes {
					switch w.op {
					case 0:
						_ = registry.Set(f, w.h, velocity{w.v, 1})
					case 1:
						_ = registry.SetActive(f, w.h, w.v > 1)
					case 2:
						_ = f.Destroy(w.h)
					case 3:
						_ = registry.Set(f, w.h, feeling{int32(w.v)})
					}
					hashOf(t, f)
				}
				got := hashOf(t, f)
				was, again := hashes[f.FrameNumber()]
				require.True(rt, !again || was == got, "frame %d: %#x, and %#x before", f.FrameNumber(), got, was)
				hashes[f.FrameNumber()] = got
			}
			m.window(func(w *registry.Window) {
				if was, ok := hashes[w.FrameNumber()-1]; ok {
					require.Equal(rt, was, hashOf(t, w))
				}
				for _, op := range ops {
					switch op {
					case 0, 1:
						born, err := m.arrows.SpawnBatch(w, 70, func(i int, a *arrow) { *a = anArrow(i) })
						require.NoError(rt, err)
						hs = append(hs, born...)
					case 2:
						_ = registry.Add(w, who(), frozen{})
					case 3:
						_ = registry.Remove[frozen](w, who())
					case 4:
						_ = w.Destroy(who())
					case 5:
						_ = registry.SetActive(w, who(), false)
					case 6:
						_ = registry.Set(w, who(), position{})
					}
					hashOf(t, w)
				}
			}, system)
			systems[m.core.FrameNumber()] = system
			require.Equal(rt, hashes[m.core.FrameNumber()], m.published())
			if rapid.Bool().Draw(rt, "back") {
				now := m.core.FrameNumber()
				to := now - min(now, uint64(rapid.IntRange(0, 6).Draw(rt, "depth")))
				m.goBack(to, systems)
				require.Equal(rt, now, m.core.FrameNumber())
				require.Equal(rt, hashes[now], m.published())
				require.NoError(rt, m.r.Verify())
			}
		}
	})
}

func TestHashForManyReaders(t *testing.T) {
	m := newRealm(t, realmConfig{Config: registry.Config{TemporalFrames: 8}, slots: 64})
	hs := m.spawnArrows(300)
	var known sync.Map // by frame
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				snap, err := m.r.Acquire()
				if err != nil {
					t.Error(err)
					return
				}
				got, err := Hash(snap)
				if was, ok := known.LoadOrStore(snap.FrameNumber(), got); err != nil || ok && was != got {
					t.Errorf("frame %d: %#x, and %#x before; %v", snap.FrameNumber(), got, was, err)
				}
				snap.Release()
				runtime.Gosched()
			}
		})
	}
	var last uint64
	for i := range 100 {
		require.NoError(t, m.frame(func(w *registry.Window) error {
			for _, h := range hs[i : i+20] {
				require.NoError(t, registry.Add(w, h, frozen{}))
			}
			_, err := Hash(w)
			return err
		}, func(f *registry.Frame) {
			for _, h := range hs[i : i+50] {
				require.NoError(t, registry.Set(f, h, position{X: float32(i)}))
			}
			var err error
			last, err = Hash(f)
			require.NoError(t, err)
		}))
		if want, ok := known.Load(uint64(i + 2)); ok {
			require.Equal(t, want, last, "readers see what the frame ended with")
		}
	}
	close(stop)
	readers.Wait()
	// The last frames may not have been published, for the readers can have held all buffers there are.
	require.NoError(t, m.frame(nil, func(f *registry.Frame) {
		var err error
		last, err = Hash(f)
		require.NoError(t, err)
	}))
	require.Equal(t, last, m.published())
}

func TestWhoIsNotFirstHashesToo(t *testing.T) {
	m := newRealm(t, realmConfig{})
	m.spawnArrows(100)
	want := m.published()
	h := hasherOf(m.r)
	var taken []*walk
	for range len(h.sides[1]) + 2 {
		w := h.take(true)
		require.Equal(t, len(taken) == 0, w.remember)
		taken = append(taken, w)
		require.NoError(t, m.r.Read(func(s *registry.Snapshot) error {
			got, err := Hash(s)
			require.Equal(t, want, got)
			return err
		}))
	}
	for _, w := range taken {
		w.mu.Unlock()
	}
	require.Equal(t, want, m.published())
}

func TestChunksThatAreGoneAreForgotten(t *testing.T) {
	m := newRealm(t, realmConfig{slots: 64})
	hs := m.spawnArrows(64 * 300)
	m.published()
	w := &hasherOf(m.r).sides[1][0]
	require.Equal(t, 300, w.kept)
	m.window(func(w *registry.Window) { w.DestroyBatch(hs[64*10:]) })
	for range 6 {
		m.window(func(*registry.Window) {})
		m.published()
	}
	require.LessOrEqual(t, w.kept, 2*10+keptAnyway)
	require.Less(t, len(w.chunks), 200)
}

func TestHashAllocatesNothing(t *testing.T) {
	if raceEnabled || check.Enabled {
		t.Skip("checks and their bookkeeping allocate")
	}
	m := newRealm(t, realmConfig{})
	hs := m.spawnArrows(3000)
	m.window(func(w *registry.Window) { w.DestroyBatch(hs[100:150]) })
	m.window(func(w *registry.Window) {})
	m.update(func(w *registry.Window) {
		n := 0
		require.Zero(t, testing.AllocsPerRun(100, func() {
			n++
			require.NoError(t, registry.Set(w, hs[1000+n], position{X: float32(n)}))
			_, err := Hash(w)
			require.NoError(t, err)
		}))
	})
	require.NoError(t, m.r.Read(func(s *registry.Snapshot) error {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, err := Hash(s)
			require.NoError(t, err)
		}))
		return nil
	}))
}
