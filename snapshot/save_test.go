package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// AppendBinary and UnmarshalBinary are the codec of bag, whose strings the tests keep free of line ends.
func (b *bag) AppendBinary(to []byte) ([]byte, error) {
	for _, item := range b.Items {
		to = append(append(to, item...), '\n')
	}
	return to, nil
}

func (b *bag) UnmarshalBinary(data []byte) error {
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return errors.New("an item without an end")
		}
		b.Items, data = append(b.Items, string(data[:i])), data[i+1:]
	}
	return nil
}

// save gives the bytes of a state. Save and Take write the same ones.
func save(t require.TestingT, w *registry.Window) []byte {
	var saved, taken bytes.Buffer
	require.NoError(t, Save(&saved, w))
	image, err := Take(w)
	require.NoError(t, err)
	n, err := image.WriteTo(&taken)
	require.NoError(t, err)
	require.EqualValues(t, taken.Len(), n)
	require.True(t, bytes.Equal(saved.Bytes(), taken.Bytes()), "Save and Take differ")
	return saved.Bytes()
}

func (m *realm) save() (b []byte) {
	m.t.Helper()
	m.update(func(w *registry.Window) { b = save(m.t, w) })
	return b
}

func (m *realm) load(b []byte) error {
	return m.r.Update(func(w *registry.Window) error { return Load(bytes.NewReader(b), w) })
}

// deed is an operation, as numbers: what it is, on whom, and how.
type deed struct{ Kind, Whom, How int }

func drawDeeds(t *rapid.T, most int) []deed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{rapid.IntRange(0, 28).Draw(t, "kind"), rapid.IntRange(0, 400).Draw(t, "whom"), rapid.IntRange(0, 99).Draw(t, "how")}
	}), 0, most).Draw(t, "deeds")
}

// player does deeds, and notes what comes of them.
type player struct {
	*realm
	known []handles.Local
	notes []string
}

func (p *player) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *player) met(h handles.Local, err error) {
	if p.note("%v %v", h, err); err == nil {
		p.known = append(p.known, h)
	}
}

func (p *player) whom(d deed) handles.Local {
	if len(p.known) == 0 {
		return 0
	}
	return p.known[max(0, len(p.known)-1-d.Whom%len(p.known))]
}

// inWindow does a deed in a window.
func (p *player) inWindow(w *registry.Window, d deed) {
	h := p.whom(d)
	switch d.Kind {
	case 0, 1:
		p.met(p.arrows.Spawn(w, anArrow(d.How)))
	case 2:
		p.met(p.stones.Spawn(w, stone{position{X: float32(d.How)}}))
	case 3:
		p.met(p.ghosts.Spawn(w, ghost{feeling{int32(d.How)}}))
	case 4:
		hs, err := p.arrows.SpawnBatch(w, 3*d.How, func(i int, a *arrow) { *a = anArrow(i) })
		p.note("%v %v", hs, err)
		p.known = append(p.known, hs...)
	case 5:
		p.note("%v", p.stones.SpawnReserved(w, h, stone{}))
	case 6, 7:
		p.note("%v", w.Destroy(h))
	case 8:
		p.note("%d", w.DestroyBatch(p.known[max(0, len(p.known)-4*d.How):]))
	case 9:
		p.note("%v", registry.Add(w, h, frozen{}))
	case 10:
		p.note("%v", registry.Remove[position](w, h))
	case 11:
		p.note("%v", registry.Add(w, h, bag{[]string{strings.Repeat("x", d.How), "y"}}))
	case 12:
		p.note("%v", registry.Set(w, h, velocity{X: float64(d.How)}))
	case 13:
		p.note("%v", registry.SetActive(w, h, d.How%2 == 0))
	case 14:
		p.note("%v", registry.SetParent(w, h, p.whom(deed{Whom: d.How})))
	case 15:
		n, err := w.AssignNet(h)
		p.note("%v %v", n, err)
	case 16:
		p.note("%v", w.BindNet(h, handles.NewNet(9, uint32(1+d.How%5), uint32(1+d.How/5))))
	case 17:
		p.note("%d", w.ProcessDeferredDestructions())
	case 18:
		p.note("%d %d", w.ConfirmLocalRecycles(), w.ConfirmNetRecycles())
	case 19:
		w.Named(fmt.Sprint("cause ", d.How%3))
	case 20:
		if blocks := registry.Blocks(w); len(blocks) < 4 {
			b, err := p.makeBlock(w, d)
			p.note("%v", err)
			p.known = append(p.known, b.Slot(0), b.Slot(d.How))
		}
	default:
		if blocks := registry.Blocks(w); len(blocks) > 0 {
			p.inPool(w, blocks[d.Whom%len(blocks)], d)
		}
	}
}

