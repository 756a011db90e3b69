package archetype_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

type (
	record struct {
		Flag  bool
		Name  string
		Any   any
		Err   error
		Short int16
		Next  *record
		Tail  [3]byte
	}
	crowd struct {
		Head uint8
		All  [40]record
		Ptrs [1000]*record
		Foot uint8
	}
)

// movedTypes have every kind of pointer, padding, arrays that are unrolled and looped over.
var movedTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[[]int](), reflect.TypeFor[any](), reflect.TypeFor[error](),
	reflect.TypeFor[*int](), reflect.TypeFor[map[int]string](), reflect.TypeFor[chan int](),
	reflect.TypeFor[func()](), reflect.TypeFor[unsafe.Pointer](),
	reflect.TypeFor[record](), reflect.TypeFor[crowd](), reflect.TypeFor[[2]record](),
	reflect.TypeFor[[3][2]string](), reflect.TypeFor[[50][50]*int](), reflect.TypeFor[[64]string](),
	reflect.TypeFor[struct {
		A byte
		B [0]*int
		C []string
		D [7]byte
	}](),
}

func TestCopierMovesEveryPointerFreeSize(t *testing.T) {
	for size := range 200 {
		typ := arrayType(size)
		c := archetype.NewCopier(typ)
		require.Equal(t, uintptr(size), c.Size())
		for _, shift := range []int{0, 1} { // cells of bytes are not aligned
			src, dst := make([]byte, size+2+shift), make([]byte, size+2+shift)
			for i := range src {
				src[i], dst[i] = byte(i+1), 0xEE
			}
			if size == 0 {
				continue
			}
			cell := dst[1+shift : 1+shift+size]
			c.Copy(unsafe.Pointer(&cell[0]), unsafe.Pointer(&src[1+shift]))
			require.Equal(t, src[1+shift:1+shift+size], cell)
			require.Equal(t, byte(0xEE), dst[shift], "size %d writes before the cell", size)
			require.Equal(t, byte(0xEE), dst[len(dst)-1], "size %d writes behind the cell", size)
			c.Zero(unsafe.Pointer(&cell[0]))
			require.Equal(t, make([]byte, size), cell)
			require.Equal(t, byte(0xEE), dst[shift])
			require.Equal(t, byte(0xEE), dst[len(dst)-1])
		}
	}
}

func TestPlansMoveEachByteOnceAndPointersAsPointers(t *testing.T) {
	for _, typ := range movedTypes {
		pointer, err := archetype.PlanBytes(typ)
		require.NoError(t, err)
		want := make([]bool, typ.Size())
		markPointers(want, typ, 0)
		require.Equal(t, want, pointer, typ.String())
	}
	require.Less(t, archetype.PlanSteps(reflect.TypeFor[crowd]()), 20, "large arrays are loops")
	require.Equal(t, 1, archetype.PlanSteps(reflect.TypeFor[[50][50]*int]()))
}

// markPointers says which bytes of a type belong to words that may hold a pointer.
func markPointers(mark []bool, t reflect.Type, at uintptr) {
	words := 0
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		words = 1
	case reflect.Interface:
		words = 2
	case reflect.Array:
		for i := range t.Len() {
			markPointers(mark, t.Elem(), at+uintptr(i)*t.Elem().Size())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			markPointers(mark, t.Field(i).Type, at+t.Field(i).Offset)
		}
	}
	for i := range uintptr(words) * 8 {
		mark[at+i] = true
	}
}

func TestCopierMovesValuesWithPointers(t *testing.T) {
	v := crowd{Head: 1, Foot: 2}
	for i := range v.All {
		v.All[i] = record{
			Flag: true, Name: fmt.Sprint("name ", i), Any: i, Err: fmt.Errorf("error %d", i),
			Short: int16(i), Next: &v.All[(i+1)%len(v.All)], Tail: [3]byte{1, 2, 3},
		}
	}
	for i := range v.Ptrs {
		v.Ptrs[i] = &v.All[i%len(v.All)]
	}
	c := archetype.NewCopier(reflect.TypeFor[crowd]())
	var w crowd
	c.Copy(unsafe.Pointer(&w), unsafe.Pointer(&v))
	require.True(t, reflect.DeepEqual(v.All[:2], w.All[:2]))
	require.Equal(t, v.Ptrs, w.Ptrs)
	require.Equal(t, v.Foot, w.Foot)
	c.Copy(unsafe.Pointer(&w), unsafe.Pointer(&w))
	require.Equal(t, v.All[39].Name, w.All[39].Name)
	c.Zero(unsafe.Pointer(&w))
	require.True(t, reflect.ValueOf(w).IsZero())
}

// A pointer word that moves without a write barrier can hide the object it points to from a
// running collection: source cleared before the collector saw it, target written after. So
// objects with one reference each travel from cell to cell while collections run one after
// another, and none may be lost.
func TestCopierHidesNoPointerFromTheCollector(t *testing.T) {
	type cell struct {
		_    int16
		P    *[4]uint64
		Text string
		Any  any
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var stop atomic.Bool
	var collections atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			runtime.GC()
			collections.Add(1)
		}
	}()

	const n = 2000
	typ := reflect.TypeFor[cell]()
	c := archetype.NewCopier(typ)
	column := reflect.MakeSlice(reflect.SliceOf(typ), n+1, n+1).UnsafePointer()
	at := func(i int) unsafe.Pointer { return unsafe.Add(column, uintptr(i)*typ.Size()) }
	fill := func(i int, v uint64) {
		p := (*cell)(at(i))
		p.P, p.Text, p.Any = &[4]uint64{v, v, v, v}, fmt.Sprint(v), &[2]uint64{v, v}
	}
	for i := range n {
		fill(i, uint64(i))
	}
	var junk []*[4]uint64
	// The column is turned round and round, an odd number of times, until it was collected
	// often enough: what is scanned late goes where it was scanned early.
	for turns := 0; turns%2 == 0 || collections.Load() < 30; turns++ {
		for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
			c.Copy(at(n), at(j))
			c.Copy(at(j), at(i))
			c.Copy(at(i), at(n))
			c.Zero(at(n))
		}
		junk = append(junk[:0], nil)
		for range 200 { // takes the place of what was freed too early
			junk = append(junk, &[4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)})
		}
	}
	stop.Store(true)
	<-done
	for i := range n {
		p := (*cell)(at(i))
		v := uint64(n - 1 - i)
		require.Equal(t, [4]uint64{v, v, v, v}, *p.P)
		require.Equal(t, fmt.Sprint(v), p.Text)
		require.Equal(t, [2]uint64{v, v}, *p.Any.(*[2]uint64))
	}
}

func TestCopierAllocatesNothing(t *testing.T) {
	for _, typ := range movedTypes {
		c := archetype.NewCopier(typ)
		dst := reflect.New(typ).UnsafePointer()
		src := reflect.New(typ).UnsafePointer()
		require.Zero(t, testing.AllocsPerRun(10, func() {
			c.Copy(dst, src)
			c.Zero(dst)
		}), typ.String())
	}
	vec, rec := archetype.NewCopier(reflect.TypeFor[[2]float64]()), archetype.NewCopier(reflect.TypeFor[record]())
	var vecCell [2]float64
	var recCell record
	require.Zero(t, testing.AllocsPerRun(10, func() {
		v, r := [2]float64{1, 2}, record{Name: "on the stack"} // a caller's value does not escape
		vec.Copy(unsafe.Pointer(&vecCell), unsafe.Pointer(&v))
		rec.Copy(unsafe.Pointer(&recCell), unsafe.Pointer(&r))
	}))
}
