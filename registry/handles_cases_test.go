package registry_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestEveryWayOfDyingIsFinal(t *testing.T) {
	ways := map[string]func(k *world, h handles.Local){
		"Registry.Destroy": func(k *world, h handles.Local) { require.NoError(k.t, k.r.Destroy(h)) },
		"Registry.Destroy in a window": func(k *world, h handles.Local) {
			k.update(func(*registry.Window) { require.NoError(k.t, k.r.Destroy(h)) })
		},
		"Window.Destroy": func(k *world, h handles.Local) {
			k.update(func(w *registry.Window) { require.NoError(k.t, w.Destroy(h)) })
		},
		"Window.DestroyBatch": func(k *world, h handles.Local) {
			k.update(func(w *registry.Window) {
				require.Equal(k.t, 1, w.DestroyBatch([]handles.Local{h, h}))
			})
		},
		"Frame.Destroy": func(k *world, h handles.Local) {
			require.NoError(k.t, k.engine().frame(nil, system{"killer", func(f *registry.Frame) {
				require.NoError(k.t, f.Destroy(h))
			}}))
		},
		"Frame.Defer": func(k *world, h handles.Local) {
			e := k.engine()
			require.NoError(k.t, e.frame(nil, system{"killer", func(f *registry.Frame) {
				f.Defer(func(w *registry.Window) error { return w.Destroy(h) })
			}}))
			require.True(k.t, k.r.Alive(h))
			require.NoError(k.t, e.frame(nil))
			require.Empty(k.t, e.errs)
		},
		"a parent's death": func(k *world, h handles.Local) {
			k.update(func(w *registry.Window) {
				p := k.spawn(w)
				require.NoError(k.t, registry.SetParent(w, h, p))
				require.NoError(k.t, w.Destroy(p))
			})
		},
		"a parent's death from outside": func(k *world, h handles.Local) {
			var p handles.Local
			k.update(func(w *registry.Window) {
				p = k.spawn(w)
				require.NoError(k.t, registry.SetParent(w, h, p))
			})
			require.NoError(k.t, k.r.Destroy(p))
			k.update(func(*registry.Window) {})
		},
		"Reset": func(k *world, h handles.Local) {
			k.update(func(w *registry.Window) { require.NoError(k.t, w.Reset()) })
		},
	}
	for _, c := range []registry.Config{{}, {Deterministic: true}, {MaxEntities: 64}} {
		for name, way := range ways {
			t.Run("handles-1/"+name, func(t *testing.T) {
				k := newWorld(t, c)
				var h handles.Local
				var n handles.Net
				k.update(func(w *registry.Window) {
					var err error
					h = k.spawn(w)
					n, err = w.AssignNet(h)
					require.NoError(t, err)
				})
				way(k, h)
				k.dead(h, n)
				heir := k.successor(h)
				k.dead(h, n)
				require.True(t, k.r.Alive(heir))
			})
		}
	}
}

