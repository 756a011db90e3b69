package arena

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
	"go.uber.org/goleak"
)

// patient is how long a test waits for what has to happen.
const patient = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a server under test, and what it printed.
type running struct {
	*Server
	stop context.CancelFunc
	out  *output
	done chan struct{}

	totals Totals // valid once done is closed
	err    error
}

func start(t *testing.T, cfg Config, change ...func(*limits)) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{stop: stop, out: newOutput(), done: make(chan struct{})}
	cfg.Out = r.out
	var err error
	r.Server, err = New(cfg)
	require.NoError(t, err)
	r.limits.write, r.limits.farewell, r.limits.spawn = patient, patient, patient // a machine that stands still for a moment cuts nobody off
	for _, c := range change {
		c(&r.limits)
	}
	go func() {
		defer close(r.done)
		r.totals, r.err = r.Run(ctx)
	}()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end stops the server as Ctrl-C does, and expects totals that add up.
func (r *running) end(t *testing.T) Totals {
	t.Helper()
	r.stop()
	select {
	case <-r.done:
	case <-time.After(patient):
		t.Fatal("the server does not stop")
	}
	require.NoError(t, r.err)
	require.NoError(t, r.totals.Check())
	return r.totals
}

// output collects what a server prints, and passes the lines on to a test that waits.
type output struct {
	mu    sync.Mutex // guards text; leaf lock
	text  bytes.Buffer
	lines chan string
}

func newOutput() *output { return &output{lines: make(chan string, 10000)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines <- strings.TrimSpace(string(p)) // log.Logger writes whole lines
	return o.text.Write(p)
}

// await returns the next line that contains text.
func (o *output) await(t *testing.T, text string) string {
	t.Helper()
	limit := time.After(patient)
	for {
		select {
		case line := <-o.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-limit:
			t.Fatalf("no line with %q", text)
		}
	}
}

// client is a person with nc.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (r *running) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	c := &client{t, conn, bufio.NewReader(conn)}
	require.NoError(t, conn.SetDeadline(time.Now().Add(patient)))
	return c
}

// enter dials and reads the welcome.
func (r *running) enter(t *testing.T) *client {
	t.Helper()
	c := r.dial(t)
	require.Contains(t, c.read(), "ok airlock arena: join NAME")
	return c
}

func (c *client) read() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(line, "\n")
}

func (c *client) ask(line string) string {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
	return c.read()
}

// look returns the number of players and arrows, and the lines that follow.
func (c *client) look() (players, arrows int, lines []string) {
	c.t.Helper()
	var frame, follow int
	first := c.ask("look")
	_, err := fmt.Sscanf(first, "ok frame %d, %d players, %d arrows, %d lines follow", &frame, &players, &arrows, &follow)
	require.NoError(c.t, err, first)
	for range follow {
		lines = append(lines, c.read())
	}
	return players, arrows, lines
}

// lookUntil looks, a frame each time, until the world is as wanted.
func (c *client) lookUntil(want func(players, arrows int) bool) {
	c.t.Helper()
	for end := time.Now().Add(patient); time.Now().Before(end); {
		if players, arrows, _ := c.look(); want(players, arrows) {
			return
		}
	}
	c.t.Fatal("the world never became as wanted")
}

func (c *client) gone() {
	c.t.Helper()
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, io.EOF)
}

func TestAPersonPlaysARound(t *testing.T) {
	s := start(t, Config{})
	c := s.enter(t)
	assert.Contains(t, c.ask("help"), "ok the field")
	assert.Contains(t, c.ask("fire 1 0"), "error: you are not in the arena yet")
	assert.Contains(t, c.ask("move 1 0"), "error: you are not in the arena yet")
	players, arrows, lines := c.look()
	assert.Zero(t, players+arrows+len(lines))

	assert.Regexp(t, `^ok bob is N0:1\.1, at \d+\.\d \d+\.\d$`, c.ask("join bob"))
	assert.Equal(t, "error: you are in the arena already", c.ask("join rob"))
	players, _, lines = c.look()
	require.Equal(t, 1, players)
	require.Len(t, lines, 1)
	assert.Regexp(t, `^you    N0:1\.1 +bob +at +\d+\.\d +\d+\.\d  health 3  score 0  deaths 0$`, lines[0])

	other := s.enter(t)
	assert.Contains(t, other.ask("join ann"), "ok ann is N0:2.1")
	players, _, lines = c.look()
	require.Equal(t, 2, players)
	require.Len(t, lines, 2)
	assert.Regexp(t, `^player N0:2\.1 +ann .*  fire -?\d+\.\d -?\d+\.\d$`, lines[1])

	assert.Equal(t, "ok", c.ask("fire 3 4"))
	assert.Equal(t, "ok", c.ask("move 1 0"))
	assert.Equal(t, "bye", c.ask("quit"))
	c.gone()
	other.lookUntil(func(players, arrows int) bool { return players == 1 && arrows == 0 })

	sum := s.end(t)
	assert.Equal(t, "bye, the server is stopping", other.read())
	other.gone()
	assert.Equal(t, []int{2, 1, 3, 3, 0}, []int{sum.Joined, sum.Fired, sum.Spawned, sum.Destroyed, sum.Live})
}

