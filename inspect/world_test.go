package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type position struct{ X, Y float32 }
type velocity struct{ X, Y float32 }
type cargo struct {
	Name  [8]byte
	Owner handles.Local
	Goods []string
}
type ship struct {
	At    position
	V     velocity
	Cargo cargo
}

// world is a registry with ships, its engine and the page, behind a server.
type world struct {
	t       testing.TB
	r       *registry.Registry
	e       *logic.Engine
	ships   *registry.Class[ship]
	prefabs *pool.Prefabs
	h       *inspect.Handler
	server  *httptest.Server
}

func newWorld(t testing.TB, rc registry.Config, c inspect.Config) *world {
	t.Helper()
	return newWorldAt(t, nil, rc, c)
}

// newWorldAt has the server listen there; nil for a port of this machine.
func newWorldAt(t testing.TB, l *pipes, rc registry.Config, c inspect.Config) *world {
	t.Helper()
	r, err := registry.New(rc)
	require.NoError(t, err)
	k := &world{t: t, r: r}
	for _, err := range []error{published[position](r), published[velocity](r)} {
		require.NoError(t, err)
	}
	k.ships, err = registry.RegisterClass[ship](r, registry.Named("ship"), registry.SlotsPerChunk(64))
	require.NoError(t, err)
	k.prefabs = pool.NewPrefabs(r)
	require.NoError(t, pool.Define(k.prefabs, "Gull", k.ships, ship{}))
	k.e, err = logic.New(r, logic.Config{Rate: 200, WindowBudget: time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	c.Pools = append(c.Pools, k.prefabs)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k.h = inspect.New(k.e, c)
	if l == nil {
		k.server = httptest.NewServer(k.h)
	} else {
		k.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: k.h}}
		k.server.Start()
		k.server.Client().Transport = &http.Transport{DialContext: l.dial}
	}
	t.Cleanup(func() {
		require.NoError(t, k.h.Close())
		k.server.Close()
		require.NoError(t, k.e.Stop())
		require.NoError(t, r.Verify())
	})
	return k
}

// pipes are connections without sockets: in a bubble who waits at a socket keeps the clock from moving on.
type pipes struct {
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{come: make(chan net.Conn), closed: make(chan struct{})} }

// end is one that came to a port of this machine, as a server sees it.
type end struct {
	net.Conn
	at net.Addr
}

func (e end) LocalAddr() net.Addr { return e.at }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.come <- end{far, p.Addr()}:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func published[C any](r *registry.Registry) error {
	_, err := registry.RegisterComponent[C](r, registry.InTier(archetype.Volatile))
	return err
}

// run has the engine run, from now on until the test ends.
func (k *world) run() {
	ended := make(chan error, 1)
	go func() { ended <- k.e.Run(context.Background()) }()
	k.t.Cleanup(func() {
		require.NoError(k.t, k.e.Stop())
		require.NoError(k.t, <-ended)
	})
	// Only what runs can be paused, and what was stopped before it ran never does.
	require.NoError(k.t, k.e.Spawn(context.Background(), func(*registry.Window) error { return nil }))
}

// step runs a frame with a window.
func (k *world) step(fn func(w *registry.Window)) {
	k.t.Helper()
	ticket, err := k.e.Enqueue(func(w *registry.Window) error {
		fn(w)
		return nil
	})
	require.NoError(k.t, err)
	require.NoError(k.t, k.e.Step())
	require.NoError(k.t, ticket.Err())
}

// fleet spawns ships at 1, 1; 2, 2; and so on.
func (k *world) fleet(n int) (hs []handles.Local) {
	k.t.Helper()
	k.step(func(w *registry.Window) {
		var err error
		hs, err = k.ships.SpawnBatch(w, n, func(i int, s *ship) { s.At = position{float32(i + 1), float32(i + 1)} })
		require.NoError(k.t, err)
	})
	return hs
}

// get asks for an address, and gives the status and the body.
func (k *world) get(path string) (int, string) {
	k.t.Helper()
	resp, err := k.server.Client().Get(k.server.URL + path)
	require.NoError(k.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(k.t, err)
	return resp.StatusCode, string(body)
}

// stats are the parts of /stats.json that tests look at.
type stats struct {
	State string
	Held  *struct {
		By       string
		ForNanos int64
		Stacks   string
	}
	Frame    uint64
	Registry struct {
		Live, Tombstoned, Allocated, Idle, Inactive int
		Archetypes                                  []struct {
			Class, Tier           string
			Number                int
			Allocated, Live, Idle int
			Fragmentation         float64
			Parts                 []struct {
				Name, Tier string
				Fields     []string
			}
			Places []string
		}
	}
	Spaces []struct {
		Space                          string
		Issued, Free, Pending, Retired int
		AgeFrames                      uint64
		HeldBy                         string
	}
	Pools []struct {
		Name                                   string
		Cap, InUse, Free, Peak, Built, Refused int
		AtCap, Fixed, Warm                     bool
		Grow                                   string
	}
	Systems []struct{ Phase, Name string }
}

func (k *world) json(path string, into any) {
	k.t.Helper()
	status, body := k.get(path)
	require.Equal(k.t, http.StatusOK, status, body)
	require.NoError(k.t, json.Unmarshal([]byte(body), into), body)
}

func (k *world) stats() (s stats) {
	k.t.Helper()
	k.json("/stats.json", &s)
	return s
}

// event is one of a stream.
type event struct{ name, data string }

// events opens a stream; the channel is closed when it ends.
func (k *world) events(ctx context.Context, query string) <-chan event {
	k.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.server.URL+"/events"+query, nil)
	require.NoError(k.t, err)
	resp, err := k.server.Client().Do(r)
	require.NoError(k.t, err)
	require.Equal(k.t, http.StatusOK, resp.StatusCode)
	require.Equal(k.t, "text/event-stream", resp.Header.Get("Content-Type"))
	all := make(chan event)
	go func() {
		defer close(all)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<22)
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data = value
				select {
				case all <- e:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return all
}
