//go:build !goexperiment.simd || !amd64

package wide

// In this build no vector body does any elements. The functions vanish by inlining.

func axpyWide[F Float]([]F, F, []F) int { return 0 }
func scaleWide[F Float]([]F, F) int     { return 0 }
func addWide[F Float](_, _ []F) int     { return 0 }
func clampWide[F Float]([]F, F, F) int  { return 0 }
