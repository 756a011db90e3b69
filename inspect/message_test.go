package inspect_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// pieces is a writer that keeps what it is given, not a copy of it.
type pieces struct {
	header http.Header
	all    [][]byte
}

func (s *pieces) Header() http.Header              { return s.header }
func (s *pieces) WriteHeader(int)                  {}
func (s *pieces) Write(p []byte) (int, error)      { s.all = append(s.all, p); return len(p), nil }
func (s *pieces) FlushError() error                { return nil }
func (s *pieces) SetWriteDeadline(time.Time) error { return nil }

func TestWhatManyAskForIsEncodedOnce(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	k.fleet(100)
	for _, path := range []string{"/stats.json", "/history.json", "/metrics", "/world.json"} {
		places, began := map[*byte]bool{}, time.Now()
		for range 1000 {
			w := &pieces{header: http.Header{}}
			k.h.ServeHTTP(w, request(t.Context(), "GET", path, nil))
			require.Len(t, w.all, 1)
			places[&w.all[0][0]] = true
		}
		assert.LessOrEqual(t, len(places), int(14*time.Since(began).Seconds())+12, path)
	}
}

// Two who look at the same get the same bytes, in pieces that each have their time.
func TestStreamsShareTheirEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		require.NoError(t, published[position](r))
		dots, err := registry.RegisterClass[struct{ At position }](r)
		require.NoError(t, err)
		require.NoError(t, r.Update(func(w *registry.Window) error {
			_, err := dots.SpawnBatch(w, 4000, func(i int, s *struct{ At position }) { s.At = position{float32(i) / 7, -1e9} })
			return err
		}))
		e, err := logic.New(r, logic.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		require.NoError(t, e.Step())
		h := inspect.New(e, inspect.Config{Logger: slog.New(slog.DiscardHandler)})
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		streams := [2]pieces{{header: http.Header{}}, {header: http.Header{}}}
		for i := range streams {
			all.Go(func() {
				h.ServeHTTP(&streams[i], request(ctx, "GET", "/events?component=", nil))
			})
		}
		<-time.After(10 * time.Second)
		leave()
		all.Wait()
		require.NoError(t, h.Close())
		require.NoError(t, e.Stop())

		seen, places := map[string]int{}, map[*byte]bool{}
		for i, s := range streams {
			var text strings.Builder
			for _, p := range s.all {
				assert.LessOrEqual(t, len(p), 32<<10)
				_, _ = text.Write(p)
				if name, _, _ := strings.Cut(string(p), "\n"); i == 0 {
					places[&p[0]] = true
				} else if places[&p[0]] {
					seen[name]++
				}
			}
			events := strings.Split(strings.TrimSuffix(text.String(), "\n\n"), "\n\n")
			for _, e := range events {
				_, data, ok := strings.Cut(e, "\ndata: ")
				assert.True(t, ok && json.Valid([]byte(data)), e)
			}
			assert.Greater(t, len(events), 200)
		}
		assert.Greater(t, seen["event: stats"], 50)
		assert.Greater(t, seen["event: points"], 15)
		assert.Greater(t, seen["event: world"], 50)
	})
}

// bounded is a connection that tells what the kernel is to keep of it.
type bounded struct {
	net.Conn
	bytes chan int
}

func (b bounded) SetWriteBuffer(n int) error {
	b.bytes <- n
	return nil
}

type boundedListener struct {
	net.Listener
	bytes chan int
}

func (l boundedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return bounded{c, l.bytes}, err
}

func TestOfAStreamTheKernelKeepsLittle(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	h := inspect.New(k.e, inspect.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served, bytes := make(chan error, 1), make(chan int, 1)
	go func() { served <- h.Serve(ctx, boundedListener{l, bytes}) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/stats.json", "/events"} {
		assert.Empty(t, bytes, "of others it is left alone")
		resp, err := client.Get("http://" + l.Addr().String() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
	}
	assert.Equal(t, 64<<10, <-bytes)
	stop()
	require.NoError(t, <-served)
}