// makeBlock makes a pool.
func (p *player) makeBlock(w *registry.Window, d deed) (*registry.Block, error) {
	if d.Whom%2 == 0 {
		return registry.NewBlock(w, p.stones, "stones", 1+d.How, &stone{position{Y: float32(d.How)}})
	}
	a := anArrow(d.How)
	return registry.NewBlock(w, p.arrows, "", 1+d.How, &a)
}

// inPool does a deed in a pool, in a window or a frame.
func (p *player) inPool(a registry.Access, b *registry.Block, d deed) {
	h := p.whom(d)
	switch d.Kind {
	case 21, 22, 23:
		if b.Name() == "stones" {
			p.met(registry.SpawnIn(a, p.stones, b, &stone{position{X: float32(d.How)}}))
		} else {
			e := anArrow(d.How)
			p.met(registry.SpawnIn(a, p.arrows, b, &e))
		}
	case 24:
		p.met(b.SpawnFrom(a, h))
	case 25, 26:
		p.note("%v", b.Despawn(a, b.Slot(d.How%b.Len())))
	case 27:
		p.note("%v", b.Despawn(a, h))
	default:
		p.note("%v", registry.Set(a, b.Slot(d.How%b.Len()), position{Z: float32(d.How)}))
	}
}

// inFrame does a deed in a system, or outside of everything.
func (p *player) inFrame(f *registry.Frame, d deed) {
	h := p.whom(d)
	switch d.Kind {
	case 0, 1, 2:
		p.met(p.arrows.SpawnLater(f, anArrow(d.How)))
	case 3, 4:
		p.met(p.r.Reserve())
	case 5, 6:
		p.note("%v", f.Destroy(h))
	case 7, 8:
		p.note("%v", p.r.Destroy(h))
	case 9, 10:
		p.note("%v", registry.AddLater(f, h, position{Y: float32(d.How)}))
	case 11:
		p.note("%v", registry.RemoveLater[bag](f, h))
	case 12:
		p.note("%v", registry.SetActive(f, h, d.How%2 == 0))
	case 13, 14:
		p.note("%v", registry.Set(f, h, feeling{int32(d.How)}))
	case 15:
		p.note("%d", f.Rand().Int())
	case 16, 17, 18, 19, 20:
		p.note("%v", registry.Set(f, h, position{Z: float32(d.How)}))
	default:
		if blocks := p.r.BlocksNamed("stones"); len(blocks) > 0 {
			p.inPool(f, blocks[d.Whom%len(blocks)], d)
		}
	}
}

// turn is a frame of deeds.
type turn struct {
	between, window, system []deed
	fails                   bool
}

func drawTurn(t *rapid.T) turn {
	return turn{drawDeeds(t, 3), drawDeeds(t, 6), drawDeeds(t, 4), rapid.IntRange(0, 5).Draw(t, "fails") == 0}
}

var errFails = errors.New("fails")

// play runs a frame. at, which may be nil, runs at the end of its window.
func (p *player) play(n turn, at func(w *registry.Window)) {
	if len(n.between) > 0 {
		p.update(func(w *registry.Window) {
			for _, d := range n.between {
				p.inWindow(w, d)
			}
		})
	}
	err := p.frame(func(w *registry.Window) error {
		for _, d := range n.window {
			p.inWindow(w, d)
		}
		if at != nil {
			at(w)
			return nil
		}
		if n.fails {
			return errFails
		}
		return nil
	}, func(f *registry.Frame) {
		p.note("frame %d", f.FrameNumber())
		for _, d := range n.system {
			p.inFrame(f, d)
		}
	})
	p.note("%v", err)
	require.NoError(p.t, p.core.Enter(false))
	if now := p.core.FrameNumber(); now > 2 {
		p.note("%d", p.core.ConfirmLocal(now-2))
	}
	p.core.Leave()
}

