package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/airlock-ecs/airlock/declare"
)

// usageError is a command line that cannot be run, for a reason that kong does not know.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// largestSource is how much of a world file is read: enough to say how large one is that is too large.
const largestSource = 64 * declare.MaxSource

// paramFlags are the values that a command line gives to parameters of a world.
type paramFlags struct {
	Param []string `sep:"none" placeholder:"K=V" help:"Give parameter K of the world the value V, once for each."`
}

// values reads K=V. Whether the world has a parameter K is its own affair.
func (f *paramFlags) values() (map[string]float64, error) {
	out := make(map[string]float64, len(f.Param))
	for _, given := range f.Param {
		name, text, ok := strings.Cut(given, "=")
		if !ok || name == "" {
			return nil, usagef("--param needs K=V, such as k=3, not %q", given)
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, usagef("--param %s needs a finite number, not %q", name, text)
		}
		if _, twice := out[name]; twice {
			return nil, usagef("--param %s is given twice", name)
		}
		out[name] = v
	}
	return out, nil
}

// loadWorld reads a world file and checks it. What is wrong with it is told on standard error, line by line.
func loadWorld(ctx context.Context, stderr io.Writer, name string, params map[string]float64) (*declare.Program, error) {
	p, err := parseWorld(ctx, name, params)
	return p, tellFaults(stderr, err)
}

// parseWorld reads a world file and checks it.
func parseWorld(ctx context.Context, name string, params map[string]float64) (*declare.Program, error) {
	src, err := readSource(ctx, name)
	if err != nil {
		return nil, err
	}
	return declare.Load(shownName(name), src, params)
}

// tellFaults tells what is wrong with a file. Each fault starts with its place, as editors and terminals look for it.
func tellFaults(stderr io.Writer, err error) error {
	var faults declare.Errors
	if !errors.As(err, &faults) {
		return err
	}
	if _, err := fmt.Fprintln(stderr, faults.Error()); err != nil {
		return err
	}
	return errTold
}

// tell tells an error of one of several files, so that the others get their turn.
func tell(stderr io.Writer, err error) {
	if !errors.Is(err, errTold) {
		fmt.Fprintf(stderr, "airlock: %v\n", err)
	}
}

// readSource reads a file, or standard input. Both may keep a read waiting for ever, so it has a goroutine of its
// own, which is left behind when ctx ends: so does the program.
func readSource(ctx context.Context, name string) ([]byte, error) {
	type result struct {
		src []byte
		err error
	}
	done, stdin := make(chan result, 1), os.Stdin
	go func() {
		var r result
		if name == "-" {
			r.src, r.err = readBounded(shownName(name), stdin)
		} else {
			r.src, r.err = openSource(name)
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.src, r.err
	case <-ctx.Done():
		return nil, stoppedf("stopped while reading %s", shownName(name))
	}
}

func openSource(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", name)
	}
	return readBounded(name, f)
}

func readBounded(name string, in io.Reader) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(in, largestSource+1))
	if err == nil && len(src) > largestSource {
		err = fmt.Errorf("%s goes on after %d bytes; a world file has up to %d", name, largestSource, declare.MaxSource)
	}
	return src, err
}
