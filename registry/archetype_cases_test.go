package registry_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// numbered is a family of component types as large as one needs. They share one underlying
// type, so that the compiler makes the generic code for them once.
type numbered[A, B, C any] struct{ Value uint64 }

// adder registers one component type, and adds, reads and removes it.
type adder struct {
	register func(*registry.Registry) (archetype.ComponentID, error)
	add      func(*registry.Window, handles.Local, uint64) error
	peek     func(*registry.Window, handles.Local) (uint64, error)
	remove   func(*registry.Window, handles.Local) error
}

func adders() (all []adder) {
	all = append(all, adders1[int8]()...)
	all = append(all, adders1[int16]()...)
	all = append(all, adders1[int32]()...)
	all = append(all, adders1[int64]()...)
	all = append(all, adders1[uint8]()...)
	all = append(all, adders1[uint16]()...)
	all = append(all, adders1[uint32]()...)
	return all
}

func adders1[A any]() (all []adder) {
	all = append(all, adders2[A, int8]()...)
	all = append(all, adders2[A, int16]()...)
	all = append(all, adders2[A, int32]()...)
	all = append(all, adders2[A, int64]()...)
	all = append(all, adders2[A, uint8]()...)
	all = append(all, adders2[A, uint16]()...)
	all = append(all, adders2[A, uint32]()...)
	return all
}

func adders2[A, B any]() []adder {
	return []adder{
		adderOf[numbered[A, B, int8]](), adderOf[numbered[A, B, int16]](), adderOf[numbered[A, B, int32]](),
		adderOf[numbered[A, B, int64]](), adderOf[numbered[A, B, uint8]](), adderOf[numbered[A, B, uint16]](),
		adderOf[numbered[A, B, uint32]](),
	}
}

func adderOf[T ~struct{ Value uint64 }]() adder {
	return adder{
		register: func(r *registry.Registry) (archetype.ComponentID, error) { return registry.RegisterComponent[T](r) },
		add: func(w *registry.Window, h handles.Local, n uint64) error {
			return registry.Add(w, h, T(struct{ Value uint64 }{n}))
		},
		peek: func(w *registry.Window, h handles.Local) (uint64, error) {
			v, err := registry.Peek[T](w, h)
			return struct{ Value uint64 }(v).Value, err
		},
		remove: registry.Remove[T],
	}
}

type (
	extraOne struct{ N int }
	extraTwo struct{ N int }
	bare     struct{}
	twoMore  struct {
		One extraOne
		Two extraTwo
	}
	oneMore struct{ One extraOne }
)

func TestOneComponentTooMany(t *testing.T) {
	t.Run("archetype-1/the 257th component is refused, and the first 256 work", func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		bares, err := registry.RegisterClass[bare](r)
		require.NoError(t, err)
		all := adders()
		for i, a := range all[:255] {
			id, err := a.register(r)
			require.NoError(t, err)
			require.EqualValues(t, i, id)
		}
		_, err = registry.RegisterClass[twoMore](r)
		require.ErrorContains(t, err, "256")
		require.ErrorContains(t, err, "twoMore")
		require.Equal(t, 255, r.Schema().Len())
		_, known := registry.ClassIndex[twoMore](r)
		require.False(t, known)
		_, err = all[255].register(r)
		require.NoError(t, err)
		_, err = all[256].register(r)
		require.ErrorContains(t, err, "256")
		require.ErrorContains(t, err, "numbered")
		require.ErrorIs(t, err, archetype.ErrTooManyComponents)
		_, err = registry.RegisterClass[oneMore](r)
		require.ErrorContains(t, err, "256")
		require.Equal(t, 256, r.Schema().Len())

		require.NoError(t, r.Update(func(w *registry.Window) error {
			hs, err := bares.SpawnBatch(w, 3, nil)
			require.NoError(t, err)
			for i, a := range all[:256] {
				for k, h := range hs {
					require.NoError(t, a.add(w, h, uint64(i*10+k)))
				}
			}
			for i, a := range all[:256] {
				for k, h := range hs {
					got, err := a.peek(w, h)
					require.NoError(t, err)
					require.EqualValues(t, i*10+k, got)
				}
			}
			require.ErrorIs(t, all[256].add(w, hs[0], 1), registry.ErrNotRegistered)
			return nil
		}))
		require.NoError(t, r.Verify())
	})
}

type (
	withString    struct{ S string }
	withNested    struct{ In struct{ P *int } }
	withArray     struct{ A [2]struct{ M map[int]int } }
	withInterface struct{ I any }
	withFunc      struct{ F func() }
	withChan      struct{ C chan int }
	withSlice     struct{ S []int }
	noPointers    struct {
		A [4]struct{ X float64 }
		U uintptr
	}
	twice struct{ A, B extraOne }
)

