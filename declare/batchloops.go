package declare

import (
	"math"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// The loops of the batch backend. Vectors have the same number of lanes, a multiple of 64, and masks a word for each 64 of them. A
// vector may be the one that the result goes to. Which operation gives which bits is said at arith.go; products are converted,
// so that none is fused.

// run does an operation.
func (op *laneOp) run(l *line, uniform []float64) {
	if op.code > laneSelect {
		op.runMask(l, uniform)
		return
	}
	d := l.vectors[op.dst]
	switch op.code {
	case laneFill:
		s := uniform[op.s]
		for i := range d {
			d[i] = s
		}
	case laneNumber:
		numbers(d, l.masks[op.a])
	case laneSelect:
		selectLanes(d, l.vectors[op.a], l.vectors[op.b], l.masks[op.c])
	case laneCopy:
		copy(d, l.vectors[op.a])
	case laneNeg:
		negV(d, l.vectors[op.a])
	case laneAbs:
		absV(d, l.vectors[op.a])
	case laneSqrt:
		sqrtV(d, l.vectors[op.a])
	case laneFloor:
		floorV(d, l.vectors[op.a])
	case laneSign:
		signV(d, l.vectors[op.a])
	case laneAddVV:
		addVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneAddVS:
		addVS(d, l.vectors[op.a], uniform[op.s])
	case laneSubVV:
		subVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneSubVS:
		subVS(d, l.vectors[op.a], uniform[op.s])
	case laneSubSV:
		subSV(d, l.vectors[op.a], uniform[op.s])
	case laneMulVV:
		mulVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneMulVS:
		mulVS(d, l.vectors[op.a], uniform[op.s])
	case laneDivVV:
		divVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneDivVS:
		divVS(d, l.vectors[op.a], uniform[op.s])
	case laneDivSV:
		divSV(d, l.vectors[op.a], uniform[op.s])
	case laneModVV:
		modVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneModVS:
		modVS(d, l.vectors[op.a], uniform[op.s])
	case laneModSV:
		modSV(d, l.vectors[op.a], uniform[op.s])
	case laneMinVV:
		minVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneMinVS:
		minVS(d, l.vectors[op.a], uniform[op.s])
	case laneMaxVV:
		maxVV(d, l.vectors[op.a], l.vectors[op.b])
	case laneMaxVS:
		maxVS(d, l.vectors[op.a], uniform[op.s])
	case laneAddMul:
		addMul(d, l.vectors[op.a], l.vectors[op.b], uniform[op.s])
	case laneSubMul:
		subMul(d, l.vectors[op.a], l.vectors[op.b], uniform[op.s])
	case laneMulAdd:
		mulAdd(d, l.vectors[op.b], uniform[op.s], uniform[op.k])
	case laneAddMulAdd:
		addMulAdd(d, l.vectors[op.a], l.vectors[op.b], uniform[op.s], uniform[op.k])
	}
}

// runMask does an operation that gives a mask.
func (op *laneOp) runMask(l *line, uniform []float64) {
	m := l.masks[op.dst]
	switch op.code {
	case laneAll:
		word := -uint64(truth(isTrue(uniform[op.s])))
		for w := range m {
			m[w] = word
		}
	case laneTest:
		neVS(m, l.vectors[op.a], 0)
	case laneAnd:
		a, b := l.masks[op.a], l.masks[op.b]
		for w := range m {
			m[w] = a[w] & b[w]
		}
	case laneOr:
		a, b := l.masks[op.a], l.masks[op.b]
		for w := range m {
			m[w] = a[w] | b[w]
		}
	case laneNot:
		a := l.masks[op.a]
		for w := range m {
			m[w] = ^a[w]
		}
	case laneEqVV:
		eqVV(m, l.vectors[op.a], l.vectors[op.b])
	case laneEqVS:
		eqVS(m, l.vectors[op.a], uniform[op.s])
	case laneNeVV:
		neVV(m, l.vectors[op.a], l.vectors[op.b])
	case laneNeVS:
		neVS(m, l.vectors[op.a], uniform[op.s])
	case laneLtVV:
		ltVV(m, l.vectors[op.a], l.vectors[op.b])
	case laneLtVS:
		ltVS(m, l.vectors[op.a], uniform[op.s])
	case laneLeVV:
		leVV(m, l.vectors[op.a], l.vectors[op.b])
	case laneLeVS:
		leVS(m, l.vectors[op.a], uniform[op.s])
	case laneGtVS:
		gtVS(m, l.vectors[op.a], uniform[op.s])
	case laneGeVS:
		geVS(m, l.vectors[op.a], uniform[op.s])
	}
}

func negV(d, x []float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = -x[i]
	}
}

