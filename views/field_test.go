package views_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// through collects the entities that a field goes through from where it is.
func through[V any](f *views.Field[V], a registry.Access) (seen []handles.Local) {
	for f.Advance(a) {
		seen = append(seen, f.Entity())
	}
	return seen
}

func TestNextLiveFindsWhatALoopFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(0)), rapid.Just(^uint64(0)), rapid.Uint64()), 1, 5).Draw(t, "words")
		for _, n := range []int{64 * len(words), rapid.IntRange(0, 64*len(words)).Draw(t, "n")} {
			want := -1
			for from := n + 70; from >= 0; from-- {
				if from < n && words[from>>6]>>(from&63)&1 != 0 {
					want = from
				}
				require.Equal(t, want, views.NextLive(words, from, n), "from %d", from)
			}
		}
	})
}

func TestAFieldIsOneValueOfItsOwnEntity(t *testing.T) {
	type Base struct{ Deep int8 }
	type wide struct {
		Base
		In   struct{ A, B Position }
		Text string
	}
	for _, split := range []bool{false, true} {
		name := "whole"
		var o []registry.ComponentOption
		if split {
			name, o = "split", append(o, registry.Split())
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			registered[wide](t, w.Registry, o...)
			c := class[struct{ W wide }](w)
			var hs []handles.Local
			w.window(func(win *registry.Window) {
				for range 100 {
					h, err := c.Spawn(win, struct{ W wide }{})
					require.NoError(t, err)
					hs = append(hs, h)
				}
			})
			h := hs[70]
			deep, y, text := field[wide, int8](w, h, "Base.Deep"), field[wide, float64](w, h, "In.B.Y"), field[wide, string](w, h, "Text")
			w.frame(func(f *registry.Frame) {
				require.NoError(t, deep.Add(f, 100))
				require.NoError(t, deep.Add(f, 100)) // wraps around
				require.NoError(t, y.Set(f, 1.5))
				require.NoError(t, y.Add(f, -0.5))
				require.NoError(t, text.Set(f, "here"))
				require.ErrorContains(t, text.Add(f, "no"), "string is no number")
			})
			want := wide{Base: Base{-56}, Text: "here"}
			want.In.B.Y = 1
			w.window(func(win *registry.Window) {
				for _, other := range hs {
					got, err := registry.Peek[wide](win, other)
					require.NoError(t, err)
					if other == h {
						require.Equal(t, want, got)
					} else {
						require.Equal(t, wide{}, got)
					}
				}
				s, err := text.Get(win)
				require.NoError(t, err)
				require.Equal(t, "here", s)
			})
			w.fails(func(win *registry.Window) {
				require.NoError(t, text.Set(win, "gone"))
				require.NoError(t, y.Set(win, 9))
				require.NoError(t, deep.Set(win, 9))
			})
			w.window(func(win *registry.Window) {
				got, err := registry.Peek[wide](win, h)
				require.NoError(t, err)
				require.Equal(t, want, got)
			})
		})
	}
}

type (
	myInt   int16
	myFloat float32
	numbers struct {
		I   int
		I8  int8
		I16 myInt
		I32 int32
		I64 int64
		U   uint
		U8  uint8
		U16 uint16
		U32 uint32
		U64 uint64
		Ptr uintptr
		F32 myFloat
		F64 float64
		C64 complex64
		C   complex128
	}
)

// adds checks that Add is the + of Go.
func adds[V int | int8 | myInt | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr | myFloat | float64 | complex64 | complex128](
	w *world, win *registry.Window, h handles.Local, path string, a, b V,
) {
	w.tb.Helper()
	f := field[numbers, V](w, h, path)
	require.NoError(w.tb, f.Set(win, a))
	require.NoError(w.tb, f.Add(win, b))
	got, err := f.Get(win)
	require.NoError(w.tb, err)
	require.Equal(w.tb, a+b, got, "%s", path)
}

