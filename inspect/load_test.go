package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/stress"
)

// What looks on in these tests, which take minutes: AIRLOCK_PAGE_LOAD says how long. The clients are a process of their own, so that
// of what they cost the program that is looked at pays its part only.
const (
	loadFor     = "AIRLOCK_PAGE_LOAD"
	clientsOf   = "AIRLOCK_PAGE_CLIENTS" // set in the process of the clients: the address
	elsewhere   = "AIRLOCK_PAGE_OTHER"   // set in the process of another page
	slowClients = 32
	askers      = 16
	asksASecond = 1000
	mostMoved   = 1.05 // of the p99 of frame times
)

func loadTime(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv(loadFor) == "" {
		t.Skip("measures for minutes; " + loadFor + "=4m runs it")
	}
	d, err := time.ParseDuration(os.Getenv(loadFor))
	require.NoError(t, err)
	return d
}

// looked is what the clients have done.
type looked struct {
	Seconds, Asked, SlowKiB, Again float64 // Again: streams that ended, and were opened again
	Refused                        int
}

// TestPageLoadClients is the process of the clients. It ends with its input, and prints what it did.
func TestPageLoadClients(t *testing.T) {
	address := os.Getenv(clientsOf)
	if address == "" {
		t.Skip("is run by the other tests of the load")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asked, refused, bytes, again atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range askers {
		all.Go(func() {
			for due := began; ctx.Err() == nil; due = due.Add(askers * time.Second / asksASecond) {
				<-time.After(time.Until(due)) // who is late catches up
				if status(ctx, "http://"+address+"/stats.json") != http.StatusOK && ctx.Err() == nil {
					refused.Add(1)
				}
				asked.Add(1)
			}
		})
	}
	for range slowClients {
		all.Go(func() {
			for ctx.Err() == nil {
				bytes.Add(dawdle(ctx, address))
				again.Add(1)
			}
			again.Add(-1) // this one was to end
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	line, err := json.Marshal(looked{
		time.Since(began).Seconds(), float64(asked.Load()), float64(bytes.Load() / 1024), float64(again.Load()), int(refused.Load()),
	})
	require.NoError(t, err)
	_, _ = os.Stdout.Write(append(line, '\n'))
	http.DefaultClient.CloseIdleConnections()
}

// TestPageLoadElsewhere is a process with another page, whose clients use the machine, but not the program that is measured.
// It prints the address, and ends with its input.
func TestPageLoadElsewhere(t *testing.T) {
	if os.Getenv(elsewhere) == "" {
		t.Skip("is run by the other tests of the load")
	}
	k := newWorld(t, registry.Config{}, inspect.Config{})
	k.fleet(100_000)
	k.run()
	address, leave := servePage(t, k.e)
	_, _ = os.Stdout.WriteString(address + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	leave()
}

// another starts that process.
func another(t *testing.T) (address string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPageLoadElsewhere$")
	cmd.Env = append(os.Environ(), elsewhere+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		assert.NoError(t, cmd.Wait())
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return lines.Text()
}

func status(ctx context.Context, url string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// dawdle reads a stream with a chunk map, at 64 KiB a second, until it ends.
func dawdle(ctx context.Context, address string) (bytes int64) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		<-time.After(100 * time.Millisecond)
		return 0
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /events?archetype=0&component= HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
	tick := time.NewTicker(125 * time.Millisecond)
	defer tick.Stop()
	for buf := make([]byte, 8<<10); ; <-tick.C {
		n, err := io.ReadFull(conn, buf)
		if bytes += int64(n); err != nil {
			return bytes
		}
	}
}

// servePage serves the page of an engine; leave ends that.
func servePage(t *testing.T, e *logic.Engine) (address string, leave func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	h := inspect.New(e, inspect.Config{Logger: slog.New(slog.DiscardHandler)})
	go func() { served <- h.Serve(ctx, l) }()
	return l.Addr().String(), func() {
		cancel()
		assert.NoError(t, <-served)
	}
}

// look has clients look on; leave has them end, and says what they did.
func look(t *testing.T, address string) (leave func() looked) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPageLoadClients$")
	cmd.Env = append(os.Environ(), clientsOf+"="+address)
	in, err := cmd.StdinPipe()
	if !assert.NoError(t, err) {
		return func() looked { return looked{} }
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); !assert.NoError(t, err) {
		return func() looked { return looked{} }
	}
	return func() (l looked) {
		_ = in.Close()
		assert.NoError(t, cmd.Wait())
		line, _, _ := strings.Cut(out.String(), "\n")
		assert.NoError(t, json.Unmarshal([]byte(line), &l), out.String())
		return l
	}
}

// watched are the times of the frames of a load, stretch by stretch. Of three that follow each other the first has no clients, the
// second has them look at another program's page, and the third at the page of the engine that is measured.
type watched struct {
	other   string       // address of the other page
	stretch atomic.Int64 // the present one, below zero while clients come or go
	times   [][]time.Duration
	clients []looked
}

const (
	stretchOf = 5 * time.Second
	settling  = time.Second
	kinds     = 3
)

// beside measures each frame from within the next one, and has clients come and go.
func (m *watched) beside(t *testing.T, e *logic.Engine) (leave func()) {
	m.stretch.Store(-1)
	var last logic.Histogram
	_, err := e.AddSystem(logic.PrePhysics, "times", func(*logic.Frame) { // Logic writes m.times until the engine has stopped
		now := e.Stats().FrameTime
		if i := m.stretch.Load(); i >= 0 && now.Count == last.Count+1 {
			for int64(len(m.times)) <= i {
				m.times = append(m.times, make([]time.Duration, 0, 1024))
			}
			m.times[i] = append(m.times[i], now.Sum-last.Sum)
		}
		last = now
	})
	require.NoError(t, err)
	address, unserve := servePage(t, e)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer unserve()
		for i := int64(0); ctx.Err() == nil; i++ {
			gone := func() {}
			if i%kinds > 0 {
				leave := look(t, []string{m.other, address}[i%kinds-1])
				gone = func() { m.clients = append(m.clients, leave()) }
			}
			for _, step := range []struct {
				stretch int64
				lasts   time.Duration
			}{{-1, settling}, {i, stretchOf - settling}} {
				m.stretch.Store(step.stretch)
				select {
				case <-time.After(step.lasts):
				case <-ctx.Done():
				}
			}
			m.stretch.Store(-1)
			gone()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func p99(times []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(times))
	return s[(len(s)*99+99)/100-1]
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func TestPageLoadMovesNoFrame(t *testing.T) {
	length := loadTime(t)
	paced, ok := stress.Find("paced")
	require.True(t, ok)
	m := watched{other: another(t)}
	report, err := paced.Run(t.Context(), stress.Options{
		For: length, Seed: 1, Beside: func(e *logic.Engine) func() { return m.beside(t, e) },
	})
	require.NoError(t, err)
	assert.Zero(t, report.Violated, report)

	whole := len(m.times)
	if len(m.times[whole-1]) < len(m.times[0])/2 { // the time was over amid it
		whole--
	}
	whole -= whole % kinds
	require.Positive(t, whole, "too short")
	var moved [kinds][]float64 // to the stretch without clients; that to the one before
	var all [kinds][]time.Duration
	for i := 0; i < whole; i++ {
		kind := i % kinds
		all[kind] = append(all[kind], m.times[i]...)
		if to := i - kind; kind > 0 || i >= kinds {
			if kind == 0 {
				to -= kinds
			}
			moved[kind] = append(moved[kind], float64(p99(m.times[i]))/float64(p99(m.times[to])))
		}
		if kind > 0 {
			l := m.clients[i/kinds*(kinds-1)+kind-1]
			t.Logf("%.0f requests a second, %d refused, %.0f KiB a second to slow clients, %.0f of %d streams opened again",
				l.Asked/l.Seconds, l.Refused, l.SlowKiB/l.Seconds, l.Again, slowClients)
			assert.Zero(t, l.Refused)
			assert.Greater(t, l.Asked/l.Seconds, 0.95*asksASecond)
		}
	}
	for kind, name := range []string{"no clients", "clients elsewhere", "clients here"} {
		t.Logf("%s: p99 of %d frames %v, p50 %v", name, len(all[kind]), p99(all[kind]), slices.Sorted(slices.Values(all[kind]))[len(all[kind])/2])
		if len(moved[kind]) > 0 {
			t.Logf("%s: p99 to a stretch without: median of %d %.3f, from %.3f to %.3f", name, len(moved[kind]), median(moved[kind]), slices.Min(moved[kind]), slices.Max(moved[kind]))
		}
	}
	var page []float64
	for i := kinds - 1; i < whole; i += kinds {
		page = append(page, float64(p99(m.times[i]))/float64(p99(m.times[i-1])))
	}
	t.Logf("clients here, to clients elsewhere: median %.3f, from %.3f to %.3f", median(page), slices.Min(page), slices.Max(page))
	assert.LessOrEqual(t, median(moved[kinds-1]), mostMoved)
}

// The paced load itself hands out handles as its producers come. This is as much, in an order that does not depend on them.
func TestPageLoadChangesNoHash(t *testing.T) {
	length := min(loadTime(t), 20*time.Second)
	const rate, live, turns = 60, 100_000, 2_000
	frames := int(length.Seconds() * rate)
	hashes := func(clients bool) (hs []uint64) {
		r, err := registry.New(registry.Config{MaxEntities: 2 * live, Deterministic: true})
		require.NoError(t, err)
		_, err = registry.RegisterComponent[position](r, registry.InTier(archetype.Temporal))
		require.NoError(t, err)
		ships, err := registry.RegisterClass[struct{ At position }](r, registry.Named("ship"))
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{Rate: rate, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		var ring []handles.Local
		_, err = e.AddSystem(logic.Physics, "turn", func(f *logic.Frame) {
			number := f.FrameNumber()
			f.Defer(func(w *registry.Window) error {
				n := turns
				if len(ring) < live {
					n = live
				} else {
					w.DestroyBatch(ring[:turns])
				}
				more, err := ships.SpawnBatch(w, n, func(i int, s *struct{ At position }) { s.At = position{float32(i), float32(number)} })
				ring = append(ring[len(ring)-max(len(ring)-turns, 0):], more...)
				return err
			})
		})
		require.NoError(t, err)
		over := make(chan struct{})
		_, err = e.AddSystem(logic.Late, "hash", func(f *logic.Frame) {
			if len(hs) == frames {
				return
			}
			h, err := snapshot.Hash(f)
			assert.NoError(t, err)
			if hs = append(hs, h); len(hs) == frames {
				close(over)
			}
		})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.Background()) }()
		if clients {
			address, leave := servePage(t, e)
			gone := look(t, address)
			<-over
			l := gone()
			t.Logf("%.0f requests a second, %d refused, %.0f KiB a second to slow clients", l.Asked/l.Seconds, l.Refused, l.SlowKiB/l.Seconds)
			assert.Zero(t, l.Refused)
			leave()
		} else {
			<-over
		}
		require.NoError(t, e.Stop())
		require.NoError(t, <-ended)
		require.NoError(t, r.Verify())
		assert.Zero(t, r.Stats().PublishSkips)
		return hs
	}
	without, with := hashes(false), hashes(true)
	distinct := map[uint64]bool{}
	for i := range without {
		distinct[without[i]] = true
		require.Equal(t, without[i], with[i], "frame %d", i+1)
	}
	assert.Greater(t, len(distinct), frames*9/10)
	t.Logf("%d frames, each with the same hash", frames)
}
