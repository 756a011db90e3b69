package archetype_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

func TestChunkSizesAwayFromTheDefault(t *testing.T) {
	t.Run("archetype-3", func(t *testing.T) {
		for _, n := range []int{64, 128, 1024, 4096} {
			require.NoError(t, archetype.ValidateSlots(n))
			s := archetype.NewStore(archetype.NewSchema(), 0)
			a := s.Archetype(0, archetype.Signature{}, "empty", n)
			for i := range n {
				c, slot, fresh := a.Take()
				require.Equal(t, uint32(i), c.Base()+slot)
				require.True(t, fresh)
			}
			require.Len(t, a.Chunks(), 1)
			require.Equal(t, n, a.Chunks()[0].Slots())
			a.Take()
			require.Len(t, a.Chunks(), 2)
			require.Equal(t, uint32(2*n), s.CacheCap())
			require.NoError(t, s.Verify())
		}
		for _, n := range []int{-64, 0, 1, 63, 65, 96, 4096 + 64, 65600} {
			require.ErrorContains(t, archetype.ValidateSlots(n), fmt.Sprint(n))
			if n != 0 { // 0 means the default
				s := archetype.NewStore(archetype.NewSchema(), 0)
				require.Panics(t, func() { s.Archetype(0, archetype.Signature{}, "bad", n) })
				require.Empty(t, s.Archetypes())
			}
		}
	})
}

// componentTypes are shapes to lay out: odd sizes, pointers, tags.
var componentTypes = []reflect.Type{
	arrayType(0), arrayType(1), arrayType(3), arrayType(7), arrayType(16), arrayType(65),
	reflect.TypeFor[uint64](), reflect.TypeFor[complex128](), reflect.TypeFor[string](),
	reflect.TypeFor[*int](), reflect.TypeFor[nested](), reflect.TypeFor[plain](),
}

func TestLayoutPlacesEveryFrameOfEveryColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := archetype.NewSchema()
		var comps []*archetype.Component
		highest := archetype.Volatile
		for _, typ := range rapid.Permutation(componentTypes).Draw(t, "types")[:rapid.IntRange(0, len(componentTypes)).Draw(t, "n")] {
			o := archetype.Options{
				Tier:  rapid.SampledFrom([]archetype.Tier{archetype.Cold, archetype.Volatile, archetype.Temporal}).Draw(t, "tier"),
				Split: typ.Kind() == reflect.Struct && rapid.Bool().Draw(t, "split"),
			}
			c, err := s.Register(typ, o)
			if err != nil {
				o.Tier = archetype.Cold // it has pointers
				c, err = s.Register(typ, o)
			}
			require.NoError(t, err)
			highest = max(highest, o.Tier)
			comps = append(comps, c)
		}
		slots := 64 * rapid.IntRange(1, 64).Draw(t, "slots")
		ring := rapid.SampledFrom([]int{0, 8, 64}).Draw(t, "ring")
		l := archetype.NewLayout(rapid.Permutation(comps).Draw(t, "order"), slots, ring)
		require.Equal(t, slots, l.Slots())

		type piece struct{ lo, hi uintptr }
		var pieces []piece
		strides := map[int]uintptr{}
		var last archetype.FieldKey
		var total, slot int
		for key, f := range l.All() {
			require.Equal(t, slot, f.Slot)
			if slot > 0 {
				require.True(t, key.Component > last.Component || key.Component == last.Component && key.Field > last.Field)
			}
			again, ok := l.Lookup(key)
			require.True(t, ok)
			require.Equal(t, f, again)

			want := map[archetype.Tier]int{archetype.Cold: 1, archetype.Volatile: 3, archetype.Temporal: max(ring, 3)}[f.Tier]
			if ring != 0 && f.Tier == archetype.Temporal {
				want = ring
			}
			require.Equal(t, want, f.FrameCount)
			require.Equal(t, f.FrameCount == 1, f.FrameStride == 0)
			require.Equal(t, f.Type.Size(), f.ElementSize)
			elements := uintptr(slots)
			switch key.Component {
			case archetype.ActiveID:
				elements /= 64
				require.Equal(t, highest, f.Tier)
			case archetype.EntityID:
				require.Equal(t, reflect.TypeFor[handles.Local](), f.Type)
				require.Equal(t, highest, f.Tier)
			}
			if f.FrameCount > 1 {
				require.GreaterOrEqual(t, f.FrameStride, elements*f.ElementSize)
			}
			require.Zero(t, f.FrameStride%64)
			if f.Pointers {
				require.Zero(t, f.Offset)
			} else {
				require.Zero(t, f.Offset%64)
				for k := range uintptr(f.FrameCount) {
					at := f.Offset + k*f.FrameStride
					pieces = append(pieces, piece{at, at + elements*f.ElementSize})
				}
				if stride, ok := strides[f.FrameCount]; ok {
					require.Equal(t, stride, f.FrameStride, "columns with as many frames lie by the frame")
				}
				strides[f.FrameCount] = f.FrameStride
			}
			total += f.FrameCount * int(elements*f.ElementSize)
			last, slot = key, slot+1
		}
		require.Equal(t, slot, l.Len())
		require.Equal(t, archetype.EntityID, last.Component)
		require.GreaterOrEqual(t, l.Bytes(), total)
		require.Less(t, l.Bytes(), total+5*64*65*l.Len(), "rounding is at most a line a frame, and four keep frames apart")
		for _, f := range l.All() {
			require.False(t, !f.Pointers && f.FrameCount > 1 && f.FrameStride%4096 == 0, "frames that alias in copies")
		}
		slices.SortFunc(pieces, func(a, b piece) int { return int(a.lo) - int(b.lo) })
		for i := 1; i < len(pieces); i++ {
			require.LessOrEqual(t, pieces[i-1].hi, pieces[i].lo)
		}
		_, ok := l.Lookup(archetype.FieldKey{Component: 200})
		require.False(t, ok)
	})
}

func TestFieldTableFollowsTheOneFormula(t *testing.T) {
	s := archetype.NewSchema()
	var comps []*archetype.Component
	for i, tier := range []archetype.Tier{archetype.Cold, archetype.Volatile, archetype.Temporal} {
		c, err := s.Register(arrayType(i+1), archetype.Options{Tier: tier})
		require.NoError(t, err)
		comps = append(comps, c)
	}
	l := archetype.NewLayout(comps, 128, 8)
	memory := make([]byte, l.Bytes())
	bases, table := make([]unsafe.Pointer, l.Len()), make([]unsafe.Pointer, l.Len())
	for _, f := range l.All() {
		bases[f.Slot] = unsafe.Pointer(&memory[f.Offset])
	}
	for _, frame := range []uint64{0, 1, 2, 3, 7, 8, 9, 1<<64 - 1} {
		l.BuildFieldTable(table, bases, frame)
		for _, f := range l.All() {
			offset := f.Offset + uintptr(frame%uint64(f.FrameCount))*f.FrameStride
			require.Equal(t, unsafe.Pointer(&memory[offset]), table[f.Slot])
		}
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { l.BuildFieldTable(table, bases, 5) }))
}

func TestTiersHaveNames(t *testing.T) {
	require.Equal(t, "Cold Volatile Temporal Tier(7)",
		fmt.Sprint(archetype.Cold, " ", archetype.Volatile, " ", archetype.Temporal, " ", archetype.Tier(7)))
	require.Equal(t, "256.1", archetype.FieldKey{Component: archetype.ActiveID, Field: 1}.String())
}
