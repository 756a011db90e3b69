package wide_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/views/wide"
)

// Meters is a type of one's own: the public kernels take it to the plain bodies.
type Meters float32

// width returns the bits of a number of type F.
func width[F wide.Float]() int { return reflect.TypeFor[F]().Bits() }

// fromBits returns the number with these bits. One of 32 takes the upper half.
func fromBits[F wide.Float](bits uint64) F {
	if width[F]() == 32 {
		return F(math.Float32frombits(uint32(bits >> 32)))
	}
	return F(math.Float64frombits(bits))
}

// toBits returns the bits of a number.
func toBits[F wide.Float](v F) uint64 {
	if width[F]() == 32 {
		return uint64(math.Float32bits(float32(v))) << 32
	}
	return math.Float64bits(float64(v))
}

// specials are the numbers where kernels go wrong, each with both signs.
func specials[F wide.Float]() []F {
	patterns := []uint64{
		0, 1, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000, // zero, the denormal numbers at both ends, and a normal one
		0x3fe0_0000_0000_0001, 0x3ff0_0000_0000_0000, 0x4008_0000_0000_0000, // just above a half, 1, 3
		0x5fe6_a09e_667f_3bcd, 0x7fdf_ffff_ffff_ffff, 0x7fef_ffff_ffff_ffff, // near the end and at it
		0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0x7ff8_0000_0123_4567, // infinity, NaN of each kind
	}
	if width[F]() == 32 {
		patterns = []uint64{
			0, 1, 0x007f_ffff, 0x0080_0000,
			0x3f00_0001, 0x3f80_0000, 0x4040_0000,
			0x5f35_04f3, 0x7eff_ffff, 0x7f7f_ffff,
			0x7f80_0000, 0x7fc0_0000, 0x7f80_0001, 0x7fc0_1234,
		}
	}
	var list []F
	for _, bits := range patterns {
		bits <<= 64 - width[F]()
		list = append(list, fromBits[F](bits), fromBits[F](bits|1<<63))
	}
	return list
}

// draw returns a number of one of three kinds: a special one, any bits, or one near 1, so
// that sums of products neither overflow nor leave one operand without effect.
func draw[F wide.Float](r *rand.Rand) F {
	switch r.IntN(4) {
	case 0:
		list := specials[F]()
		return list[r.IntN(len(list))]
	case 1:
		return fromBits[F](r.Uint64())
	}
	return F(r.NormFloat64())
}

// fill draws every element of s, the numbers of guards too.
func fill[F wide.Float](r *rand.Rand, s []F) []F {
	for i := range s {
		s[i] = draw[F](r)
	}
	return s
}

// times and plus are one rounded operation each, so far apart that nothing can fuse them.
//
//go:noinline
func times[F wide.Float](a, b F) F { return a * b }

//go:noinline
func plus[F wide.Float](a, b F) F { return a + b }

// clamped is Clamp for one number, from its documentation.
func clamped[F wide.Float](v, lo, hi F) F {
	if lo > hi {
		lo = hi
	}
	switch {
	case v < lo:
		return lo
	case v > hi:
		return hi
	}
	return v
}

// agree fails unless got is want. A NaN has to be one in both and, if payloads is set, the same.
func agree[F wide.Float](t require.TestingT, what string, want, got []F, payloads bool) {
	for i := range want {
		if bothNaN := want[i] != want[i] && got[i] != got[i]; bothNaN && !payloads {
			continue
		}
		if toBits(want[i]) != toBits(got[i]) {
			require.FailNow(t, fmt.Sprintf("%s: element %d of %d is %v (%x), want %v (%x)", what, i, len(want),
				got[i], toBits(got[i]), want[i], toBits(want[i])))
		}
	}
}

// bodies returns what a test compares: all bodies for F in this build on this processor, each
// with the plain one doing what it leaves, and the kernels as the public sees them.
func bodies[F wide.Float](t require.TestingT, vectors []wide.Body[F]) []wide.Body[F] {
	plain := wide.Plain[F]()
	list := []wide.Body[F]{plain, {
		Name:  "public",
		Axpy:  func(y []F, a F, x []F) int { wide.Axpy(y, a, x); return len(y) },
		Scale: func(x []F, a F) int { wide.Scale(x, a); return len(x) },
		Add:   func(dst, src []F) int { wide.Add(dst, src); return len(dst) },
		Clamp: func(x []F, lo, hi F) int { wide.Clamp(x, lo, hi); return len(x) },
	}}
	for _, v := range vectors {
		whole := func(n, all int) int { // a vector body has to do all that fills a vector
			require.Equal(t, all-all%v.Lanes, n, "%s", v.Name)
			return n
		}
		list = append(list, wide.Body[F]{
			Name: v.Name,
			Axpy: func(y []F, a F, x []F) int {
				n := whole(v.Axpy(y, a, x), len(y))
				return n + plain.Axpy(y[n:], a, x[n:])
			},
			Scale: func(x []F, a F) int {
				n := whole(v.Scale(x, a), len(x))
				return n + plain.Scale(x[n:], a)
			},
			Add: func(dst, src []F) int {
				n := whole(v.Add(dst, src), len(dst))
				return n + plain.Add(dst[n:], src[n:])
			},
			Clamp: func(x []F, lo, hi F) int {
				n := whole(v.Clamp(x, lo, hi), len(x))
				return n + plain.Clamp(x[n:], lo, hi)
			},
		})
	}
	return list
}