func TestAddIsTheAdditionOfGo(t *testing.T) {
	w := newWorld(t)
	c := class[struct{ N numbers }](w)
	w.window(func(win *registry.Window) {
		h, err := c.Spawn(win, struct{ N numbers }{})
		require.NoError(t, err)
		adds(w, win, h, "I", math.MaxInt, 2)
		adds(w, win, h, "I8", int8(127), 1)
		adds(w, win, h, "I16", myInt(-32768), -1)
		adds(w, win, h, "I32", int32(math.MaxInt32), math.MaxInt32)
		adds(w, win, h, "I64", int64(-5), 9)
		adds(w, win, h, "U", uint(math.MaxUint), 1)
		adds(w, win, h, "U8", uint8(200), 100)
		adds(w, win, h, "U16", uint16(65535), 65535)
		adds(w, win, h, "U32", uint32(1), math.MaxUint32)
		adds(w, win, h, "U64", uint64(1), math.MaxUint64)
		adds(w, win, h, "Ptr", uintptr(1), 2)
		adds(w, win, h, "F32", myFloat(0.1), 0.2)
		adds(w, win, h, "F64", 0.1, 0.2)
		adds(w, win, h, "F64", math.Inf(1), 1)
		adds(w, win, h, "C64", complex64(1+2i), 3-4i)
		adds(w, win, h, "C", 1+2i, 3-4i)
	})
}

func TestAWholeComponentAsAField(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		h := w.spawn(class[Mover](w), 2)[1]
		w.window(func(win *registry.Window) { require.NoError(t, registry.Add(win, h, Mark(7))) })
		mark, pos := field[Mark, Mark](w, h, ""), field[Position, Position](w, h, "")
		inside(func(a registry.Access) {
			require.NoError(t, mark.Add(a, 3))
			require.NoError(t, pos.Set(a, Position{3, 4}))
			require.Error(t, pos.Add(a, Position{}))
			m, err := registry.Peek[Mark](a, h)
			require.NoError(t, err)
			require.Equal(t, Mark(10), m)
			p, err := registry.Peek[Position](a, h)
			require.NoError(t, err)
			require.Equal(t, Position{3, 4}, p)
		})
	})
}

func TestBindingAField(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w), 3)
		f := field[Position, float64](w, 0, "X")
		require.Zero(t, f.Entity())
		inside(func(a registry.Access) {
			_, err := f.Get(a)
			require.ErrorIs(t, err, registry.ErrInvalidHandle, "bound to none")
			require.ErrorIs(t, f.Set(a, 1), registry.ErrInvalidHandle)
			for i, h := range hs {
				require.NoError(t, f.Bind(h))
				require.Equal(t, h, f.Entity())
				x, err := f.Get(a)
				require.NoError(t, err)
				require.Equal(t, float64(i), x)
			}
			require.ErrorIs(t, f.Bind(handles.NewLocal(500, 1)), registry.ErrInvalidHandle)
			require.NoError(t, w.Destroy(hs[0]))
			require.ErrorIs(t, f.Bind(hs[0]), registry.ErrStale)
			x, err := f.Get(a)
			require.NoError(t, err, "bound as before")
			require.Equal(t, 2.0, x)
			require.NoError(t, f.Bind(0))
			_, err = f.Get(a)
			require.ErrorIs(t, err, registry.ErrInvalidHandle)
		})
	})
}

