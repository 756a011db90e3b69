package bitset_test

import (
	"fmt"
	"testing"

	"github.com/airlock-ecs/airlock/internal/bitset"
)

// BenchmarkTakeLowest takes the lowest member and puts it back, in a set with one member in
// a thousand numbers.
func BenchmarkTakeLowest(b *testing.B) {
	for _, n := range []uint32{64, 4096, 1 << 20} {
		b.Run(fmt.Sprintf("span=%d", n), func(b *testing.B) {
			var s bitset.Set
			for i := n - 1; ; i -= 1000 {
				s.Add(i)
				if i < 1000 {
					break
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				i, _ := s.First()
				s.Remove(i)
				s.Add(i)
			}
		})
	}
}
