package arena

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	get("/stats.json", &stats)
	assert.Equal(t, "running", stats.State)
	assert.Len(t, stats.Pools, 3)
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
