package caller_test

import (
	"testing"

	"github.com/airlock-ecs/airlock/internal/caller"
)

//go:noinline
func direct(fn func()) { fn() }

func BenchmarkWithin(b *testing.B) {
	id, calls := caller.ID(new(object)), 0
	fn := func() { calls++ }
	b.Run("yardstick=direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			direct(fn)
		}
	})
	b.Run("within", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			caller.Within(id, fn)
		}
	})
}

func BenchmarkInside(b *testing.B) {
	id := caller.ID(new(object))
	b.ReportAllocs()
	for b.Loop() {
		caller.Inside(id)
	}
}
