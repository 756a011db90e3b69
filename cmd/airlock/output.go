package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
)

// output is standard output. When nobody reads it any more, as behind airlock … | head, the command is to end.
type output struct {
	io.Writer
	gone   atomic.Bool
	failed atomic.Bool        // a write did not succeed, for another reason
	cancel context.CancelFunc // of the command
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	switch {
	case errors.Is(err, syscall.EPIPE):
		o.gone.Store(true)
		o.cancel()
	case err != nil:
		o.failed.Store(true)
	}
	return n, err
}

// quiet reports whether err is nothing but that the reader of the output is gone: that is no failure of the command.
func (o *output) quiet(err error) bool {
	var stopped stoppedError
	return o.gone.Load() && !errors.Is(err, errTold) && (err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) || errors.As(err, &stopped))
}

// stoppedError says where an interrupt has ended a command.
type stoppedError struct{ error }

func stoppedf(format string, args ...any) error { return stoppedError{fmt.Errorf(format, args...)} }

// stderrWriter is standard error, by a type of its own so that kong can tell it from standard output.
type stderrWriter struct{ io.Writer }
