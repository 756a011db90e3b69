package inspect_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

// nowhere takes an answer and forgets it. As net/http does, it has a header for each request.
type nowhere struct {
	header http.Header
	bytes  int
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}
func (n *nowhere) Write(p []byte) (int, error) {
	n.bytes += len(p)
	return len(p), nil
}

// BenchmarkServe is what a request costs but for the connection.
func BenchmarkServe(b *testing.B) {
	k := newWorld(b, registry.Config{}, inspect.Config{})
	k.fleet(10_000)
	for _, path := range []string{"/stats.json", "/history.json", "/metrics", "/world.json"} {
		b.Run(strings.TrimPrefix(path, "/"), func(b *testing.B) {
			r := request(b.Context(), "GET", path, nil)
			w := &nowhere{}
			b.ReportAllocs()
			for b.Loop() {
				*w = nowhere{header: http.Header{}}
				k.h.ServeHTTP(w, r)
			}
			require.Positive(b, w.bytes)
			b.ReportMetric(float64(w.bytes), "bytes")
		})
	}
}
