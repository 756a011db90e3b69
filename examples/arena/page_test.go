package arena

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

func TestThePageShowsTheArenaWhileItRuns(t *testing.T) {
	r := start(t, Config{Bots: 4, Inspect: "127.0.0.1:0"})
	url := "http://" + r.PageAddr().String()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string, into any) {
		resp, err := client.Get(url + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
		require.NoError(t, json.Unmarshal(body, into))
	}
	var world struct {
		Classes []string
		X, Y    []float64
	}
	require.Eventually(t, func() bool {
		get("/world.json", &world)
		return len(world.X) >= 4
	}, patient, 20*time.Millisecond)
	assert.Contains(t, world.Classes, "arena.Player")
	for i := range world.X {
		assert.True(t, world.X[i] >= 0 && world.X[i] <= fieldSize && world.Y[i] >= 0 && world.Y[i] <= fieldSize)
	}
	var stats struct {
		State string
		Pools []struct{ Name string }
	}
	require.Eventually(t, func() bool { // for a moment it is held, if the machine stands still inside of a frame
		get("/stats.json", &stats)
		return stats.State == "running"
	}, patient, 20*time.Millisecond)
	assert.Len(t, stats.Pools, 3)
}

// Who has the token may destroy players, too. Their clients are told, and the server has nothing to complain of.
func TestAPlayerThatThePageDestroysCanJoinAgain(t *testing.T) {
	r := start(t, Config{Inspect: "127.0.0.1:0", InspectToken: "secret"})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	destroy := func(handle string) {
		ask, err := http.NewRequest(http.MethodPost, "http://"+r.PageAddr().String()+"/actions/destroy", strings.NewReader(`{"Handle":"`+handle+`"}`))
		require.NoError(t, err)
		ask.Header.Set("Airlock-Token", "secret")
		ask.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(ask)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Contains(t, []int{http.StatusOK, http.StatusAccepted}, resp.StatusCode) // accepted: Logic comes to it later, on a busy machine
		var h handles.Local
		require.NoError(t, h.UnmarshalText([]byte(handle)))
		require.Eventually(t, func() bool { return !r.reg.Alive(h) }, patient, time.Millisecond)
	}
	last := ""
	player := func() string {
		var world struct{ Handle []string }
		require.Eventually(t, func() bool {
			resp, err := client.Get("http://" + r.PageAddr().String() + "/world.json")
			require.NoError(t, err)
			defer resp.Body.Close()
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&world))
			return len(world.Handle) == 1 && world.Handle[0] != last // which may be shown for a moment longer
		}, patient, 20*time.Millisecond)
		last = world.Handle[0]
		return last
	}
	c := r.enter(t)
	require.Contains(t, c.ask("join anna"), "ok anna is ")
	destroy(player())
	require.Equal(t, "error: somebody has taken you out of the arena, join NAME again", c.ask("fire 1 1"))
	require.Equal(t, "error: you are not in the arena yet, try join NAME", c.ask("fire 1 1"))
	// The second time it leaves without having heard of it.
	require.Contains(t, c.ask("join anna"), "ok anna is ")
	destroy(player())
	require.Equal(t, "bye", c.ask("quit"))
}

func TestAPageNeedsAnAddressOfThisMachineOrAToken(t *testing.T) {
	for _, c := range []Config{
		{Inspect: "here"}, {Inspect: "127.0.0.1"}, {Inspect: ":8080"}, {Inspect: "192.0.2.1:80"}, {Inspect: "example.com:80"},
		{Inspect: "0.0.0.0:0", InspectRemote: true}, {Inspect: "0.0.0.0:0", InspectToken: "t"}, {Inspect: "127.0.0.1:99999"},
	} {
		_, err := New(c)
		assert.ErrorIs(t, err, ErrConfig, c.Inspect)
	}
	s, err := New(Config{Inspect: "0.0.0.0:0", InspectToken: "t", InspectRemote: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = New(Config{})
	require.NoError(t, err)
	assert.Nil(t, s.PageAddr())
	require.NoError(t, s.Close())
}
