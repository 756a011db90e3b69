package inspect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// connection is under what a request of Serve knows its connection.
type connection struct{}

// streamBuffer is what the kernel keeps for a client of a stream. Left to itself it keeps megabytes: then a slow client sees what was
// long ago, and all of it was copied for him.
const streamBuffer = 64 << 10

// keepLittle bounds what the kernel keeps of a stream. Who serves without Serve has what he has.
func keepLittle(r *http.Request) {
	if c, ok := r.Context().Value(connection{}).(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = c.SetWriteBuffer(streamBuffer) // more is slower, and not wrong
	}
}

// Serve answers on a listener until ctx ends or the listener fails, with a server of its own that bounds headers and waiting.
// It closes the listener and the handler, and returns when nothing of it is left; nil after the end of ctx.
//
// Errors: those of the listener.
// Concurrency: any goroutine. Allocates: yes.
func (h *Handler) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, c)
		},
		Handler:           h,
		ReadHeaderTimeout: writeWithin,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    mostHeaderBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		_ = h.Close()
		_ = server.Close()
		return fmt.Errorf("inspect: %w", err)
	case <-ctx.Done():
	}
	_ = h.Close() // ends the streams
	bound, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if server.Shutdown(bound) != nil {
		_ = server.Close() // somebody does not take what he asked for
	}
	<-ended
	return nil
}
