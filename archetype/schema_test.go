package archetype_test

import (
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

// arrayType is a type of its own for each i.
func arrayType(i int) reflect.Type { return reflect.ArrayOf(i, reflect.TypeFor[byte]()) }

func TestSchemaKeepsItsLimit(t *testing.T) {
	t.Run("archetype-1", func(t *testing.T) {
		s := archetype.NewSchema()
		for i := range archetype.MaxComponents - 1 {
			c, err := s.Register(arrayType(i), archetype.Options{})
			require.NoError(t, err)
			require.Equal(t, archetype.ComponentID(i), c.ID)
		}

		_, err := s.RegisterAll([]reflect.Type{arrayType(3), arrayType(1000), arrayType(1001)})
		require.ErrorIs(t, err, archetype.ErrTooManyComponents)
		require.ErrorContains(t, err, "256")
		require.ErrorContains(t, err, arrayType(1001).String())
		require.Equal(t, 255, s.Len(), "a class that does not fit registers nothing")
		_, ok := s.ByType(arrayType(1000))
		require.False(t, ok)

		c, err := s.Register(arrayType(1000), archetype.Options{})
		require.NoError(t, err)
		require.Equal(t, archetype.ComponentID(255), c.ID)

		_, err = s.Register(arrayType(1001), archetype.Options{})
		require.ErrorIs(t, err, archetype.ErrTooManyComponents)
		require.ErrorContains(t, err, "256")
		require.Equal(t, 256, s.Len())

		var all archetype.Signature
		for id := range archetype.ComponentID(archetype.MaxComponents) {
			byID, ok := s.ByID(id)
			require.True(t, ok)
			byType, ok := s.ByType(byID.Type)
			require.True(t, ok)
			require.Same(t, byID, byType)
			all = all.With(id)
		}
		require.Equal(t, archetype.MaxComponents, all.Len())
		_, ok = s.ByID(archetype.ActiveID)
		require.False(t, ok)

		// All of them in one archetype, each cell with a value of its own.
		a := archetype.NewStore(s, 0).Archetype(0, all, "everything", 64)
		c1, slot, _ := a.Take()
		cellOf := func(c *archetype.Component) []byte {
			return unsafe.Slice((*byte)(c1.Cell(a.Column(c.ID), slot, c.Size)), c.Size)
		}
		for _, c := range a.Components() {
			if c.Tag() {
				require.Equal(t, -1, a.Column(c.ID))
				continue
			}
			for i := range cellOf(c) {
				cellOf(c)[i] = byte(c.ID)
			}
		}
		for _, c := range a.Components() {
			if !c.Tag() {
				for _, b := range cellOf(c) {
					require.Equal(t, byte(c.ID), b)
				}
			}
		}
	})
}

type (
	plain  struct{ X, Y float32 }
	nested struct {
		A     int32
		Inner struct{ Names [2]struct{ Name string } }
	}
	stringer interface{ String() string }
)

func TestSchemaRefuses(t *testing.T) {
	t.Run("archetype-2", func(t *testing.T) {
		s := archetype.NewSchema()
		temporal := archetype.Options{Tier: archetype.Temporal}
		for _, bad := range []reflect.Type{
			reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[map[int]int](),
			reflect.TypeFor[func()](), reflect.TypeFor[chan int](), reflect.TypeFor[*int](),
			reflect.TypeFor[unsafe.Pointer](), reflect.TypeFor[struct{ V any }](),
			reflect.TypeFor[[3]*int](), reflect.TypeFor[nested](),
			reflect.TypeFor[struct{ _ *int }](),
		} {
			_, err := s.Register(bad, temporal)
			require.ErrorIs(t, err, archetype.ErrPointerInTemporal)
			require.ErrorContains(t, err, bad.String())
			_, err = s.Register(bad, archetype.Options{Tier: archetype.Temporal, Split: true})
			require.Error(t, err)
		}
		require.Zero(t, s.Len())

		for _, fine := range []reflect.Type{
			reflect.TypeFor[uintptr](), reflect.TypeFor[[0]*int](), reflect.TypeFor[plain](),
		} {
			_, err := s.Register(fine, temporal)
			require.NoError(t, err)
		}
		require.Equal(t, 3, s.Len())

		cold, err := s.RegisterAll([]reflect.Type{reflect.TypeFor[nested]()})
		require.NoError(t, err)
		refused := []struct {
			claim string
			t     reflect.Type
			o     archetype.Options
			want  error
			says  string
		}{
			{"a type twice", reflect.TypeFor[plain](), temporal, archetype.ErrAlreadyRegistered, "plain"},
			{"another tier after a class made it Cold", reflect.TypeFor[nested](), archetype.Options{Tier: archetype.Volatile}, archetype.ErrAlreadyRegistered, "nested"},
			{"a name twice", reflect.TypeFor[int8](), archetype.Options{Name: "archetype_test.plain"}, archetype.ErrAlreadyRegistered, "int8"},
			{"an interface", reflect.TypeFor[stringer](), archetype.Options{}, nil, "stringer"},
			{"the empty interface", reflect.TypeFor[any](), archetype.Options{}, nil, "interface"},
			{"split of what has no fields", reflect.TypeFor[[3]int](), archetype.Options{Split: true}, nil, "[3]int"},
			{"a tier that does not exist", reflect.TypeFor[int16](), archetype.Options{Tier: 9}, nil, "int16"},
			{"what does not fit", arrayType(16<<20 + 1), archetype.Options{}, nil, "16777217"},
			{"no type", nil, archetype.Options{}, nil, "type"},
		}
		for _, r := range refused {
			c, err := s.Register(r.t, r.o)
			assert.Error(t, err, r.claim)
			assert.ErrorContains(t, err, r.says, r.claim)
			assert.Nil(t, c, r.claim)
			if r.want != nil {
				assert.ErrorIs(t, err, r.want, r.claim)
			}
		}
		_, err = s.RegisterAll([]reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[int32](), reflect.TypeFor[int64]()})
		require.ErrorIs(t, err, archetype.ErrAlreadyRegistered)
		_, err = s.RegisterAll([]reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[stringer]()})
		require.ErrorContains(t, err, "stringer")

		require.Equal(t, 4, s.Len(), "what was registered stands, and nothing else")
		again, err := s.RegisterAll([]reflect.Type{reflect.TypeFor[nested]()})
		require.NoError(t, err)
		require.Same(t, cold[0], again[0])
		require.Equal(t, archetype.Cold, again[0].Tier)
	})
}