func TestAdvanceGoesThroughAllThatHaveTheComponent(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		c := class[Mover](w, registry.SlotsPerChunk(64))
		none := class[struct{ M Mark }](w)
		hs := w.spawn(c, 300)
		w.window(func(win *registry.Window) {
			_, err := none.SpawnBatch(win, 5, nil)
			require.NoError(t, err)
			registry.AddBatch(win, hs[:3], Altitude{})
			require.NoError(t, registry.Add(win, hs[150], Name{}))
			require.NoError(t, registry.SetActive(win, hs[63], false))
			require.NoError(t, registry.SetActive(win, hs[64], false))
		})
		w.destroy(hs[128:140]...)
		f, q := field[Position, float64](w, 0, "X"), query[ids](w, views.With[Position]())
		inside(func(a registry.Access) {
			want := visited(q, a)
			require.Len(t, want, 300-2-12)
			require.Equal(t, want, through(f, a))
			require.Equal(t, want[len(want)-1], f.Entity(), "stays where it was")
			require.False(t, f.Advance(a))
			x, err := f.Get(a)
			require.NoError(t, err)
			last, err := registry.Peek[Position](a, f.Entity())
			require.NoError(t, err)
			require.Equal(t, last.X, x)

			require.NoError(t, f.Bind(0))
			require.Equal(t, want, through(f, a))
			for _, from := range []int{0, 1, 60, 61, 62, 63, 125, 126, 200, len(want) - 2, len(want) - 1} {
				require.NoError(t, f.Bind(want[from]))
				require.Equal(t, append([]handles.Local(nil), want[from+1:]...), through(f, a), "from %d", from)
			}
			require.NoError(t, f.Bind(hs[63])) // an inactive one has a place, too
			require.True(t, f.Advance(a))
			require.Equal(t, hs[65], f.Entity())
			high := field[Altitude, float32](w, 0, "Y")
			require.Equal(t, hs[:3], through(high, a))
			require.NoError(t, high.Bind(hs[7])) // without the component: on from its archetype
			require.Equal(t, hs[:3], through(high, a))
		})
	})
	t.Run("nobody", func(t *testing.T) {
		w := newWorld(t)
		f := field[Name, string](w, 0, "Text")
		w.window(func(win *registry.Window) {
			require.False(t, f.Advance(win))
			require.Zero(t, f.Entity())
		})
	})
	t.Run("over several tokens", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 200)
		f := field[Position, float64](w, 0, "X")
		var seen []handles.Local
		for len(seen) < 200 {
			w.frame(func(a *registry.Frame) {
				for n := 0; n < 7 && f.Advance(a); n++ {
					seen = append(seen, f.Entity())
				}
			})
		}
		require.Equal(t, hs, seen)
		w.frame(func(a *registry.Frame) { require.False(t, f.Advance(a)) })
	})
	t.Run("expired", func(t *testing.T) {
		w := newWorld(t)
		w.spawn(class[Mover](w), 5)
		f := field[Position, float64](w, 0, "X")
		var kept registry.Access
		w.window(func(win *registry.Window) { kept = win; require.True(t, f.Advance(win)) })
		require.PanicsWithValue(t, registry.ErrExpired, func() { f.Advance(kept) })
	})
}

func TestStructureMayChangeWhileAdvancing(t *testing.T) {
	for _, n := range []int{1, 64, 65, 200} {
		w := newWorld(t)
		c := class[Mover](w, registry.SlotsPerChunk(64))
		hs := w.spawn(c, n)
		f := field[Position, float64](w, 0, "X")
		w.window(func(win *registry.Window) { // destroy it
			var seen []handles.Local
			for f.Advance(win) {
				seen = append(seen, f.Entity())
				require.NoError(t, f.Add(win, 1))
				require.NoError(t, win.Destroy(f.Entity()))
				_, err := f.Get(win)
				require.ErrorIs(t, err, registry.ErrStale)
			}
			require.Equal(t, hs, seen)
		})
		w.reclaim()
		hs = w.spawn(c, n)
		require.NoError(t, f.Bind(0))
		w.window(func(win *registry.Window) { // have it move: it is met again there
			met := map[handles.Local]int{}
			for f.Advance(win) {
				met[f.Entity()]++
				require.NoError(t, registry.Add(win, f.Entity(), Frozen{}))
				require.NoError(t, f.Set(win, -1))
				p, err := registry.Peek[Position](win, f.Entity())
				require.NoError(t, err)
				require.Equal(t, -1.0, p.X)
			}
			for _, h := range hs {
				require.Equal(t, 2, met[h])
			}
		})
		require.NoError(t, f.Bind(0))
		w.frame(func(a *registry.Frame) { // destroyed by others, ahead and here
			seen := 0
			for f.Advance(a) {
				seen++
				require.NoError(t, w.Destroy(f.Entity()))
				if at := seen * 2; at < n {
					_ = w.Destroy(hs[n-1])
				}
			}
			if n > 2 {
				require.Equal(t, n-1, seen)
			}
		})
	}
}
