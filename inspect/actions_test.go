package inspect_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

const secret = "open sesame"

// act asks for an action with the token.
func (k *world) act(name, body string) (int, string) {
	k.t.Helper()
	return k.post("/actions/"+name, body, "Airlock-Token", secret, "Content-Type", "application/json")
}

func (k *world) post(path, body string, header ...string) (int, string) {
	k.t.Helper()
	r, err := http.NewRequest(http.MethodPost, k.server.URL+path, strings.NewReader(body))
	require.NoError(k.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := k.server.Client().Do(r)
	require.NoError(k.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(k.t, err)
	return resp.StatusCode, string(text)
}

func TestActionsAreThereWithATokenOnly(t *testing.T) { synctest.Test(t, actionsAreThereWithATokenOnly) }

func actionsAreThereWithATokenOnly(t *testing.T) {
	none := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{})
	status, _ := none.act("pause", "{}")
	assert.Equal(t, http.StatusNotFound, status)
	status, _ = none.post("/actions/pause", "{}", "Airlock-Token", "", "Content-Type", "application/json")
	assert.Equal(t, http.StatusNotFound, status)

	k := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{Token: secret})
	k.run()
	const kind, json = "Content-Type", "application/json"
	for _, test := range []struct {
		name, path, body string
		header           []string
		want             int
	}{
		{"no token", "/actions/pause", "{}", []string{kind, json}, 401},
		{"an empty one", "/actions/pause", "{}", []string{kind, json, "Airlock-Token", ""}, 401},
		{"another one", "/actions/pause", "{}", []string{kind, json, "Airlock-Token", secret + "!"}, 401},
		{"in the address", "/actions/pause?token=" + "open%20sesame", "{}", []string{kind, json}, 401},
		{"no such action, no token", "/actions/explode", "{}", []string{kind, json}, 401},
		{"no such action", "/actions/explode", "{}", []string{kind, json, "Airlock-Token", secret}, 404},
		{"a form's type", "/actions/pause", "{}", []string{kind, "text/plain", "Airlock-Token", secret}, 415},
		{"no type", "/actions/pause", "{}", []string{"Airlock-Token", secret}, 415},
		{"no body", "/actions/pause", "", []string{kind, json, "Airlock-Token", secret}, 400},
		{"an unknown field", "/actions/pause", `{"Now":true}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"two objects", "/actions/pause", `{}{}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"a brace too many", "/actions/pause", `{}}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"a large body", "/actions/pause", strings.Repeat(" ", 5000) + "{}", []string{kind, json, "Airlock-Token", secret}, 413},
		{"another origin", "/actions/pause", "{}", []string{kind, json, "Airlock-Token", secret, "Origin", "http://evil.example"}, 403},
		{"another site", "/actions/pause", "{}", []string{kind, json, "Airlock-Token", secret, "Sec-Fetch-Site", "cross-site"}, 403},
		{"no handle", "/actions/destroy", `{"Handle":"x"}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"nobody's handle", "/actions/destroy", `{"Handle":"L9.9"}`, []string{kind, json, "Airlock-Token", secret}, 409},
		{"no such policy", "/actions/declare", `{"Prefab":"Gull","Grow":"Triple"}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"a policy that does not grow", "/actions/declare", `{"Prefab":"Gull","Grow":"Additive(0)"}`, []string{kind, json, "Airlock-Token", secret}, 400},
		{"a negative capacity", "/actions/declare", `{"Prefab":"Gull","Capacity":-1,"Grow":"Fixed"}`, []string{kind, json, "Airlock-Token", secret}, 409},
	} {
		status, body := k.post(test.path, test.body, test.header...)
		assert.Equal(t, test.want, status, "%s: %s", test.name, body)
	}
	assert.False(t, k.e.Doing().Paused)
	r, err := http.NewRequest(http.MethodPost, k.server.URL+"/actions/pause", io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000)), strings.NewReader("{}")))
	require.NoError(t, err)
	r.Header.Set("Airlock-Token", secret)
	r.Header.Set(kind, json)
	resp, err := k.server.Client().Do(r) // of unknown length
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	status, _ = k.get("/actions/pause")
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	assert.False(t, k.e.Doing().Paused)
}

// lines is a log that goroutines write.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func TestActionsDoWhatTheySayAndAreLogged(t *testing.T) {
	synctest.Test(t, actionsDoWhatTheySayAndAreLogged)
}

func actionsDoWhatTheySayAndAreLogged(t *testing.T) {
	log := &lines{}
	k := newWorldAt(t, newPipes(), registry.Config{}, inspect.Config{Token: secret, Logger: slog.New(slog.NewTextHandler(log, nil))})
	status, body := k.act("pause", "{}")
	assert.Equal(t, http.StatusConflict, status, body) // nobody runs it
	hs := k.fleet(1000)
	k.step(func(w *registry.Window) {
		for i, h := range hs {
			if i%10 != 0 {
				require.NoError(t, w.Destroy(h))
			}
		}
	})
	k.run()
	ok := func(name, body string) string {
		t.Helper()
		status, text := k.act(name, body)
		require.Equal(t, http.StatusOK, status, text)
		return text
	}

	ok("pause", "{}")
	require.Eventually(t, func() bool { return k.stats().State == "paused" }, 5*time.Second, time.Millisecond)
	synctest.Wait() // the frame in progress may still end
	frame := k.e.FrameNumber()
	status, body = k.act("destroy", `{"Handle":"`+hs[10].String()+`"}`)
	assert.Equal(t, http.StatusAccepted, status, body) // with the next frame
	assert.Equal(t, frame, k.e.FrameNumber())
	assert.True(t, k.r.Alive(hs[10]))
	ok("step", "{}")
	require.Eventually(t, func() bool { return !k.r.Alive(hs[10]) }, 5*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return k.e.FrameNumber() == frame+1 }, 5*time.Second, time.Millisecond)
	ok("resume", "{}")
	require.Eventually(t, func() bool { return k.stats().State == "running" }, 5*time.Second, time.Millisecond)

	ok("destroy", `{"Handle":"`+hs[20].String()+`"}`)
	assert.False(t, k.r.Alive(hs[20]))
	require.Eventually(t, func() bool { // it is written at the next boundary
		_, written := k.r.Obituary(hs[20])
		return written
	}, 5*time.Second, time.Millisecond)
	o, _ := k.r.Obituary(hs[20])
	assert.Equal(t, "inspect", o.Cause)

	require.Eventually(t, func() bool { return k.r.Stats().Tombstoned == 0 }, 5*time.Second, time.Millisecond)
	assert.Contains(t, ok("defrag", "{}"), "0 left to move")
	require.Eventually(t, func() bool { return k.stats().Registry.Allocated < 200 }, 5*time.Second, time.Millisecond)

	assert.Contains(t, ok("confirm", "{}"), "indices are free")
	for _, grow := range []string{"Fixed", "Double", "Additive(16)"} {
		ok("declare", `{"Prefab":"Gull","Capacity":8,"Grow":"`+grow+`","Prewarm":true}`)
		assert.Equal(t, grow, k.stats().Pools[0].Grow)
	}
	assert.Equal(t, 8, k.stats().Pools[0].Cap)
	for _, name := range []string{"pause", "step", "resume", "destroy", "defrag", "confirm", "declare"} {
		assert.Contains(t, log.text(), "action="+name)
	}
	assert.NotContains(t, log.text(), secret)

	require.NoError(t, k.e.Stop())
	status, _ = k.act("destroy", `{"Handle":"`+hs[30].String()+`"}`)
	assert.Equal(t, http.StatusConflict, status)
}

func TestADeterministicRegistryIsNotCompacted(t *testing.T) {
	k := newWorld(t, registry.Config{Deterministic: true}, inspect.Config{Token: secret})
	k.run()
	status, body := k.act("defrag", "{}")
	assert.Equal(t, http.StatusConflict, status)
	assert.Contains(t, body, "deterministic")
}