func TestSplitFlattensStructsAndKeepsArrays(t *testing.T) {
	type inner struct {
		X, Y float32
		_    [3]byte
	}
	type outer struct {
		inner
		Name string
		Grid [4]int16
		_    struct{}
		tail struct{ deep struct{ Z uint8 } }
	}
	s := archetype.NewSchema()
	c, err := s.Register(reflect.TypeFor[outer](), archetype.Options{Split: true, Name: "outer"})
	require.NoError(t, err)
	require.True(t, c.Pointers)
	var names []string
	for i, f := range c.Fields {
		names = append(names, f.Name)
		require.Equal(t, archetype.FieldKey{Component: c.ID, Field: uint16(i)}, f.Key)
		require.Equal(t, f.Type.Size(), f.Size)
		require.Zero(t, f.Offset%f.Align)
		require.Equal(t, f.Name == "Name", f.Pointers)
	}
	require.Equal(t, []string{"inner.X", "inner.Y", "inner._", "Name", "Grid", "tail.deep.Z"}, names)
	require.Equal(t, unsafe.Offsetof(outer{}.tail), c.Fields[5].Offset)
	byName, ok := s.ByName("outer")
	require.True(t, ok)
	require.Same(t, c, byName)

	for _, tag := range []reflect.Type{reflect.TypeFor[struct{}](), reflect.TypeFor[[0]int]()} {
		c, err := s.Register(tag, archetype.Options{Split: tag.Kind() == reflect.Struct})
		require.NoError(t, err)
		require.True(t, c.Tag())
	}
}

func TestSchemaIsReadWhileItGrows(t *testing.T) {
	s := archetype.NewSchema()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for s.Len() < archetype.MaxComponents {
				n := s.Len()
				for i := range n {
					c, ok := s.ByType(arrayType(i))
					if !ok || c.ID != archetype.ComponentID(i) {
						t.Errorf("component %d of %d is not found", i, n)
						return
					}
				}
			}
		})
	}
	for i := range archetype.MaxComponents {
		_, err := s.Register(arrayType(i), archetype.Options{})
		require.NoError(t, err)
	}
	readers.Wait()
}

func TestSignatureIsASet(t *testing.T) {
	var s archetype.Signature
	for _, id := range []archetype.ComponentID{0, 63, 64, 255} {
		require.False(t, s.Has(id))
		s = s.With(id)
		require.True(t, s.Has(id))
	}
	require.False(t, s.Has(archetype.ActiveID))
	require.False(t, s.Has(65535))
	var got []archetype.ComponentID
	for id := range s.All() {
		got = append(got, id)
	}
	require.Equal(t, []archetype.ComponentID{0, 63, 64, 255}, got)

	less := s.Without(64)
	require.True(t, s.Contains(less))
	require.False(t, less.Contains(s))
	require.True(t, s.Intersects(less))
	require.False(t, less.Intersects(archetype.Signature{}.With(64).With(1)))
	require.True(t, less.Contains(archetype.Signature{}))
	require.Panics(t, func() { s.With(archetype.ActiveID) })
}