func TestABadLineIsAnsweredAndTheConversationGoesOn(t *testing.T) {
	c := start(t, Config{}).enter(t)
	for _, line := range []string{"", "jump", "join", "join b\x1b[2J", "fire 1", "\x00\xff", strings.Repeat("x", maxLine+1), strings.Repeat("y ", 100_000)} {
		answer := c.ask(line)
		assert.True(t, strings.HasPrefix(answer, "error: "), answer)
		assertSentence(t, answer)
	}
	assert.Contains(t, c.ask("join bob\r"), "ok bob is")
}

func TestALastLineWithoutLineEndCounts(t *testing.T) {
	c := start(t, Config{}).enter(t)
	_, err := io.WriteString(c.conn, "join bob")
	require.NoError(t, err)
	require.NoError(t, c.conn.(*net.TCPConn).CloseWrite())
	assert.Contains(t, c.read(), "ok bob is")
	c.gone()
}

func TestADisconnectDestroysThePlayer(t *testing.T) {
	s := start(t, Config{})
	bob, ann := s.enter(t), s.enter(t)
	assert.Contains(t, bob.ask("join bob"), "ok")
	players, _, _ := ann.look()
	require.Equal(t, 1, players)
	require.NoError(t, bob.conn.Close())
	ann.lookUntil(func(players, _ int) bool { return players == 0 })
	sum := s.end(t)
	assert.Equal(t, 1, sum.Destroyed)
	assert.Zero(t, sum.Live)
}

func TestBotsPlayAndTotalsAddUp(t *testing.T) {
	s := start(t, Config{Bots: 16, Seed: 7})
	assert.Contains(t, s.out.await(t, "nc 127.0.0.1"), s.Addr().String()[len("127.0.0.1:"):])
	c := s.enter(t)
	assert.Contains(t, c.ask("join bob"), "ok bob is")
	line := s.out.await(t, "frame time")
	for n := 0; n < 20 && strings.Contains(line, " - |"); n++ { // of a second in which a busy machine ran nobody
		line = s.out.await(t, "frame time")
	}
	assert.Regexp(t, `^frame \d+ \| frame time \S+/\S+ \| live \d+ \| spawns \d+/s destroys \d+/s \| handshake wait \S+/\S+ \| stall \S+/\S+ \| pending local \d+ net \d+ \| pools Arrow \d+/64 Grunt 0/24 HitSpark \d+/\d+$`, line)
	c.lookUntil(func(players, arrows int) bool { return players == 17 && arrows > 0 })
	sum := s.end(t)
	assert.GreaterOrEqual(t, sum.Joined, 17)
	assert.Positive(t, sum.Fired)
	assert.Positive(t, sum.Frames)
	assert.Contains(t, s.out.text.String(), "totals: "+sum.String())
}

func TestTotalsThatDoNotAddUpAreAnError(t *testing.T) {
	assert.NoError(t, Totals{Spawned: 3, Live: 1, Destroyed: 2, Joined: 1, Fired: 2}.Check())
	assert.ErrorContains(t, Totals{Spawned: 3, Live: 1, Destroyed: 1, Joined: 1, Fired: 2}.Check(), "spawned 3 (1 players, 2 arrows) = live 1 + destroyed 1")
	assert.Error(t, Totals{Spawned: 3, Live: 1, Destroyed: 2, Joined: 1, Fired: 1}.Check())
	assert.Error(t, Totals{Hits: 1, Sparks: 2}.Check())
}