// sees notes all that anybody can see.
func (p *player) sees() {
	require.NoError(p.t, p.r.Verify())
	p.update(func(w *registry.Window) {
		p.note("%x", hashOf(p.t, w))
		p.inWindow(w, deed{}) // a birth brings statistics up to date
		for _, b := range registry.Blocks(w) {
			c := b.Counts()
			p.note("%d of %d", c.InUse, b.Len())
			for i := range b.Len() {
				p.note("%v %t", b.Slot(i), b.Idle(i))
			}
		}
	})
	for _, h := range p.known {
		g, err := p.r.Resolve(h)
		p.note("%v %v %v", h, g, err)
		n, err := p.r.NetOf(h)
		p.note("%v %v", n, err)
	}
	s := p.r.Stats()
	for i := range s.Archetypes {
		s.Archetypes[i].Bytes = 0 // memory is no state
	}
	p.note("%+v", s)
}

func TestALoadedRegistryGoesOnAsTheSavedOne(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
		c.MaxEntities, c.Owner = 2000, 3
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			run := 0
			rapid.Check(t, func(rt *rapid.T) {
				if run++; raceEnabled && run%8 != 1 {
					return // each takes ten times as long
				}
				hooks := registry.Hooks{OnError: func(error) {}} // of what was put off
				a := &player{realm: newRealm(t, realmConfig{Config: c, hooks: hooks, slots: rapid.SampledFrom([]int{0, 64, 128}).Draw(rt, "slots")})}
				for range rapid.IntRange(0, 6).Draw(rt, "before") {
					a.play(drawTurn(rt), nil)
				}
				b := &player{realm: newRealm(t, realmConfig{Config: c, hooks: hooks, slots: slotsOf(a.realm), backward: rapid.Bool().Draw(rt, "backward")})}
				inFrame := rapid.Bool().Draw(rt, "in a frame")
				for range rapid.IntRange(0, 12).Draw(rt, "empty frames") {
					if inFrame || a.r.Stats().Frame > 0 { // engines that have begun, both
						b.window(func(*registry.Window) {})
					}
				}
				b.notes = nil
				var bytesOf []byte
				if inFrame {
					n := drawTurn(rt)
					a.play(n, func(w *registry.Window) {
						bytesOf = save(rt, w)
						a.notes, b.known = nil, slices.Clone(a.known)
					})
					b.play(turn{system: n.system}, func(w *registry.Window) {
						require.NoError(rt, Load(bytes.NewReader(bytesOf), w))
						require.NoError(rt, b.r.Verify())
						require.True(rt, bytes.Equal(bytesOf, save(rt, w)), "saved again it is something else")
					})
				} else {
					bytesOf = a.save()
					require.NoError(rt, b.load(bytesOf))
					require.NoError(rt, b.r.Verify())
					require.True(rt, bytes.Equal(bytesOf, b.save()), "saved again it is something else")
					a.notes, b.known = nil, slices.Clone(a.known)
				}
				for range rapid.IntRange(0, 6).Draw(rt, "after") {
					n := drawTurn(rt)
					a.play(n, nil)
					b.play(n, nil)
				}
				a.sees()
				b.sees()
				require.Equal(rt, a.notes, b.notes)
				require.True(rt, bytes.Equal(a.save(), b.save()), "states differ that went the same way")
				a.window(func(*registry.Window) {})
				b.window(func(*registry.Window) {})
				require.Equal(rt, a.published(), b.published())
			})
		})
	}
}

// slotsOf is the chunk size that a realm was made with.
func slotsOf(m *realm) int { return m.r.ClassInfos()[0].Slots }

func TestSnapshot1LoadAndLoadAgain(t *testing.T) { t.Run("snapshot-1", loadAndLoadAgain) }

func loadAndLoadAgain(t *testing.T) {
	a := &player{realm: newRealm(t, realmConfig{Config: registry.Config{Deterministic: true}})}
	a.spawnArrows(300)
	a.window(func(w *registry.Window) {
		h, err := a.stones.Spawn(w, stone{})
		require.NoError(t, err)
		_, err = a.r.Reserve()
		require.NoError(t, err)
		require.NoError(t, a.r.Destroy(h))
	})
	saved, hash := a.save(), uint64(0)
	a.update(func(w *registry.Window) { hash = hashOf(t, w) })

	b := newRealm(t, realmConfig{Config: registry.Config{Deterministic: true}})
	require.NoError(t, b.load(saved))
	b.spawnArrows(100)
	b.update(func(w *registry.Window) { require.NoError(t, w.Reset()) })
	require.ErrorIs(t, b.load(saved), registry.ErrNotEmpty, "a handle that was dead would live again")
	require.Zero(t, b.r.Stats().Live)
	require.NoError(t, b.r.Verify())

	var others []*realm
	for range 2 {
		c := newRealm(t, realmConfig{Config: registry.Config{Deterministic: true}})
		require.NoError(t, c.load(saved))
		require.NoError(t, c.r.Verify())
		c.update(func(w *registry.Window) { require.Equal(t, hash, hashOf(t, w)) })
		others = append(others, c)
	}
	require.True(t, bytes.Equal(saved, others[0].save()))
	require.Equal(t, a.spawnArrows(100), others[1].spawnArrows(100))
}

