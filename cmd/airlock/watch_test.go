package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	firstAnswer  = `{"frame":7,"pools":[{"prefab":"Arrow","cap":64,"in_use":12,"free":52,"peak":40,"grow":"Double","warm":true,"refused":0,"new":[1]}]}`
	secondAnswer = `{"Frame":9,"Pools":[{"Name":"Arrow","Cap":64,"InUse":64,"Free":0,"Peak":64,"Grow":"Fixed","Warm":false,"Refused":3}]}`

	firstTable = `Prefab  Cap  In-use  Free  Peak  Grow  Warm
Arrow    64      12    52    40  ×2    ✓
`
	secondTable = `Prefab  Cap  In-use  Free  Peak  Grow  Warm
Arrow    64      64     0    64  fix         at its cap, 3 refused
`
)

// server answers with one text after the other; the last one stays. After that many requests it calls then.
func server(t *testing.T, then func(), after int32, answers ...string) *httptest.Server {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := n.Add(1)
		if r.URL.Path != "/stats.json" {
			http.NotFound(w, r)
			return
		}
		if k == after && then != nil {
			then()
		}
		fmt.Fprint(w, answers[min(int(k), len(answers))-1])
	}))
	t.Cleanup(s.Close)
	return s
}

func TestWatchPrintsATableForEachChangeUntilItIsInterrupted(t *testing.T) {
	for flags, want := range map[string]string{
		"--every 1ms":        firstTable + "\n" + secondTable,
		"--every 1ms --json": `{"pools":[{"prefab":"Arrow","cap":64,"in_use":12,"free":52,"peak":40,"grow":"Double","warm":true,"refused":0}]}` + "\n" + `{"pools":[{"prefab":"Arrow","cap":64,"in_use":64,"free":0,"peak":64,"grow":"Fixed","warm":false,"refused":3}]}` + "\n",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := server(t, interrupt, 8, firstAnswer, firstAnswer, secondAnswer)
		code, stdout, stderr := command(ctx, append([]string{"pools", "--watch", strings.TrimPrefix(s.URL, "http://")}, strings.Fields(flags)...)...)
		assert.Zero(t, code, stderr)
		assert.Empty(t, stderr)
		assert.Equal(t, want, stdout)
	}
}

func TestWatchDrawsOverTheTableOnATerminal(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	s := server(t, interrupt, 5, firstAnswer, firstAnswer, secondAnswer)
	var out bytes.Buffer
	w := &watcher{url: s.URL + watchPath, every: time.Millisecond, out: &out, terminal: true}
	require.NoError(t, w.run(ctx))
	assert.Equal(t, firstTable+"\x1b[2A\x1b[J"+secondTable, out.String())
}

func TestWatchSaysWhatIsWrongWithAServer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	other := gone.URL
	t.Cleanup(gone.Close)
	for answer, want := range map[string]string{
		`{"frame":1}`:                       "there is no field pools",
		`{"pools":null}`:                    "there is no field pools",
		`<html>`:                            "it is not the JSON",
		`{"pools":[{"cap":"many"}]}`:        "cap of pool 1",
		`{"pools":[{"grow":"Wildly"}]}`:     `a pool grows by "Wildly"`,
		`{"pools":[{"grow":"Additive(x"}]}`: "a pool grows by",
	} {
		code, stdout, stderr := command(t.Context(), "pools", "--watch", server(t, nil, 0, answer).URL+"/")
		assert.Equal(t, exitFailed, code, answer)
		assert.Empty(t, stdout, answer)
		assert.Regexp(t, `^airlock: http://127[^\n]+/stats\.json has no pools: [^\n]+\n$`, stderr)
		assert.Contains(t, stderr, want)
	}
	code, _, stderr := command(t.Context(), "pools", "--watch", other)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "airlock: "+other+"/stats.json answers 404 Not Found\n", stderr)
	gone.Close()
	code, _, stderr = command(t.Context(), "pools", "--watch", other)
	assert.Equal(t, exitFailed, code)
	assert.Regexp(t, `^airlock: http://127[^\n]+ cannot be read: [^\n]+connection refused\n$`, stderr)
}

// What a server says instead of an answer may be meant for the terminal.
func TestWatchLeavesTheTerminalAlone(t *testing.T) {
	const escape = "\x1b]0;mine\a\u009b2J\u202e\xff"
	for answer, want := range map[string]string{
		"HTTP/1.1 404 No" + escape + "\r\n\r\n":                  "answers 404 No",
		"HTTP/1.1 200 OK\r\nNo" + escape + "\r\n\r\n":            "cannot be read: ",
		"HTTP/1.1 302 Found\r\nLocation: " + escape + "\r\n\r\n": "cannot be read: ",
		"HTTP" + escape + "\r\n\r\n":                             "cannot be read: ",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		code, _, stderr := command(t.Context(), "pools", "--watch", l.Addr().String())
		require.NoError(t, l.Close())
		assert.Equal(t, exitFailed, code)
		assert.Contains(t, stderr, want)
		line := strings.TrimSuffix(stderr, "\n")
		assert.True(t, utf8.ValidString(line), "%q", line)
		for _, r := range line {
			assert.True(t, unicode.IsPrint(r), "%q in %q", r, line)
		}
	}
}

func TestWatchSaysWhenTheServerGoesAway(t *testing.T) {
	var s *httptest.Server
	s = server(t, func() { go s.Close() }, 3, firstAnswer)
	code, stdout, stderr := command(t.Context(), "pools", "--watch", s.URL, "--every", "1ms")
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, firstTable, stdout)
	assert.Regexp(t, `^airlock: the server is gone: [^\n]+\n$`, stderr)
}

func TestAWatchThatNobodyReadsEnds(t *testing.T) {
	s := server(t, nil, 0, firstAnswer, secondAnswer, firstAnswer, secondAnswer)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"pools", "--watch", s.URL, "--every", "1ms"}, &pipe{left: 1}, &stderr)
	assert.Zero(t, code)
	assert.Empty(t, stderr.String())
}

func TestWhatIsWrittenForProgramsIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := poolRow{
			Prefab: rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom(nil, unicode.Cc))).Draw(t, "prefab"), Cap: rapid.Int().Draw(t, "cap"), InUse: rapid.Int().Draw(t, "in use"),
			Free: rapid.Int().Draw(t, "free"), Peak: rapid.Int().Draw(t, "peak"), Refused: rapid.Int().Draw(t, "refused"),
			Grow: rapid.SampledFrom([]string{"Fixed", "Double", "Additive(3)"}).Draw(t, "grow"), Warm: rapid.Bool().Draw(t, "warm"),
		}
		var out bytes.Buffer
		w := watcher{json: true, out: &out}
		require.NoError(t, w.show([]poolRow{row}))
		require.False(t, bytes.ContainsFunc(bytes.TrimRight(out.Bytes(), "\n"), unicode.IsControl))
		rows, err := readRows(out.Bytes())
		require.NoError(t, err)
		require.Equal(t, []poolRow{row}, rows)
		for name, s := range tableOf(rows) {
			require.Equal(t, row, rowOf(name, s))
		}
	})
}

func FuzzStats(f *testing.F) {
	for _, text := range []string{firstAnswer, secondAnswer, `{"pools":[{}]}`, `{"pools":[null]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := readRows(text)
		if err != nil {
			return
		}
		w := watcher{out: new(bytes.Buffer)}
		if err := w.show(rows); err != nil {
			t.Fatal(err)
		}
	})
}