func TestAStopTellsEveryClient(t *testing.T) {
	s := start(t, Config{Rate: 20})
	var clients []*client
	for range 8 {
		clients = append(clients, s.enter(t))
	}
	for i, c := range clients[:4] {
		assert.Contains(t, c.ask(fmt.Sprintf("join p%d", i)), "ok")
	}
	s.end(t)
	for _, c := range clients {
		assert.Equal(t, "bye, the server is stopping", c.read())
		c.gone()
	}
}

// hasty is a connection whose deadlines for writing come soon, once it is told so: until then whoever reads may be as slow as
// a busy machine makes him.
type hasty struct {
	net.Conn
	now atomic.Bool
}

func (h *hasty) SetWriteDeadline(at time.Time) error {
	if h.now.Load() && !at.IsZero() {
		at = time.Now().Add(100 * time.Millisecond)
	}
	return h.Conn.SetWriteDeadline(at)
}

// The slow reader is at one end of a pipe without a buffer, so that the first answer it does
// not take blocks the server's write. A socket takes megabytes first, and one that is kept
// from that by a small buffer drops the acknowledgements for what it sends as well: the flood
// that was to block the server then stalls by itself, for minutes now and then.
func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	s := start(t, Config{})
	quick := s.enter(t)
	near, end := net.Pipe()
	require.NoError(t, near.SetDeadline(time.Now().Add(patient)))
	far := &hasty{Conn: end}
	served := make(chan struct{})
	go func() {
		defer close(served)
		(&session{srv: s.Server, conn: far}).serve(t.Context())
	}()
	slow := &client{t, near, bufio.NewReader(near)}
	assert.Contains(t, slow.read(), "ok airlock arena")
	assert.Contains(t, slow.ask("join slow"), "ok")
	far.now.Store(true)
	_, err := io.WriteString(near, "help\n") // and never reads again
	require.NoError(t, err)
	quick.look() // is answered meanwhile
	select {
	case <-served: // given up, though its connection is still open
	case <-time.After(patient):
		t.Fatal("the server waits for a client that does not read")
	}
	quick.lookUntil(func(players, _ int) bool { return players == 0 })
}

func TestAnIdleClientIsDisconnected(t *testing.T) {
	c := start(t, Config{}, func(l *limits) { l.idle = 50 * time.Millisecond }).enter(t)
	assert.Equal(t, "bye, no whole line came for 50ms", c.read())
	c.gone()
}

func TestMoreClientsThanFitAreTurnedAway(t *testing.T) {
	s := start(t, Config{}, func(l *limits) { l.clients = 1 })
	first := s.enter(t)
	second := s.dial(t)
	assert.Equal(t, "error: no more clients fit in, try again later", second.read())
	second.gone()
	assert.Equal(t, "bye", first.ask("quit"))
	first.gone()
}

func TestAClientIsToldWhenLogicDoesNotAnswer(t *testing.T) {
	srv, err := New(Config{}) // and never runs
	require.NoError(t, err)
	defer srv.Close()
	srv.limits.spawn = 20 * time.Millisecond
	s := &session{srv: srv}
	for _, line := range []string{"join bob", "look"} {
		answer, more := s.obey(t.Context(), []byte(line))
		assert.Equal(t, "error: the arena is too busy, try again", answer)
		assert.True(t, more)
	}
}

func TestAPortInUseIsOneSentence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = New(Config{Port: l.Addr().(*net.TCPAddr).Port})
	require.ErrorIs(t, err, ErrPortInUse)
	assert.Equal(t, "another program listens on "+l.Addr().String(), err.Error())
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	for _, c := range []Config{
		{Port: -1}, {Port: 65536}, {Bots: -1}, {Bots: MaxBots + 1}, {Rate: -1}, {Rate: MaxRate + 1},
	} {
		_, err := New(c)
		require.ErrorIs(t, err, ErrConfig, "%+v", c)
		assertSentence(t, err.Error())
	}
}

func TestAServerRunsOnce(t *testing.T) {
	s := start(t, Config{})
	s.end(t)
	_, err := s.Run(t.Context())
	require.ErrorContains(t, err, "only once")
}