func TestAHandleBornAfterTheSaveIsDeadAfterTheLoad(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}} {
		a := newRealm(t, realmConfig{Config: c})
		old := a.spawnArrows(10)
		saved := a.save()
		young := a.spawnArrows(10)
		reserved, err := a.r.Reserve()
		require.NoError(t, err)

		b := newRealm(t, realmConfig{Config: c})
		require.NoError(t, b.load(saved))
		for _, h := range old {
			require.True(t, b.r.Alive(h))
		}
		for _, h := range append(young, reserved) {
			require.False(t, b.r.Alive(h))
			_, err := b.r.Resolve(h)
			require.ErrorIs(t, err, registry.ErrInvalidHandle, "nobody was called that yet")
			require.ErrorIs(t, b.r.Destroy(h), registry.ErrInvalidHandle)
		}
		require.Equal(t, young, b.spawnArrows(10), "the next spawns are those of the saved run")
		again, err := b.r.Reserve()
		require.NoError(t, err)
		require.Equal(t, reserved, again)
	}
}

func TestCosmeticEntitiesAreDeadAfterTheLoad(t *testing.T) {
	a := newRealm(t, realmConfig{})
	var sparks, arrows []handles.Local
	var child handles.Local
	a.window(func(w *registry.Window) {
		var err error
		for i := range 200 {
			h, err := a.sparks.Spawn(w, spark{})
			require.NoError(t, err)
			require.NoError(t, registry.SetActive(w, h, i%3 == 0))
			sparks = append(sparks, h)
		}
		_, err = w.AssignNet(sparks[0])
		require.NoError(t, err)
		child, err = a.arrows.Spawn(w, anArrow(1))
		require.NoError(t, err)
		require.NoError(t, registry.SetParent(w, child, sparks[5]))
		require.NoError(t, w.Destroy(sparks[9]))
	})
	saved := a.save()
	b := newRealm(t, realmConfig{})
	require.NoError(t, b.load(saved))
	require.NoError(t, b.r.Verify())
	require.True(t, bytes.Equal(saved, b.save()))
	for _, h := range sparks {
		require.False(t, b.r.Alive(h))
	}
	require.True(t, b.r.Alive(child))
	require.Equal(t, 1, b.r.Stats().Live)
	arrows = a.spawnArrows(3000)
	require.Equal(t, arrows, b.spawnArrows(3000), "the others get the same handles")
	a.window(func(w *registry.Window) { // and the same places
		b.window(func(v *registry.Window) {
			for _, h := range arrows {
				p, _ := registry.CacheIndex(w, h)
				q, _ := registry.CacheIndex(v, h)
				require.Equal(t, p, q)
			}
		})
	})
	require.NoError(t, b.r.Verify())
	require.Zero(t, b.r.Stats().Tombstoned, "they are buried with the next frame")
	require.True(t, b.r.Alive(child), "a child of theirs has no parent any more")
}

func TestLoadedFramesArePublished(t *testing.T) {
	for _, c := range []registry.Config{{}, {TemporalFrames: 8}} {
		a := newRealm(t, realmConfig{Config: c})
		hs := a.spawnArrows(100)
		for range 100 {
			a.window(func(*registry.Window) {})
		}
		saved := a.save()
		for _, before := range []int{0, 1, 7, 300} { // frames of the other registry: fewer, and more
			b := newRealm(t, realmConfig{Config: c})
			var early *registry.Snapshot
			for range before {
				b.window(func(*registry.Window) {})
			}
			if before > 0 {
				var err error
				early, err = b.r.Acquire()
				require.NoError(t, err)
			}
			require.NoError(t, b.load(saved))
			_, err := b.r.Acquire()
			require.ErrorIs(t, err, registry.ErrNotPublished)
			require.EqualValues(t, 101, b.r.Stats().Frame)
			for n := uint64(102); n < 130; n++ {
				require.NoError(t, b.frame(nil, func(f *registry.Frame) {
					require.Equal(t, n, f.FrameNumber())
					require.NoError(t, registry.Set(f, hs[n%100], position{X: float32(n)}))
				}))
				s, err := b.r.Acquire()
				require.NoError(t, err)
				require.Equal(t, n, s.FrameNumber())
				for i, h := range hs {
					p, err := registry.Peek[position](s, h)
					require.NoError(t, err)
					want := anArrow(i).Position
					if at := uint64(i); at <= n%100 && at >= 2 {
						want = position{X: float32(100 + i)}
					}
					require.Equal(t, want, p, "entity %d in frame %d", i, n)
					f, err := registry.Peek[feeling](s, h)
					require.NoError(t, err)
					require.Equal(t, feeling{int32(i)}, f)
				}
				changed := registry.Since(s, n-1)
				require.Less(t, changed, s.Storage(), "what changed in the frame is above")
				require.LessOrEqual(t, s.Storage(), registry.Since(s, n))
				s.Release()
			}
			if early != nil {
				require.EqualValues(t, before, early.FrameNumber(), "a reader keeps what it has")
				require.Zero(t, len(early.Directory().Archetypes()))
				early.Release()
			}
			require.NoError(t, b.r.Verify())
		}
	}
}

