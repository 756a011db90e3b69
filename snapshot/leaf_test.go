package snapshot

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// leafTypes are types with and without padding, in all the ways that there are to nest.
var leafTypes = []reflect.Type{
	reflect.TypeFor[uint8](),
	reflect.TypeFor[float64](),
	reflect.TypeFor[complex128](),
	reflect.TypeFor[[5]int16](),
	reflect.TypeFor[struct{}](),
	reflect.TypeFor[position](),
	reflect.TypeFor[velocity](),
	reflect.TypeFor[armor](),
	reflect.TypeFor[[4]armor](),
	reflect.TypeFor[[2][3]struct {
		A uint16
		B uint8
	}](),
	reflect.TypeFor[struct {
		A [0]uint64
		B uint8
		C struct{}
		D struct {
			E uint8
			F [2]struct {
				G bool
				H int64
			}
		}
		I uint16
		J struct{}
	}](),
	reflect.TypeFor[struct {
		A, B uint16
		C    uint32
		D    uint8
	}](),
}

// scalarsOf gives offset and width of every scalar, the plain way.
func scalarsOf(t reflect.Type, at int) (all [][2]int) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			all = append(all, scalarsOf(t.Field(i).Type, at+int(t.Field(i).Offset))...)
		}
	case reflect.Array:
		for i := range t.Len() {
			all = append(all, scalarsOf(t.Elem(), at+i*int(t.Elem().Size()))...)
		}
	case reflect.Complex64, reflect.Complex128:
		half := int(t.Size()) / 2
		all = append(all, [2]int{at, half}, [2]int{at + half, half})
	default:
		all = append(all, [2]int{at, int(t.Size())})
	}
	return all
}

func TestLeavesAreTheScalars(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, typ := range leafTypes {
		scalars := scalarsOf(typ, 0)
		cell := make([]byte, typ.Size()+3)
		for i := range cell {
			cell[i] = byte(random.Uint32())
		}
		for _, swap := range []bool{false, true} {
			l := newLeaves(typ, swap)
			var want []byte
			padding := map[int]bool{}
			for i := range int(typ.Size()) {
				padding[i] = true
			}
			for _, s := range scalars {
				for i := range s[1] {
					padding[s[0]+i] = false
					if swap {
						want = append(want, cell[s[0]+s[1]-1-i])
					} else {
						want = append(want, cell[s[0]+i])
					}
				}
			}
			got := l.append([]byte{7}, cell)
			require.Equal(t, append([]byte{7}, want...), got, typ)
			require.Equal(t, len(want), l.size)
			require.EqualValues(t, typ.Size(), l.cell)
			require.Equal(t, !swap && l.size == int(typ.Size()), l.dense, typ)

			back := make([]byte, len(cell))
			for i := range back {
				back[i] = 0xee
			}
			l.put(back, got[1:])
			for i := range int(typ.Size()) {
				if padding[i] {
					require.Zero(t, back[i], "%v: padding becomes zero", typ)
				} else {
					require.Equal(t, cell[i], back[i], typ)
				}
			}
			require.Equal(t, []byte{0xee, 0xee, 0xee}, back[typ.Size():], "nothing behind the cell is written")
		}
	}
}

func TestLeavesAreFew(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[position](), reflect.TypeFor[[1000]position](), reflect.TypeFor[[3][4]uint8]()} {
		require.Len(t, newLeaves(typ, false).parts, 1, typ)
		require.Len(t, newLeaves(typ, true).parts, 1, typ)
	}
	require.Len(t, newLeaves(reflect.TypeFor[[1 << 19]armor](), false).parts, 1, "an array is as long as its element's")
}

func TestLeafAtFindsEveryByte(t *testing.T) {
	for _, typ := range leafTypes {
		at := 0
		for _, s := range scalarsOf(typ, 0) {
			for i := range s[1] {
				l := leafAt(typ, at+i)
				require.Equal(t, at, l.at, typ)
				require.EqualValues(t, s[1], l.kind.Size(), typ)
			}
			at += s[1]
		}
	}
	require.Equal(t, "D[1].F", leafAt(reflect.TypeFor[armor](), 1+4+1+9+1).path)
	require.Equal(t, "[2].g.imag", leafAt(reflect.TypeFor[[3]armor](), 3*42-1).path)
	require.Equal(t, "", leafAt(reflect.TypeFor[uint32](), 3).path)
}

func TestTypesAreDescribedByWhatTheyConsistOf(t *testing.T) {
	type speed float32
	for want, typ := range map[string]reflect.Type{
		"struct{X float32; Y float32; Z float32}":                                                reflect.TypeFor[position](),
		"struct{A uint8; B uint32; C bool; D [3]struct{E int8; F uint64}; _ uint8; g complex64}": reflect.TypeFor[armor](),
		"struct{}":                              reflect.TypeFor[frozen](),
		"float32":                               reflect.TypeFor[speed](),
		"struct{Items []string}":                reflect.TypeFor[bag](),
		"struct{Next *snapshot.node; S string}": reflect.TypeFor[node](),
	} {
		require.Equal(t, want, string(appendType(nil, typ)))
	}
}

type node struct {
	Next *node
	S    string
}
