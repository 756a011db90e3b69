package handles_test

import (
	"fmt"
	"testing"

	"github.com/airlock-ecs/airlock/handles"
)

// BenchmarkGlobals frees records and issues them again, under the numbers that were preferred and under others.
func BenchmarkGlobals(b *testing.B) {
	const n = 1 << 14
	for name, prefer := range map[string]func(i uint32) uint32{
		"preferred": func(i uint32) uint32 { return i },
		"lowest":    func(uint32) uint32 { return 0 },
	} {
		b.Run(fmt.Sprintf("issue-%s/live=%d", name, n), func(b *testing.B) {
			g := handles.NewGlobals(n, 0)
			for i := range uint32(n) {
				g.Issue(i + 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range uint32(n) {
					g.Free(i + 1)
				}
				b.StartTimer()
				for i := range uint32(n) {
					g.Issue(prefer(i + 1))
				}
			}
			perName(b, n)
		})
	}
}

// BenchmarkNets looks names up, and gives them a life.
func BenchmarkNets(b *testing.B) {
	const n = 1 << 14
	space := handles.NewNets(0, handles.NetsConfig{})
	names := make([]handles.Net, n)
	for i := range names {
		names[i], _ = space.Issue(uint32(i) + 1)
	}
	b.Run(fmt.Sprintf("local/live=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, h := range names {
				space.Local(h)
			}
		}
		perName(b, n)
	})
	b.Run(fmt.Sprintf("forged/live=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, h := range names {
				space.Local(h ^ 1<<40 ^ 1<<25)
			}
		}
		perName(b, n)
	})
	b.Run(fmt.Sprintf("free-confirm-issue/live=%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, h := range names {
				space.Free(h, 1)
			}
			space.Confirm()
			for i := range names {
				names[i], _ = space.Issue(uint32(i) + 1)
			}
		}
		perName(b, n)
	})
}