func TestReadersAndOthersMayGoOnWhileAStateIsLoaded(t *testing.T) {
	a := newRealm(t, realmConfig{})
	hs := a.spawnArrows(500)
	saved := a.save()
	for range 20 {
		b := newRealm(t, realmConfig{})
		b.window(func(*registry.Window) {})
		stop := make(chan struct{})
		var others sync.WaitGroup
		for i := range 3 {
			others.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if s, err := b.r.Acquire(); err == nil {
						_, _ = registry.Peek[position](s, hs[n%500])
						s.Release()
					}
					if s, err := b.r.AcquireAt(uint64(n % 4)); err == nil {
						s.Release()
					}
					h := hs[(n*7+i)%500]
					if n := b.r.Alive(h); n && h.Index()%2 == 0 {
						_ = b.r.Destroy(h)
					}
					_, _ = b.r.Resolve(h)
					_ = b.r.Stats()
				}
			})
		}
		b.window(func(w *registry.Window) { require.NoError(t, Load(bytes.NewReader(saved), w)) })
		for range 5 {
			b.window(func(*registry.Window) {})
		}
		close(stop)
		others.Wait()
		b.window(func(*registry.Window) {})
		require.NoError(t, b.r.Verify())
	}
}

func TestSaveWhileOthersReserveAndDestroy(t *testing.T) {
	for _, c := range []registry.Config{{MaxEntities: 20_000}, {MaxEntities: 20_000, Deterministic: true}} {
		a := newRealm(t, realmConfig{Config: c})
		hs := a.spawnArrows(2000)
		a.window(func(w *registry.Window) { w.DestroyBatch(hs[:700]) })
		a.window(func(w *registry.Window) {
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
		})
		rounds, deeds := 10, 6000
		if raceEnabled {
			rounds, deeds = 3, 600
		}
		for round := range rounds {
			var others sync.WaitGroup
			for i := range 3 {
				others.Go(func() {
					for n := i; n < deeds; n += 3 {
						if h, err := a.r.Reserve(); err == nil {
							runtime.Gosched()
							_ = a.r.Destroy(h)
						}
						_ = a.r.Destroy(hs[700+(n*31+round)%1300])
					}
				})
			}
			var saved bytes.Buffer
			var spawned []handles.Local
			a.window(func(w *registry.Window) {
				require.NoError(t, Save(&saved, w))
				w.ProcessDeferredDestructions()
				w.ConfirmLocalRecycles()
				more, _ := a.arrows.SpawnBatch(w, 50, nil) // they may have taken all there is
				spawned = append(spawned, more...)
			})
			others.Wait()
			copy(hs[700+50*round:], spawned)
			b := newRealm(t, realmConfig{Config: c})
			require.NoError(t, b.load(saved.Bytes()))
			require.NoError(t, b.r.Verify())
			b.window(func(w *registry.Window) { _, _ = b.arrows.SpawnBatch(w, 100, nil) })
			require.NoError(t, b.r.Verify())
		}
		require.NoError(t, a.r.Verify())
	}
}

func TestSaveIsRefusedWhileOperationsWait(t *testing.T) {
	m := newRealm(t, realmConfig{})
	var first, second error
	require.NoError(t, m.frame(nil, func(f *registry.Frame) {
		f.Defer(func(w *registry.Window) error { first = Save(io.Discard, w); return nil })
		f.Defer(func(w *registry.Window) error { second = Save(io.Discard, w); return nil })
	}))
	m.window(func(*registry.Window) {})
	require.ErrorIs(t, first, registry.ErrPutOff)
	require.NoError(t, second, "nothing waits behind it")
}

