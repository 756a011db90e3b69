package wide

// Body is one body of every kernel. The functions do whole vectors and return how many elements that were.
type Body[F Float] struct {
	Name  string
	Lanes int // elements in a vector
	Axpy  func(y []F, a F, x []F) int
	Scale func(x []F, a F) int
	Add   func(dst, src []F) int
	Clamp func(x []F, lo, hi F) int // for lo <= hi
}

// Plain returns the bodies in plain Go.
func Plain[F Float]() Body[F] {
	return Body[F]{
		Name:  "plain",
		Lanes: 1,
		Axpy:  func(y []F, a F, x []F) int { axpyGo(y, a, x); return len(y) },
		Scale: func(x []F, a F) int { scaleGo(x, a); return len(x) },
		Add:   func(dst, src []F) int { addGo(dst, src); return len(dst) },
		Clamp: func(x []F, lo, hi F) int { clampGo(x, lo, hi); return len(x) },
	}
}