// checkBodies runs every kernel in every body and compares with the elements one by one. The
// kernels get to = to[first:last] and as much of from; the elements around must stay.
func checkBodies[F wide.Float](t require.TestingT, list []wide.Body[F], to, from []F, first, last, shift int, a, b F) {
	x := from[first+shift : last+shift]
	want := slices.Clone(to)
	run := func(body, kernel string, payloads bool, do func(y []F) int, one func(i int) F) {
		for i := first; i < last; i++ {
			want[i] = one(i)
		}
		got := slices.Clone(to)
		require.Equal(t, last-first, do(got[first:last]), "%s in %s", kernel, body)
		what := fmt.Sprintf("%s in %s, elements [%d:%d], a %v, b %v", kernel, body, first, last, a, b)
		agree(t, what, want[first:last], got[first:last], payloads)
		agree(t, what+" (before)", to[:first], got[:first], true)
		agree(t, what+" (behind)", to[last:], got[last:], true)
	}
	lo := a
	if lo > b {
		lo = b
	}
	for _, body := range list {
		run(body.Name, "Axpy", false, func(y []F) int { return body.Axpy(y, a, x) },
			func(i int) F { return plus(to[i], times(a, from[i+shift])) })
		run(body.Name, "Axpy to itself", false, func(y []F) int { return body.Axpy(y, a, y) },
			func(i int) F { return plus(to[i], times(a, to[i])) })
		run(body.Name, "Scale", false, func(y []F) int { return body.Scale(y, a) },
			func(i int) F { return times(to[i], a) })
		run(body.Name, "Add", false, func(y []F) int { return body.Add(y, x) },
			func(i int) F { return plus(to[i], from[i+shift]) })
		run(body.Name, "Add to itself", false, func(y []F) int { return body.Add(y, y) },
			func(i int) F { return plus(to[i], to[i]) })
		run(body.Name, "Clamp", true, func(y []F) int { return body.Clamp(y, lo, b) },
			func(i int) F { return clamped(to[i], a, b) })
	}
}

// bits runs checkBodies over all lengths and offsets.
func bits[F wide.Float](t *testing.T, vectors []wide.Body[F]) {
	const longest, offsets, guards = 130, 5, 3
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	list := bodies(t, vectors)
	to, from := make([]F, longest+2*offsets+guards), make([]F, longest+2*offsets+guards)
	for n := range longest + 1 {
		for first := range offsets {
			checkBodies(t, list, fill(r, to), fill(r, from), first, first+n, r.IntN(offsets), draw[F](r), draw[F](r))
		}
	}
	special := specials[F]()
	for _, a := range special { // each special number meets each pair of the others, in some lane
		for _, b := range special {
			shift := r.IntN(len(special))
			for i := range to {
				to[i] = special[(i+shift)%len(special)]
			}
			checkBodies(t, list, to, fill(r, from), 1, 1+longest, 1, a, b)
		}
	}
}

func TestEveryBodyComputesTheSameBits(t *testing.T) {
	singles, doubles := wide.Vectors()
	t.Logf("%d vector bodies for float32, %d for float64", len(singles), len(doubles))
	t.Run("float32", func(t *testing.T) { bits(t, singles) })
	t.Run("float64", func(t *testing.T) { bits(t, doubles) })
	t.Run("a type of one's own", func(t *testing.T) { bits[Meters](t, nil) })
}

// FuzzBodies reads two slices and two factors out of data and compares all bodies.
func FuzzBodies(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 8, 9, 33, 130} {
		seed := make([]byte, 16*n)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed, uint8(n), uint64(0x7ff8<<48), uint64(1<<63))
	}
	f.Fuzz(func(t *testing.T, data []byte, offsets uint8, a, b uint64) {
		data = data[:min(len(data), 4<<10)] // longer ones take longer and tell nothing else
		singles, doubles := wide.Vectors()
		fuzzBodies(t, singles, data, offsets, a, b)
		fuzzBodies(t, doubles, data, offsets, a, b)
	})
}

// fuzzBodies is FuzzBodies for one type.
func fuzzBodies[F wide.Float](t *testing.T, vectors []wide.Body[F], data []byte, offsets uint8, a, b uint64) {
	var all []F
	for step := width[F]() / 8; len(data) >= step; data = data[step:] {
		var bits uint64
		for i := range step {
			bits |= uint64(data[i]) << (56 - 8*i)
		}
		all = append(all, fromBits[F](bits))
	}
	to, from := all[:len(all)/2], all[len(all)/2:]
	first, shift := int(offsets&15), int(offsets>>4)
	last := len(to) - shift
	if last < first {
		return
	}
	checkBodies(t, bodies(t, vectors), to, from, first, last, shift, fromBits[F](a), fromBits[F](b))
}