func TestTokensOfSavesAndLoads(t *testing.T) {
	m := newRealm(t, realmConfig{})
	var late *registry.Window
	saved := m.save()
	m.update(func(w *registry.Window) { late = w })
	for _, w := range []*registry.Window{late, nil} {
		require.ErrorIs(t, Save(io.Discard, w), registry.ErrExpired)
		_, err := Take(w)
		require.ErrorIs(t, err, registry.ErrExpired)
		require.ErrorIs(t, Load(bytes.NewReader(saved), w), registry.ErrExpired)
	}
	require.Error(t, SaveFile(filepath.Join(t.TempDir(), "none"), nil))
	m.update(func(w *registry.Window) {
		registry.Iterate(w)
		defer registry.Finish(w)
		require.NoError(t, Save(io.Discard, w))
		require.ErrorIs(t, Load(bytes.NewReader(saved), w), registry.ErrIterating)
	})
}

func TestFilesOfStates(t *testing.T) {
	a := newRealm(t, realmConfig{})
	a.spawnArrows(2000)
	path := filepath.Join(t.TempDir(), "world")
	var image *Image
	a.update(func(w *registry.Window) {
		var err error
		image, err = Take(w)
		require.NoError(t, err)
	})
	saved := a.save()
	a.window(func(w *registry.Window) { require.NoError(t, w.Reset()) }) // the image has nothing to do with it
	require.NoError(t, SaveFile(path, image))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(saved, got))

	b := newRealm(t, realmConfig{})
	b.update(func(w *registry.Window) {
		require.ErrorIs(t, LoadFile(path+"?", w), os.ErrNotExist)
		require.NoError(t, LoadFile(path, w))
	})
	require.Equal(t, 2000, b.r.Stats().Live)
	c := newRealm(t, realmConfig{})
	require.NoError(t, os.Truncate(path, int64(len(got)-1)))
	c.update(func(w *registry.Window) {
		err := LoadFile(path, w)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, path)
	})
}

// stingyWriter takes only some bytes.
type stingyWriter struct{ left int }

func (s *stingyWriter) Write(b []byte) (int, error) {
	if len(b) <= s.left {
		s.left -= len(b)
		return len(b), nil
	}
	n := s.left
	s.left = 0
	return n, errDisk
}

func TestFailingWritersChangeNothing(t *testing.T) {
	m := newRealm(t, realmConfig{})
	m.spawnArrows(300)
	saved := m.save()
	before := m.r.Stats()
	m.update(func(w *registry.Window) {
		for n := 0; n < len(saved); n += 97 {
			require.ErrorIs(t, Save(&stingyWriter{n}, w), errDisk)
		}
		require.NoError(t, Save(&stingyWriter{len(saved)}, w))
		image, err := Take(w)
		require.NoError(t, err)
		n, err := image.WriteTo(&stingyWriter{1000})
		require.ErrorIs(t, err, errDisk)
		require.EqualValues(t, 1000, n)
	})
	require.Equal(t, before, m.r.Stats())
	require.True(t, bytes.Equal(saved, m.save()))
	require.NoError(t, m.r.Verify())
}

// The components of the tests of codecs.
type (
	noCodec   struct{ Name *string }
	halfCodec struct{ Name *string } // can be written only
	marshals  struct{ Name string }  // by MarshalBinary, of the value
	moody     struct {               // fails, by what it is
		Mood string
	}
	pair struct { // split
		Left, Right string
		n           int
	}
)

func (halfCodec) MarshalBinary() ([]byte, error) { return nil, nil }

func (m marshals) MarshalBinary() ([]byte, error) { return []byte(m.Name), nil }

func (m *marshals) UnmarshalBinary(b []byte) error { m.Name = string(b); return nil }

func (m *moody) AppendBinary(b []byte) ([]byte, error) {
	switch m.Mood {
	case "fails":
		return nil, errDisk
	case "panics":
		panic("in a mood")
	}
	return append(b, m.Mood...), nil
}

func (m *moody) UnmarshalBinary(b []byte) error {
	m.Mood = string(b)
	switch m.Mood {
	case "cannot be read":
		return errDisk
	case "cannot be read calmly":
		panic("in a mood")
	}
	return nil
}

