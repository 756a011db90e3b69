package inspect_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

func TestServeEndsWithItsContextAndLeavesNothing(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	h := inspect.New(k.e, inspect.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + l.Addr().String() + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadFull(resp.Body, make([]byte, 100))
	require.NoError(t, err)
	stop()
	require.NoError(t, <-served)
	_, err = io.ReadAll(resp.Body) // the stream was ended, not cut
	assert.NoError(t, err)
	_, err = client.Get("http://" + l.Addr().String() + "/")
	assert.Error(t, err)
}

func TestServeTellsThatItsListenerHasFailed(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	h := inspect.New(k.e, inspect.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	assert.ErrorContains(t, h.Serve(t.Context(), l), "inspect: ")
}