func TestTenThousandLivesThenTheLast(t *testing.T) {
	// live lets one entity at a time live, with a net handle, until one of its names cannot be
	// issued any more or lives are over, and checks that no name ever comes twice.
	live := func(t *testing.T, k *world, lives int) {
		locals := map[handles.Local]bool{}
		nets := map[handles.Net]bool{}
		globals := map[handles.Global]bool{}
		var olds []handles.Local
		for range lives {
			var h handles.Local
			var n handles.Net
			k.update(func(w *registry.Window) {
				var err error
				h = k.spawn(w)
				n, err = w.AssignNet(h)
				require.NoError(t, err)
			})
			g, err := k.r.Resolve(h)
			require.NoError(t, err)
			require.False(t, locals[h] || nets[n] || globals[g], "%v %v %v came twice", h, n, g)
			locals[h], nets[n], globals[g] = true, true, true
			olds = append(olds, h)
			alive := 0
			for _, o := range olds[max(0, len(olds)-50):] {
				if k.r.Alive(o) {
					alive++
				}
			}
			require.Equal(t, 1, alive)
			k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(h)) })
			k.recycle()
		}
		for _, o := range olds {
			require.False(t, k.r.Alive(o))
		}
	}
	t.Run("handles-2/ten thousand lives share no name", func(t *testing.T) {
		k := newWorld(t, registry.Config{MaxEntities: 1})
		live(t, k, 10_000)
		s := k.r.Stats()
		require.Equal(t, 1, s.Local.Free)
		require.Equal(t, 1, s.Net.Free)
		require.Equal(t, 1, s.Global.Free)
	})
	t.Run("handles-2/two short of the end an index is retired", func(t *testing.T) {
		k := worldOf(t, registry.NewPreset(registry.Config{}, registry.Preset{
			LocalGeneration: math.MaxUint32 - 2, NetGeneration: math.MaxUint32 - 2,
		}))
		live(t, k, 3)
		s := k.r.Stats()
		require.Equal(t, 1, s.Local.Retired)
		require.Equal(t, 1, s.Net.Retired)
		var h handles.Local
		var n handles.Net
		k.update(func(w *registry.Window) {
			h = k.spawn(w)
			n, _ = w.AssignNet(h)
		})
		assert.EqualValues(t, 2, h.Index())
		assert.EqualValues(t, 2, n.Index())
		live(t, k, 6)
		require.Equal(t, 3, k.r.Stats().Local.Retired)
	})
	t.Run("handles-2/with three bits all spaces retire and go on", func(t *testing.T) {
		k := worldOf(t, registry.NewNarrow(registry.Config{MaxEntities: 4}, 3))
		live(t, k, 7*5)
		s := k.r.Stats()
		require.Equal(t, 5, s.Local.Retired)
		require.Equal(t, 5, s.Net.Retired)
		require.Equal(t, 5, s.Global.Retired)
		live(t, k, 1)
	})
}

func TestFirstAndLastName(t *testing.T) {
	check := func(t *testing.T, k *world, local uint32, localGen uint32, net uint32, netGen uint32) {
		var h handles.Local
		var n handles.Net
		k.update(func(w *registry.Window) {
			require.Zero(t, w.FrameNumber())
			var err error
			h = k.spawn(w)
			n, err = w.AssignNet(h)
			require.NoError(t, err)
		})
		require.False(t, h.IsZero() || n.IsZero())
		require.Equal(t, local, h.Index())
		require.Equal(t, localGen, h.Generation())
		require.Equal(t, net, n.Index())
		require.Equal(t, netGen, n.Generation())
		require.Equal(t, k.r.Config().Owner, n.Owner())
		g, err := k.r.Resolve(h)
		require.NoError(t, err)
		require.False(t, g.IsZero())
		back, err := k.r.ResolveNet(n)
		require.NoError(t, err)
		require.Equal(t, h, back)
		back, err = k.r.ResolveWire(n.Wire())
		require.NoError(t, err)
		require.Equal(t, h, back)
		k.update(func(w *registry.Window) {
			require.NoError(t, w.Destroy(h))
			require.Equal(t, 1, w.ProcessDeferredDestructions())
			want := 1
			if localGen == math.MaxUint32 {
				want = 0 // retired
			}
			require.Equal(t, want, w.ConfirmLocalRecyclesThrough(0))
			require.Equal(t, want, w.ConfirmNetRecyclesThrough(0))
		})
	}
	t.Run("handles-3/the first name of an empty registry", func(t *testing.T) {
		check(t, newWorld(t, registry.Config{}), 1, 1, 1, 1)
	})
	t.Run("handles-3/the last name there is", func(t *testing.T) {
		c := registry.Config{Owner: 255}
		if racing {
			c.MaxEntities = 1 << 16 // Verify walks all indices
		}
		last := registry.LastLocalIndex(c)
		k := worldOf(t, registry.NewPreset(c, registry.Preset{
			LocalIndex: last, LocalGeneration: math.MaxUint32,
			NetIndex: handles.MaxNetIndex, NetGeneration: math.MaxUint32,
		}))
		check(t, k, last, math.MaxUint32, handles.MaxNetIndex, math.MaxUint32)
		require.ErrorIs(t, k.r.Update(func(w *registry.Window) error {
			_, err := k.soldiers.Spawn(w, soldier{})
			return err
		}), registry.ErrExhausted)
	})
}

