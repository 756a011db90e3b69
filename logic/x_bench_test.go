package logic_test

import (
	"testing"
)

func BenchmarkStep(b *testing.B) {
	w := newWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		_ = w.e.Step()
	}
}
