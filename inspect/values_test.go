package inspect_test

import "math"

func nan() float32 { return float32(math.NaN()) }