// refusedTemporal registers T as Temporal and wants that refused.
func refusedTemporal[T any](t *testing.T, r *registry.Registry) {
	t.Helper()
	before := r.Schema().Len()
	_, err := registry.RegisterComponent[T](r, registry.InTier(archetype.Temporal))
	require.ErrorIs(t, err, registry.ErrPointerInTemporal)
	require.ErrorContains(t, err, reflect.TypeFor[T]().String())
	require.Equal(t, before, r.Schema().Len())
}

func TestRegistrationsThatMustFail(t *testing.T) {
	t.Run("archetype-2/pointers in Temporal, doubles and second tiers are refused", func(t *testing.T) {
		r, err := registry.New(registry.Config{TemporalFrames: 8})
		require.NoError(t, err)
		refusedTemporal[withString](t, r)
		refusedTemporal[withNested](t, r)
		refusedTemporal[withArray](t, r)
		refusedTemporal[withInterface](t, r)
		refusedTemporal[withFunc](t, r)
		refusedTemporal[withChan](t, r)
		refusedTemporal[withSlice](t, r)
		refusedTemporal[*int](t, r)
		refusedTemporal[string](t, r)
		refusedTemporal[[3]map[string]int](t, r)
		id, err := registry.RegisterComponent[noPointers](r, registry.InTier(archetype.Temporal))
		require.NoError(t, err)
		_, err = registry.RegisterComponent[noPointers](r, registry.InTier(archetype.Temporal))
		require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
		require.ErrorContains(t, err, "noPointers")
		require.NotContains(t, err.Error(), "brought")

		_, err = registry.RegisterClass[oneMore](r)
		require.NoError(t, err)
		_, err = registry.RegisterComponent[extraOne](r, registry.InTier(archetype.Volatile))
		require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
		require.ErrorContains(t, err, "extraOne")
		require.ErrorContains(t, err, "class registry_test.oneMore brought it in")
		_, err = registry.RegisterComponentType(r, reflect.TypeFor[extraOne]())
		require.ErrorContains(t, err, "register the component before the class")
		_, err = registry.RegisterComponentType(r, nil)
		require.Error(t, err)
		_, err = registry.RegisterClass[twice](r)
		require.ErrorContains(t, err, "twice")
		require.ErrorContains(t, err, "extraOne")

		require.Equal(t, 2, r.Schema().Len())
		c, ok := r.Schema().ByID(id)
		require.True(t, ok)
		require.Equal(t, archetype.Temporal, c.Tier)
		one, ok := r.Schema().ByType(reflect.TypeFor[extraOne]())
		require.True(t, ok)
		require.Equal(t, archetype.Cold, one.Tier)
	})
}

func TestLimitsAwayFromTheDefault(t *testing.T) {
	for _, frames := range []int{0, 8, 64} {
		for _, slots := range []int{64, 128, 4096} {
			for _, most := range []int{1, 64, 65, 100_000} {
				if racing && most > 65 && (frames > 8 || slots > 64) {
					continue // the same again, slowly
				}
				t.Run(fmt.Sprintf("archetype-3/%d slots, %d entities, %d frames", slots, most, frames), func(t *testing.T) {
					r, err := registry.New(registry.Config{MaxEntities: most, TemporalFrames: frames})
					require.NoError(t, err)
					c, err := registry.RegisterClass[oneMore](r, registry.SlotsPerChunk(slots))
					require.NoError(t, err)
					require.NoError(t, r.Update(func(w *registry.Window) error {
						for i := range most {
							_, err := c.Spawn(w, oneMore{extraOne{i}})
							require.NoError(t, err)
						}
						_, err := c.Spawn(w, oneMore{})
						require.ErrorIs(t, err, registry.ErrExhausted)
						_, err = c.SpawnBatch(w, 1, nil)
						require.ErrorIs(t, err, registry.ErrExhausted)
						return nil
					}))
					_, err = r.Reserve()
					require.ErrorIs(t, err, registry.ErrExhausted)
					s := r.Stats()
					require.Equal(t, most, s.Live)
					require.Equal(t, (most+slots-1)/slots, s.Chunks)
					require.NoError(t, r.Verify())
				})
			}
		}
	}
	t.Run("archetype-3/what is out of range is refused", func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		for _, slots := range []int{-64, 0, 1, 63, 65, 100, 4160, 65_600} {
			_, err := registry.RegisterClass[oneMore](r, registry.SlotsPerChunk(slots))
			require.ErrorContains(t, err, "oneMore", "%d slots", slots)
		}
		require.Zero(t, r.Schema().Len())
		for _, frames := range []int{-8, 1, 4, 7, 9, 12, 1 << 13} {
			_, err := registry.New(registry.Config{TemporalFrames: frames})
			require.ErrorContains(t, err, "TemporalFrames", "%d frames", frames)
		}
		for _, most := range []int{-1, 1<<28 + 1} {
			_, err := registry.New(registry.Config{MaxEntities: most})
			require.ErrorContains(t, err, "MaxEntities", "%d entities", most)
		}
	})
}