// withPast cycles the first indices of a registry.
func withPast(k *world) *world {
	for range 5 {
		hs := k.spawnMany(40)
		k.update(func(w *registry.Window) {
			for _, h := range hs {
				_, err := w.AssignNet(h)
				require.NoError(k.t, err)
			}
			w.DestroyBatch(hs)
		})
		k.recycle()
	}
	return k
}

func TestIndicesWithAPast(t *testing.T) {
	// What a program sees is the same whether indices are new or not.
	story := func(k *world) (told []int) {
		hs := k.spawnMany(30)
		k.update(func(w *registry.Window) {
			for i, h := range hs {
				switch i % 4 {
				case 0:
					require.NoError(k.t, w.Destroy(h))
				case 1:
					require.NoError(k.t, registry.Add(w, h, title{"t"}))
				case 2:
					require.NoError(k.t, registry.SetParent(w, h, hs[1]))
				}
			}
		})
		require.NoError(k.t, k.r.Destroy(hs[1]))
		k.recycle()
		s := k.r.Stats()
		told = append(told, s.Live, s.Allocated, s.Tombstoned, s.Local.Issued, s.Net.Issued, s.Global.Issued)
		for i, h := range hs {
			if k.r.Alive(h) {
				told = append(told, i)
				require.NotZero(k.t, h.Generation())
			}
		}
		return told
	}
	t.Run("handles-4/five lives before the first step change nothing", func(t *testing.T) {
		fresh, old := newWorld(t, registry.Config{}), withPast(newWorld(t, registry.Config{}))
		want := story(fresh)
		got := story(old)
		require.Equal(t, want[0], got[0])
		require.Equal(t, want[2:], got[2:])
	})
}

func TestNothingComesBackUnconfirmed(t *testing.T) {
	t.Run("handles-5/until the confirm no index serves twice", func(t *testing.T) {
		const n = 100
		k := newWorld(t, registry.Config{MaxEntities: n})
		seen := map[uint32]bool{}
		fill := func(k *world, count int) (hs []handles.Local) {
			k.update(func(w *registry.Window) {
				for range count {
					h, err := k.soldiers.Spawn(w, soldier{})
					if err != nil {
						require.ErrorIs(t, err, registry.ErrExhausted)
						continue
					}
					require.False(t, seen[h.Index()], "index %d twice", h.Index())
					seen[h.Index()] = true
					hs = append(hs, h)
				}
			})
			return hs
		}
		hs := fill(k, n)
		require.Len(t, hs, n)
		require.Empty(t, fill(k, 1))
		for _, few := range []int{3, n} {
			if few == n {
				few = len(hs)
			}
			k.update(func(w *registry.Window) {
				require.Equal(t, few, w.DestroyBatch(hs[:few]))
				w.ProcessDeferredDestructions()
			})
			hs = append(hs[few:], fill(k, few)...)
		}
		// However many are pending: go on until spawning ends.
		for range 4 {
			k.update(func(w *registry.Window) {
				w.DestroyBatch(hs)
				w.ProcessDeferredDestructions()
			})
			hs = fill(k, n)
		}
		require.Empty(t, hs)
		clear(seen)
		k.update(func(w *registry.Window) { require.Positive(t, w.ConfirmLocalRecycles()) })
		require.Len(t, fill(k, n), n)
	})
}

func TestConfirmEarlyTwiceNever(t *testing.T) {
	t.Run("handles-6/through counts frames", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(3)
		k.update(func(w *registry.Window) {
			for _, h := range hs {
				_, err := w.AssignNet(h)
				require.NoError(t, err)
			}
		})
		e := k.engine()
		for e.FrameNumber() < 9 {
			require.NoError(t, e.frame(nil))
		}
		for i, h := range hs {
			require.NoError(t, e.frame(func(w *registry.Window) error {
				require.EqualValues(t, 10+i, w.FrameNumber())
				require.NoError(t, w.Destroy(h))
				require.Equal(t, 1, w.ProcessDeferredDestructions())
				return nil
			}))
			s := k.r.Stats()
			require.Equal(t, i+1, s.Local.Pending)
			require.Equal(t, i+1, s.Net.Pending)
			require.Zero(t, s.Local.Free)
			require.Zero(t, s.Net.Free)
			require.EqualValues(t, 10, s.Local.OldestPending)
		}
		require.NoError(t, e.frame(func(w *registry.Window) error {
			for _, c := range []struct {
				through uint64
				want    int
			}{{9, 0}, {11, 2}, {11, 0}, {1<<64 - 1, 1}} {
				require.Equal(t, c.want, w.ConfirmLocalRecyclesThrough(c.through), "local through %d", c.through)
				require.Equal(t, c.want, w.ConfirmNetRecyclesThrough(c.through), "net through %d", c.through)
			}
			return nil
		}))
		require.Equal(t, 3, k.r.Stats().Local.Free)
	})
}

