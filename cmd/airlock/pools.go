package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/airlock-ecs/airlock/pool"
)

type poolsCommand struct {
	Files []string `arg:"" name:"file" help:"Pool files, - for standard input."`
}

// Run goes on after a bad file, so that one look shows what is wrong with each.
func (c *poolsCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	bad, shown := false, false
	for _, name := range c.Files {
		declared, err := readPools(ctx, name)
		var file *pool.FileError
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("stopped while reading %s", shownName(name))
		case errors.As(err, &file):
			// The line starts with the place, as editors and terminals look for it.
			fmt.Fprintln(stderr, file.Detail())
		case err != nil:
			fmt.Fprintf(stderr, "airlock: %v\n", err)
		default:
			if len(c.Files) > 1 {
				if shown {
					fmt.Fprintln(stdout)
				}
				shown = true
				fmt.Fprintf(stdout, "%s:\n", shownName(name))
			}
			if err := pool.FormatTable(stdout, asDeclared(declared)); err != nil {
				return err
			}
		}
		bad = bad || err != nil
	}
	if bad {
		return errTold
	}
	return nil
}

// asDeclared are the figures of pools that nobody has used yet.
func asDeclared(declared []pool.Declared) iter.Seq2[string, pool.Stats] {
	return func(yield func(string, pool.Stats) bool) {
		for _, d := range declared {
			s := pool.Stats{Cap: d.Capacity, Free: d.Capacity, Max: d.Max, Grow: d.Grow, Warm: d.Prewarm}
			if d.Prewarm {
				s.Built = d.Capacity
			}
			if !yield(d.Prefab, s) {
				return
			}
		}
	}
}

// shownName is what messages call a file.
func shownName(name string) string {
	if name == "-" {
		return "<stdin>"
	}
	return name
}

// readPools reads a pool file. A terminal or a pipe may keep a read waiting for ever, so it has a goroutine of its
// own, which is left behind when ctx ends: so does the program.
func readPools(ctx context.Context, name string) ([]pool.Declared, error) {
	type result struct {
		declared []pool.Declared
		err      error
	}
	done, stdin := make(chan result, 1), os.Stdin
	go func() {
		var r result
		if name == "-" {
			r.declared, r.err = pool.ReadFile(shownName(name), stdin)
		} else {
			r.declared, r.err = openPools(name)
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.declared, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func openPools(name string) ([]pool.Declared, error) {
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
	return pool.ReadFile(name, f)
}