func TestTwoCounters(t *testing.T) {
	t.Run("archetype-4/Allocated rises on fresh slots only, Live follows the living", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		want := func(allocated, live int) {
			t.Helper()
			s := k.r.Stats()
			require.Equal(t, []int{allocated, live}, []int{s.Allocated, s.Live})
			require.Equal(t, []int{allocated, live}, []int{s.Archetypes[0].Allocated, s.Archetypes[0].Live})
		}
		hs := k.spawnMany(100)
		want(100, 100)
		var holes []uint32
		k.update(func(w *registry.Window) {
			for i := 0; i < 80; i += 2 {
				at, _ := registry.CacheIndex(w, hs[i])
				holes = append(holes, at)
				require.NoError(t, w.Destroy(hs[i]))
			}
		})
		want(100, 60)
		require.Equal(t, 40, k.r.Stats().Tombstoned)
		k.spawnMany(10)
		want(110, 70)
		k.update(func(w *registry.Window) { require.Equal(t, 40, w.ProcessDeferredDestructions()) })
		want(110, 70)
		last := k.spawnMany(40)
		want(110, 110)
		k.update(func(w *registry.Window) {
			for i, h := range last {
				at, _ := registry.CacheIndex(w, h)
				require.Equal(t, holes[i], at)
			}
		})
	})
}

type (
	odd1  struct{ B [1]byte }
	odd3  struct{ B [3]byte }
	odd7  struct{ B [7]byte }
	huge  struct{ B [65537]byte }
	words struct {
		S string
		M map[string]int
		P *int
	}
	deepSplit struct {
		A  int8
		In struct {
			B  float64
			In struct{ C [3]uint16 }
		}
		D [5]byte
		E string
	}
	oddity struct {
		One   odd1
		Three odd3
		Seven odd7
		Huge  huge
		Words words
		Split deepSplit
	}
)

func oddPattern(i int) (o oddity) {
	o.One.B[0] = byte(i)
	for k := range o.Three.B {
		o.Three.B[k] = byte(i + k)
	}
	for k := range o.Seven.B {
		o.Seven.B[k] = byte(i * k)
	}
	for k := range o.Huge.B {
		o.Huge.B[k] = byte(i ^ k)
	}
	n := i
	o.Words = words{S: fmt.Sprint("text ", i), M: map[string]int{fmt.Sprint(i): i}, P: &n}
	o.Split.A, o.Split.In.B, o.Split.E = int8(i), float64(i)/3, fmt.Sprint("e", i)
	o.Split.In.In.C = [3]uint16{uint16(i), uint16(i + 1), uint16(i + 2)}
	o.Split.D = [5]byte{byte(i), 2, 3, 4, 5}
	return o
}

func readOddity(t *testing.T, w *registry.Window, h handles.Local) (o oddity) {
	var errs [6]error
	o.One, errs[0] = registry.Peek[odd1](w, h)
	o.Three, errs[1] = registry.Peek[odd3](w, h)
	o.Seven, errs[2] = registry.Peek[odd7](w, h)
	o.Huge, errs[3] = registry.Peek[huge](w, h)
	o.Words, errs[4] = registry.Peek[words](w, h)
	o.Split, errs[5] = registry.Peek[deepSplit](w, h)
	for _, err := range errs {
		require.NoError(t, err)
	}
	return o
}

func aligned[C any](t *testing.T, w *registry.Window, h handles.Local) {
	p, err := registry.Get[C](w, h)
	require.NoError(t, err)
	require.Zero(t, uintptr(unsafe.Pointer(p))%unsafe.Alignof(*p))
}

