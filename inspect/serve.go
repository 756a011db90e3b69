package inspect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve answers on a listener until ctx ends or the listener fails, with a server of its own that bounds headers and waiting.
// It closes the listener and the handler, and returns when nothing of it is left; nil after the end of ctx.
//
// Errors: those of the listener.
// Concurrency: any goroutine. Allocates: yes.
func (h *Handler) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
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