func (p *pair) AppendBinary(b []byte) ([]byte, error) {
	return append(b, fmt.Sprintf("%s/%s/%d", p.Left, p.Right, p.n)...), nil
}

func (p *pair) UnmarshalBinary(b []byte) error {
	parts := strings.Split(string(b), "/")
	if len(parts) != 3 {
		return errors.New("no pair")
	}
	p.Left, p.Right = parts[0], parts[1]
	_, err := fmt.Sscan(parts[2], &p.n)
	return err
}

type (
	classNoCodec  struct{ C noCodec }
	classHalf     struct{ C halfCodec }
	classMarshals struct{ C marshals }
	classMoody    struct{ C moody }
	classPair     struct{ C pair }
)

// coded is a registry with classes whose components hold pointers.
func coded(t testing.TB) *realm {
	m := newRealm(t, realmConfig{})
	require.NoError(t, component[pair](m.r, registry.Split()))
	require.NoError(t, component[marshals](m.r, registry.InTier(archetype.Volatile)))
	return m
}

// spawnOf makes a class and an entity of it.
func spawnOf[E any](m *realm, e E) (h handles.Local, c *registry.Class[E]) {
	m.t.Helper()
	c, err := registry.RegisterClass[E](m.r)
	require.NoError(m.t, err)
	m.update(func(w *registry.Window) {
		h, err = c.Spawn(w, e)
		require.NoError(m.t, err)
	})
	return h, c
}

func TestAComponentWithPointersNeedsACodec(t *testing.T) {
	m := coded(t)
	h, _ := spawnOf(m, classNoCodec{noCodec{new(string)}})
	refused := func(typ string) {
		m.update(func(w *registry.Window) {
			var out bytes.Buffer
			err := Save(&out, w)
			require.ErrorIs(t, err, ErrNoCodec)
			require.ErrorContains(t, err, typ)
			require.Zero(t, out.Len(), "nothing is written")
			_, err = Take(w)
			require.ErrorIs(t, err, ErrNoCodec)
		})
	}
	refused("snapshot.noCodec")
	m.update(func(w *registry.Window) { require.NoError(t, w.Destroy(h)) })
	m.save() // nobody has one
	spawnOf(m, classHalf{})
	refused("snapshot.halfCodec")
}

func TestCodecsWriteAndReadComponents(t *testing.T) {
	a, b := coded(t), coded(t)
	h, _ := spawnOf(a, classMarshals{marshals{"somebody"}})
	g, _ := spawnOf(a, classPair{pair{"left", "right", -4}})
	_, err := registry.RegisterClass[classMarshals](b.r)
	require.NoError(t, err)
	_, err = registry.RegisterClass[classPair](b.r)
	require.NoError(t, err)
	saved := a.save()
	require.NoError(t, b.load(saved))
	require.True(t, bytes.Equal(saved, b.save()))
	b.update(func(w *registry.Window) {
		c, err := registry.Peek[marshals](w, h)
		require.NoError(t, err)
		require.Equal(t, marshals{"somebody"}, c)
		p, err := registry.Peek[pair](w, g)
		require.NoError(t, err)
		require.Equal(t, pair{"left", "right", -4}, p)
	})
	require.NoError(t, b.frame(nil, nil))
	require.NoError(t, b.r.Read(func(s *registry.Snapshot) error {
		c, err := registry.Peek[marshals](s, h)
		require.Equal(t, marshals{"somebody"}, c)
		return err
	}))
}

func TestCodecsThatFailAreErrors(t *testing.T) {
	for mood, want := range map[string]string{"fails": "cannot be written: " + errDisk.Error(), "panics": "panic: in a mood"} {
		m := coded(t)
		spawnOf(m, classMoody{moody{mood}})
		m.update(func(w *registry.Window) {
			require.ErrorContains(t, Save(io.Discard, w), want)
			_, err := Take(w)
			require.ErrorContains(t, err, "snapshot.moody")
		})
	}
	for mood, want := range map[string]string{"cannot be read": "cannot be read: " + errDisk.Error(), "cannot be read calmly": "panic: in a mood"} {
		a, b := coded(t), coded(t)
		spawnOf(a, classMoody{moody{mood}})
		saved := a.save()
		_, err := registry.RegisterClass[classMoody](b.r)
		require.NoError(t, err)
		before := b.r.Stats()
		require.ErrorContains(t, b.load(saved), want)
		require.Equal(t, before, b.r.Stats())
		require.NoError(t, b.r.Verify())
	}
}