func TestOldestFirst(t *testing.T) {
	t.Run("handles-7/indices come first in first out, slots lowest first", func(t *testing.T) {
		k := newWorld(t, registry.Config{MaxEntities: 12})
		hs := k.spawnMany(12)
		places := map[uint32]uint32{}
		k.update(func(w *registry.Window) {
			for _, h := range hs {
				at, ok := registry.CacheIndex(w, h)
				require.True(t, ok)
				places[h.Index()] = at
			}
		})
		e := k.engine()
		for _, i := range []uint32{5, 2, 9} {
			require.NoError(t, e.frame(func(w *registry.Window) error {
				require.NoError(t, w.Destroy(handles.NewLocal(i, 1)))
				w.ProcessDeferredDestructions()
				return nil
			}))
		}
		require.NoError(t, e.frame(func(w *registry.Window) error {
			require.Equal(t, 3, w.ConfirmLocalRecycles())
			for k2, i := range []uint32{5, 2, 9} {
				h, err := k.soldiers.Spawn(w, soldier{})
				require.NoError(t, err)
				require.Equal(t, handles.NewLocal(i, 2), h)
				at, _ := registry.CacheIndex(w, h)
				require.Equal(t, places[[]uint32{2, 5, 9}[k2]], at)
			}
			return nil
		}))
	})
}

func TestTheEndOfASpace(t *testing.T) {
	t.Run("handles-8/the entity cap", func(t *testing.T) {
		k := newWorld(t, registry.Config{MaxEntities: 13})
		k.spawnMany(10)
		var last handles.Local
		k.update(func(w *registry.Window) {
			for i := range 5 {
				h, err := k.soldiers.Spawn(w, soldier{})
				if i < 3 {
					require.NoError(t, err)
					last = h
				} else {
					require.ErrorIs(t, err, registry.ErrExhausted)
				}
			}
		})
		_, err := k.r.Reserve()
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.NoError(t, k.r.Destroy(last))
		k.recycle()
		k.spawnOne()
		require.Error(t, k.r.Update(func(w *registry.Window) error {
			_, err := k.soldiers.SpawnBatch(w, 1, nil)
			return err
		}))
	})
	t.Run("handles-8/the net indices of an owner", func(t *testing.T) {
		k := worldOf(t, registry.NewPreset(registry.Config{}, registry.Preset{NetIndex: handles.MaxNetIndex - 2}))
		hs := k.spawnMany(6)
		k.update(func(w *registry.Window) {
			for i, h := range hs[:5] {
				n, err := w.AssignNet(h)
				if i < 3 {
					require.NoError(t, err)
					require.EqualValues(t, handles.MaxNetIndex-2+i, n.Index())
				} else {
					require.ErrorIs(t, err, registry.ErrExhausted)
					require.Zero(t, n)
				}
			}
			require.NoError(t, w.Destroy(hs[0]))
			w.ProcessDeferredDestructions()
			w.ConfirmNetRecycles()
			_, err := w.AssignNet(hs[4])
			require.NoError(t, err)
			_, err = w.AssignNet(hs[5])
			require.ErrorIs(t, err, registry.ErrExhausted)
		})
	})
	t.Run("handles-8/the local indices", func(t *testing.T) {
		c := registry.Config{MaxEntities: 100}
		k := worldOf(t, registry.NewPreset(c, registry.Preset{LocalIndex: registry.LastLocalIndex(c) - 2}))
		before := k.r.Stats()
		k.update(func(w *registry.Window) {
			_, err := k.soldiers.SpawnBatch(w, 5, nil)
			require.ErrorIs(t, err, registry.ErrExhausted)
		})
		require.Equal(t, before.Live, k.r.Stats().Live)
		hs := k.spawnMany(3)
		_, err := k.r.Reserve()
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.NoError(t, k.r.Destroy(hs[0]))
		k.recycle()
		h, err := k.r.Reserve()
		require.NoError(t, err)
		require.Equal(t, hs[0].Index(), h.Index())
	})
}