func TestSplitAndOddShapes(t *testing.T) {
	t.Run("archetype-5/every cell keeps its own value through collections and moves", func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		_, err = registry.RegisterComponent[deepSplit](r, registry.Split())
		require.NoError(t, err)
		c, err := registry.RegisterClass[oddity](r, registry.SlotsPerChunk(64))
		require.NoError(t, err)
		_, err = registry.RegisterComponent[extraOne](r)
		require.NoError(t, err)
		require.NoError(t, r.Update(func(w *registry.Window) error {
			var hs []handles.Local
			for i := range 65 {
				h, err := c.Spawn(w, oddPattern(i))
				require.NoError(t, err)
				hs = append(hs, h)
			}
			o := oddPattern(1000)
			require.NoError(t, registry.Set(w, hs[32], o.Three))
			require.NoError(t, registry.Set(w, hs[32], o.Split))
			require.NoError(t, registry.Set(w, hs[32], o.Huge))
			p, err := registry.Get[words](w, hs[32])
			require.NoError(t, err)
			*p = o.Words
			_, err = registry.Get[deepSplit](w, hs[32])
			require.ErrorIs(t, err, registry.ErrSplit)
			runtime.GC()
			require.NoError(t, registry.Add(w, hs[7], extraOne{7}))
			runtime.GC()
			for i, h := range hs {
				want := oddPattern(i)
				if i == 32 {
					want.Three, want.Split, want.Huge, want.Words = o.Three, o.Split, o.Huge, o.Words
				}
				require.Equal(t, want, readOddity(t, w, h), "row %d", i)
				aligned[odd1](t, w, h)
				aligned[huge](t, w, h)
				aligned[words](t, w, h)
			}
			return nil
		}))
		require.NoError(t, r.Verify())
	})
}

func TestCacheIndicesAreUnique(t *testing.T) {
	t.Run("archetype-6/an index changes only with a move that is told", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(6, 6))
		k := newWorld(t, registry.Config{})
		at := map[handles.Local]uint32{}
		_, err := k.r.OnMove(func(moves []registry.Move) {
			for _, m := range moves {
				require.Equal(t, at[m.Entity], m.Old)
				at[m.Entity] = m.New
			}
		})
		require.NoError(t, err)
		for range 200 {
			k.update(func(w *registry.Window) {
				for range 60 {
					var some handles.Local
					for some = range at { // any
						break
					}
					switch rnd.IntN(7) {
					case 0, 1:
						h := k.spawn(w)
						at[h], _ = registry.CacheIndex(w, h)
					case 2, 3:
						h, err := k.scouts.Spawn(w, scout{})
						require.NoError(t, err)
						at[h], _ = registry.CacheIndex(w, h)
					case 4:
						if some != 0 {
							require.NoError(t, w.Destroy(some))
							delete(at, some)
						}
					case 5:
						if some != 0 {
							require.NoError(t, registry.Add(w, some, frozen{}))
						}
					case 6:
						if some != 0 {
							require.NoError(t, registry.Add(w, some, health{}))
							require.NoError(t, registry.Remove[health](w, some))
						}
					}
				}
				taken := map[uint32]handles.Local{}
				for h, want := range at {
					got, ok := registry.CacheIndex(w, h)
					require.True(t, ok)
					require.Equal(t, want, got)
					require.Less(t, got, k.r.CacheCap())
					require.Zero(t, taken[got])
					taken[got] = h
				}
				if rnd.IntN(20) == 0 {
					require.NoError(t, w.Reset())
					clear(at)
				}
			})
			k.recycle()
		}
	})
}

func TestMemoryDoesNotCreep(t *testing.T) {
	rounds := 1_000_000
	if racing {
		rounds = 100_000
	}
	for _, frames := range []int{0, 8} {
		t.Run(fmt.Sprintf("archetype-9/a million rounds leave no trace, %d temporal frames", frames), func(t *testing.T) {
			r, err := registry.New(registry.Config{TemporalFrames: frames})
			require.NoError(t, err)
			bares, err := registry.RegisterClass[oneMore](r)
			require.NoError(t, err)
			all := adders()[:20]
			for _, a := range all {
				_, err := a.register(r)
				require.NoError(t, err)
			}
			churn := func(rounds int) {
				const each = 500
				for range rounds / each {
					require.NoError(t, r.Update(func(w *registry.Window) error {
						w.ProcessDeferredDestructions()
						w.ConfirmLocalRecycles()
						for i := range each {
							h, err := bares.Spawn(w, oneMore{})
							if err != nil {
								return err
							}
							a := all[i%len(all)]
							if err := a.add(w, h, 1); err != nil {
								return err
							}
							if i%3 == 0 {
								if err := a.remove(w, h); err != nil {
									return err
								}
							}
							if err := w.Destroy(h); err != nil {
								return err
							}
						}
						return nil
					}))
				}
				for range rounds / 50 {
					o, err := r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) {})
					require.NoError(t, err)
					require.NoError(t, o.Remove())
				}
				require.NoError(t, r.Update(func(*registry.Window) error { return nil }))
			}
			measure := func() (uint64, registry.Stats) {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc, r.Stats()
			}
			churn(rounds / 10)
			heap, before := measure()
			for range 3 {
				churn(rounds * 3 / 10)
				now, s := measure()
				require.Less(t, now, heap+heap/8+256<<10)
				require.Equal(t, before.Chunks, s.Chunks)
				require.Equal(t, before.Archetypes, s.Archetypes)
				require.Equal(t, before.Allocated, s.Allocated)
			}
			require.NoError(t, r.Verify())
		})
	}
}
