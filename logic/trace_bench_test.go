package logic_test

import (
	"fmt"
	"io"
	"runtime/trace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// BenchmarkFrame is the core of a frame alone, without goroutines and clocks, while nobody traces and while somebody does.
func BenchmarkFrame(b *testing.B) {
	for _, systems := range []int{0, 8} {
		for _, tracing := range []bool{false, true} {
			b.Run(fmt.Sprintf("systems=%d/tracing=%t", systems, tracing), func(b *testing.B) {
				r, err := registry.New(registry.Config{})
				require.NoError(b, err)
				c, free, err := logic.NewCore(r)
				require.NoError(b, err)
				defer free()
				defer c.Leave()
				for i := range systems {
					c.Add(logic.Phase(i%4), "idle", func(*logic.Frame) {})
				}
				if tracing {
					require.NoError(b, trace.Start(io.Discard))
					defer trace.Stop()
				}
				b.ReportAllocs()
				for b.Loop() {
					c.Step()
					c.Log = c.Log[:0]
				}
			})
		}
	}
}