func TestAny64Bits(t *testing.T) {
	t.Run("handles-9/bits that name nobody are refused by every function", func(t *testing.T) {
		k := newWorld(t, registry.Config{Owner: 3})
		hs := k.spawnMany(3)
		var n handles.Net
		k.update(func(w *registry.Window) {
			n, _ = w.AssignNet(hs[0])
			require.NoError(t, w.Destroy(hs[2]))
		})
		before := k.r.Stats()
		for _, bits := range []uint64{
			0, math.MaxUint64, 1, 1 << 32, math.MaxUint32, math.MaxUint32 << 32,
			uint64(handles.NewLocal(1000, 1)),          // never issued
			uint64(handles.NewLocal(hs[0].Index(), 2)), // not yet reached
			uint64(handles.NewLocal(hs[0].Index(), 0)), // generation 0
			uint64(hs[2]),                                     // dead
			uint64(handles.NewNet(7, n.Index(), 1)),           // a foreign owner
			uint64(handles.NewNet(3, n.Index(), 2)),           // not yet reached
			uint64(handles.NewNet(3, handles.MaxNetIndex, 1)), // never issued
		} {
			anyBits(t, k, bits, func(h handles.Local) bool { return h == hs[0] || h == hs[1] }, n)
		}
		require.Equal(t, before, k.r.Stats())
		for _, h := range hs[:2] {
			require.True(t, k.r.Alive(h))
		}
	})
}

// anyBits gives bits to every function that takes a handle. Those that name nobody change
// nothing and panic nowhere.
func anyBits(t testing.TB, k *world, bits uint64, lives func(handles.Local) bool, net handles.Net) {
	h, n := handles.Local(bits), handles.Net(bits)
	refused := func(err error) {
		t.Helper()
		if err != registry.ErrStale && err != registry.ErrInvalidHandle && err != registry.ErrNotSpawned {
			t.Fatalf("%#x: %v", bits, err)
		}
	}
	if n != net {
		require.False(t, k.r.AliveNet(n))
		_, err := k.r.ResolveNet(n)
		refused(err)
	}
	if uint32(bits) != net.Wire() {
		_, err := k.r.ResolveWire(uint32(bits))
		refused(err)
	}
	if lives(h) {
		return
	}
	require.False(t, k.r.Alive(h))
	_, err := k.r.Resolve(h)
	refused(err)
	_, err = k.r.NetOf(h)
	refused(err)
	k.r.Obituary(h)
	if s := err; s != registry.ErrNotSpawned {
		refused(k.r.Destroy(h))
	}
	k.update(func(w *registry.Window) {
		_, err := registry.Get[self](w, h)
		refused(err)
		_, err = registry.Peek[spot](w, h)
		refused(err)
		refused(registry.Set(w, h, health{1}))
		require.False(t, registry.Has[self](w, h))
		require.False(t, registry.Active(w, h))
		refused(registry.SetActive(w, h, false))
		_, ok := registry.CacheIndex(w, h)
		require.False(t, ok)
		refused(registry.Add(w, h, frozen{}))
		refused(registry.Remove[self](w, h))
		require.Zero(t, registry.AddBatch(w, []handles.Local{h}, frozen{}))
		require.Zero(t, registry.RemoveBatch[self](w, []handles.Local{h}))
		refused(registry.SetParent(w, h, 0))
		_, err = w.AssignNet(h)
		refused(err)
		refused(w.BindNet(h, handles.NewNet(9, 9, 9)))
		cells, err := registry.NewCells[self](k.r)
		require.NoError(t, err)
		_, ok = cells.Get(w, h)
		require.False(t, ok)
		_, ok = cells.Peek(w, h)
		require.False(t, ok)
		require.False(t, cells.Set(w, h, self{}))
		if s := k.soldiers.SpawnReserved(w, h, soldier{}); err == nil {
			require.Error(t, s)
		}
		require.Zero(t, w.DestroyBatch([]handles.Local{h}))
		refused(w.Destroy(h))
	})
}
