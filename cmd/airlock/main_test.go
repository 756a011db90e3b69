package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asCommand in the environment makes the program of the tests the command: for what only a process has.
const asCommand = "AIRLOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestAWrongCommandLineIsOneSentenceAndExitStatus2(t *testing.T) {
	for args, want := range map[string]string{
		"":                      "arena",
		"arean":                 "arean",
		"arena --bogus":         "--bogus",
		"arena extra":           "extra",
		"arena --bots many":     "many",
		"arena --bots":          "--bots",
		"arena --bots=-1":       "bots must be between 0 and 1000, not -1",
		"arena --bots -1":       "--bots",
		"arena --bots 1001":     "bots must be between 0 and 1000, not 1001",
		"arena --rate 0":        "rate must be between 1 and 1000",
		"arena --rate=-60":      "rate must be between 1 and 1000",
		"arena --rate 1001":     "rate must be between 1 and 1000",
		"arena --rate 59.94":    "59.94",
		"arena --port 65536":    "port must be between 0 and 65535",
		"arena --port=-1":       "port must be between 0 and 65535",
		"arena --for soon":      "soon",
		"arena --for=-1s":       "--for must not be negative",
		"arena --seed=-1":       "--seed",
		"arena --inspect=":      "--inspect needs an address, or off",
		"arena --inspect 8080":  "must be like 127.0.0.1:8080",
		"arena --inspect :8080": "not loopback",
		"arena --inspect 0.0.0.0:1 --inspect-remote": "needs a token",
		"version now":              "now",
		"version --port 1":         "--port",
		"arena --rate 60 --rate x": "x",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr, args)
	}
}

func TestHelpAndVersionAreNoFailure(t *testing.T) {
	for args, want := range map[string]string{
		"--help":       "arena",
		"arena --help": "--bots",
		"version":      "airlock ",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Zero(t, code, args)
		assert.Contains(t, stdout, want, args)
		assert.Empty(t, stderr, args)
	}
}

func TestForEndsByItselfWithTotals(t *testing.T) {
	for d := 1500 * time.Millisecond; ; d *= 3 {
		code, stdout, stderr := command(t.Context(), "arena", "--for", d.String(), "--port", "0", "--bots", "8")
		assert.Zero(t, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "nc 127.0.0.1 ")
		var frames, spawned, players, arrows, live, destroyed int
		var elapsed string
		_, sums, _ := strings.Cut(stdout, "totals: ")
		_, err := fmt.Sscanf(sums, "%d frames in %s spawned %d (%d players, %d arrows) = live %d + destroyed %d;", &frames, &elapsed, &spawned, &players, &arrows, &live, &destroyed)
		require.NoError(t, err, stdout)
		assert.Positive(t, frames)
		assert.Equal(t, spawned, players+arrows)
		assert.Equal(t, spawned, live+destroyed)
		if d < 30*time.Second && (players < 8 || !strings.Contains(stdout, "handshake wait")) {
			continue // a busy machine needs longer until all have come, and a line says how it goes
		}
		assert.GreaterOrEqual(t, players, 8)
		assert.Contains(t, stdout, "handshake wait")
		break
	}
}

func TestTheArenaSaysWhereItsPageIs(t *testing.T) {
	code, stdout, _ := command(t.Context(), "arena", "--for", "100ms", "--port", "0", "--bots", "0")
	assert.Zero(t, code)
	assert.Regexp(t, `(?m)^inspect: http://127\.0\.0\.1:\d+/ `, stdout)
	code, stdout, _ = command(t.Context(), "arena", "--for", "100ms", "--port", "0", "--bots", "0", "--inspect", "off")
	assert.Zero(t, code)
	assert.NotContains(t, stdout, "inspect:")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, stdout, stderr := command(t.Context(), "arena", "--port", "0", "--inspect", l.Addr().String())
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "airlock: another program listens on "+l.Addr().String()+"; stop it, or choose another address with --inspect (off turns the page off)\n", stderr)
}

func TestAnInterruptEndsTheArenaWithStatus0(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int)
	var stderr bytes.Buffer
	go func() {
		defer in.Close()
		code <- run(ctx, []string{"arena", "--port", "0", "--bots", "2"}, in, &stderr)
	}()
	seen := make([]byte, 0, 4096)
	for buf := make([]byte, 256); !bytes.Contains(seen, []byte("handshake wait")); {
		n, err := out.Read(buf)
		require.NoError(t, err)
		seen = append(seen, buf[:n]...)
	}
	interrupt()
	go io.Copy(io.Discard, out)
	select {
	case got := <-code:
		assert.Zero(t, got, stderr.String())
	case <-time.After(20 * time.Second):
		t.Fatal("the arena does not end")
	}
}

func TestAPortInUseIsOneSentenceAndExitStatus1(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	code, stdout, stderr := command(t.Context(), "arena", "--port", port)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "airlock: another program listens on 127.0.0.1:"+port+"; stop it, or choose a port with --port (0 picks a free one)\n", stderr)
}
