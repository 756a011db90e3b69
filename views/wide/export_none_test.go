//go:build !goexperiment.simd || !amd64

package wide

// Vectors returns no bodies: this build has none.
func Vectors() (singles []Body[float32], doubles []Body[float64]) { return nil, nil }