func absV(d, x []float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = math.Abs(x[i])
	}
}

func sqrtV(d, x []float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = math.Sqrt(x[i])
	}
}

func floorV(d, x []float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = math.Floor(x[i])
	}
}

func signV(d, x []float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = sign(x[i])
	}
}

func addVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func addVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + s
	}
}

func subVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

func subVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] - s
	}
}

func subSV(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = s - x[i]
	}
}

func mulVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = float64(x[i] * y[i])
	}
}

func mulVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = float64(x[i] * s)
	}
}

func divVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = div(x[i], y[i])
	}
}

func divVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = div(x[i], s)
	}
}

func divSV(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = div(s, x[i])
	}
}

func modVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = mod(x[i], y[i])
	}
}

func modVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = mod(x[i], s)
	}
}

func modSV(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = mod(s, x[i])
	}
}

func minVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func minVS(d, x []float64, s float64) {
	x = x[:len(d)]
	if planted.Enabled && planted.Is(planted.BatchMinIsMax) {
		maxVS(d, x, s)
		return
	}
	for i := range d {
		d[i] = min(x[i], s)
	}
}

func maxVV(d, x, y []float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func maxVS(d, x []float64, s float64) {
	x = x[:len(d)]
	for i := range d {
		d[i] = max(x[i], s)
	}
}

func addMul(d, x, y []float64, s float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + float64(s*y[i])
	}
}

func subMul(d, x, y []float64, s float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] - float64(s*y[i])
	}
}

func mulAdd(d, y []float64, s, k float64) {
	y = y[:len(d)]
	for i := range d {
		d[i] = float64(s * (k + y[i]))
	}
}

func addMulAdd(d, x, y []float64, s, k float64) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + float64(s*(k+y[i]))
	}
}

// bit is a condition as a bit, without a branch.
func bit(b bool) (v uint64) {
	if b {
		v = 1
	}
	return v
}

func eqVV(m []uint64, x, y []float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p, q := (*[8]float64)(x[w<<6+i:]), (*[8]float64)(y[w<<6+i:])
			word |= (bit(p[0] == q[0]) | bit(p[1] == q[1])<<1 | bit(p[2] == q[2])<<2 | bit(p[3] == q[3])<<3 |
				bit(p[4] == q[4])<<4 | bit(p[5] == q[5])<<5 | bit(p[6] == q[6])<<6 | bit(p[7] == q[7])<<7) << i
		}
		m[w] = word
	}
}

func eqVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] == s) | bit(p[1] == s)<<1 | bit(p[2] == s)<<2 | bit(p[3] == s)<<3 |
				bit(p[4] == s)<<4 | bit(p[5] == s)<<5 | bit(p[6] == s)<<6 | bit(p[7] == s)<<7) << i
		}
		m[w] = word
	}
}

func neVV(m []uint64, x, y []float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p, q := (*[8]float64)(x[w<<6+i:]), (*[8]float64)(y[w<<6+i:])
			word |= (bit(p[0] != q[0]) | bit(p[1] != q[1])<<1 | bit(p[2] != q[2])<<2 | bit(p[3] != q[3])<<3 |
				bit(p[4] != q[4])<<4 | bit(p[5] != q[5])<<5 | bit(p[6] != q[6])<<6 | bit(p[7] != q[7])<<7) << i
		}
		m[w] = word
	}
}

func neVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] != s) | bit(p[1] != s)<<1 | bit(p[2] != s)<<2 | bit(p[3] != s)<<3 |
				bit(p[4] != s)<<4 | bit(p[5] != s)<<5 | bit(p[6] != s)<<6 | bit(p[7] != s)<<7) << i
		}
		m[w] = word
	}
}

func ltVV(m []uint64, x, y []float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p, q := (*[8]float64)(x[w<<6+i:]), (*[8]float64)(y[w<<6+i:])
			word |= (bit(p[0] < q[0]) | bit(p[1] < q[1])<<1 | bit(p[2] < q[2])<<2 | bit(p[3] < q[3])<<3 |
				bit(p[4] < q[4])<<4 | bit(p[5] < q[5])<<5 | bit(p[6] < q[6])<<6 | bit(p[7] < q[7])<<7) << i
		}
		m[w] = word
	}
}

func ltVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] < s) | bit(p[1] < s)<<1 | bit(p[2] < s)<<2 | bit(p[3] < s)<<3 |
				bit(p[4] < s)<<4 | bit(p[5] < s)<<5 | bit(p[6] < s)<<6 | bit(p[7] < s)<<7) << i
		}
		m[w] = word
	}
}

func leVV(m []uint64, x, y []float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p, q := (*[8]float64)(x[w<<6+i:]), (*[8]float64)(y[w<<6+i:])
			word |= (bit(p[0] <= q[0]) | bit(p[1] <= q[1])<<1 | bit(p[2] <= q[2])<<2 | bit(p[3] <= q[3])<<3 |
				bit(p[4] <= q[4])<<4 | bit(p[5] <= q[5])<<5 | bit(p[6] <= q[6])<<6 | bit(p[7] <= q[7])<<7) << i
		}
		m[w] = word
	}
}

func leVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] <= s) | bit(p[1] <= s)<<1 | bit(p[2] <= s)<<2 | bit(p[3] <= s)<<3 |
				bit(p[4] <= s)<<4 | bit(p[5] <= s)<<5 | bit(p[6] <= s)<<6 | bit(p[7] <= s)<<7) << i
		}
		m[w] = word
	}
}

func gtVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] > s) | bit(p[1] > s)<<1 | bit(p[2] > s)<<2 | bit(p[3] > s)<<3 |
				bit(p[4] > s)<<4 | bit(p[5] > s)<<5 | bit(p[6] > s)<<6 | bit(p[7] > s)<<7) << i
		}
		m[w] = word
	}
}

func geVS(m []uint64, x []float64, s float64) {
	for w := range m {
		var word uint64
		for i := 0; i < 64; i += 8 {
			p := (*[8]float64)(x[w<<6+i:])
			word |= (bit(p[0] >= s) | bit(p[1] >= s)<<1 | bit(p[2] >= s)<<2 | bit(p[3] >= s)<<3 |
				bit(p[4] >= s)<<4 | bit(p[5] >= s)<<5 | bit(p[6] >= s)<<6 | bit(p[7] >= s)<<7) << i
		}
		m[w] = word
	}
}

// numbers are the bits of a mask as numbers.
func numbers(d []float64, m []uint64) {
	for w, word := range m {
		for i, part := 0, (*[64]float64)(d[w<<6:]); i < len(part); i++ {
			part[i] = float64(word >> i & 1)
		}
	}
}

// selectLanes takes x where the mask is set, and y elsewhere, without a branch.
func selectLanes(d, x, y []float64, m []uint64) {
	for w, word := range m {
		to, p, q := (*[64]float64)(d[w<<6:]), (*[64]float64)(x[w<<6:]), (*[64]float64)(y[w<<6:])
		for i := range to {
			to[i] = choice(-(word >> i & 1), p[i], q[i])
		}
	}
}

// choice is x if the mask is all ones, and y if it is 0.
func choice(mask uint64, x, y float64) float64 {
	return math.Float64frombits(math.Float64bits(x)&mask | math.Float64bits(y)&^mask)
}

// finiteAbove is what has the highest bit if added to the bits of a number that is not finite, without its sign: the exponent
// is all ones then.
const finiteAbove = 1 << 52

// storeLanes stores the lanes of src that are active and finite, and says how many were active and not finite.
func storeLanes(dst, src []float64, active []uint64) (refused uint64) {
	for w, word := range active {
		if word == 0 {
			continue
		}
		d, s := (*[64]float64)(dst[w<<6:]), (*[64]float64)(src[w<<6:])
		if word == ^uint64(0) {
			var infinite uint64
			for _, v := range s {
				infinite |= math.Float64bits(v)&^(1<<63) + finiteAbove
			}
			if infinite>>63 == 0 {
				*d = *s
				continue
			}
		}
		for i, v := range s {
			stored := word >> i & bit(isFinite(v))
			refused += word >> i & 1 &^ stored
			d[i] = choice(-stored, v, d[i])
		}
	}
	return refused
}