// resealed makes good checksums for sections that were changed.
func resealed(t require.TestingT, b []byte, change func(sections map[uint32][]byte)) []byte {
	c, err := readContainer(bytes.NewReader(b), 0)
	require.NoError(t, err)
	sections := map[uint32][]byte{}
	for _, s := range c.sections {
		sections[s.id] = bytes.Clone(s.data)
	}
	change(sections)
	out := newContainer()
	for id := range uint32(100) {
		if data, ok := sections[id]; ok {
			out.section(id).bytes(data)
		}
	}
	return written(t, out)
}

func TestSnapshot6DamagedBytesOtherClasses(t *testing.T) {
	t.Run("snapshot-6", damagedBytesOtherClasses)
}

func damagedBytesOtherClasses(t *testing.T) {
	a := newRealm(t, realmConfig{slots: 64})
	a.spawnArrows(120)
	saved := a.save()
	b := newRealm(t, realmConfig{slots: 64})
	refused := func(w *registry.Window, data []byte, errs ...error) {
		err := Load(bytes.NewReader(data), w)
		require.Error(t, err)
		for _, is := range errs {
			if errors.Is(err, is) {
				return
			}
		}
		require.Fail(t, "refused for another reason", err)
	}
	before := b.r.Stats()
	b.update(func(w *registry.Window) {
		step := 1
		if raceEnabled {
			step = 13
		}
		for n := 0; n < len(saved); n += step {
			refused(w, saved[:n], ErrDamaged)
			data := bytes.Clone(saved)
			data[n] ^= byte(1 + n%255)
			refused(w, data, ErrDamaged, ErrVersion)
		}
		refused(w, append(bytes.Clone(saved), 0), ErrDamaged)

		// Lengths that nothing vouches for but checksums.
		for id := sectionMeta; id <= sectionCells; id++ {
			huge := resealed(t, saved, func(s map[uint32][]byte) {
				for i := range s[id] {
					s[id][i] = 0xff
				}
			})
			used := allocated(func() { refused(w, huge, ErrDamaged, ErrVersion, registry.ErrConfig) })
			require.Less(t, used, uint64(2<<20), "section %d", id)
			refused(w, resealed(t, saved, func(s map[uint32][]byte) { delete(s, id) }), ErrDamaged)
			refused(w, resealed(t, saved, func(s map[uint32][]byte) { s[id] = append(s[id], 0) }), ErrDamaged)
		}
		refused(w, resealed(t, saved, func(s map[uint32][]byte) { s[99] = nil }), ErrDamaged)
		refused(w, resealed(t, saved, func(s map[uint32][]byte) { s[sectionMeta][0]++ }), ErrVersion)
		refused(w, resealed(t, saved, func(s map[uint32][]byte) { binary.LittleEndian.PutUint64(s[sectionMeta][4:], 1<<63) }), ErrDamaged)
		at := func(s map[uint32][]byte) int { return bytes.Index(s[sectionSchema], []byte("Position")) }
		refused(w, resealed(t, saved, func(s map[uint32][]byte) { s[sectionSchema][at(s)]++ }), ErrDamaged, ErrSchema)
	})
	require.Equal(t, before, b.r.Stats())
	require.NoError(t, b.r.Verify())
	require.NoError(t, b.load(saved), "it is as good as new")
}

func TestEveryFlippedBitOfA16KiBStateIsDetected(t *testing.T) {
	if raceEnabled {
		t.Skip("too slow")
	}
	var a *realm
	for n := 150; ; n++ {
		a = newRealm(t, realmConfig{slots: 64})
		a.spawnArrows(n)
		if len(a.save()) >= 16<<10 {
			break
		}
	}
	saved := a.save()
	b := newRealm(t, realmConfig{slots: 64})
	before := b.r.Stats()
	b.update(func(w *registry.Window) {
		r := bytes.NewReader(nil)
		for bit := range len(saved) * 8 {
			saved[bit/8] ^= 1 << (bit % 8)
			r.Reset(saved)
			if err := Load(r, w); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				require.Fail(t, "not detected", "bit %d: %v", bit, err)
			}
			saved[bit/8] ^= 1 << (bit % 8)
		}
		for n := range len(saved) {
			r.Reset(saved[:n])
			require.ErrorIs(t, Load(r, w), ErrDamaged)
		}
	})
	require.Equal(t, before, b.r.Stats())
	require.NoError(t, b.r.Verify())
	require.NoError(t, b.load(saved))
}
