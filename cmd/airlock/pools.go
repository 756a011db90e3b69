package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/airlock-ecs/airlock/pool"
)

type poolsCommand struct {
	Files []string      `arg:"" optional:"" name:"file" complete:"file" help:"Pool files, - for standard input."`
	Watch *string       `placeholder:"URL" help:"Follow the pools of a running server instead, at the address of its inspector, until Ctrl-C."`
	Every time.Duration `default:"1s" help:"How often --watch asks."`
	JSON  bool          `name:"json" help:"Print JSON: an object for each file, or with --watch one in a line whenever something has changed."`
}

// Run goes on after a bad file, so that one look shows what is wrong with each.
func (c *poolsCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	switch {
	case c.Watch == nil && len(c.Files) == 0:
		return usagef("a pool file is missing, such as pools/arena.pools.ron, or --watch URL")
	case c.Watch == nil:
		return c.files(ctx, stdout, stderr)
	case len(c.Files) > 0:
		return usagef("--watch follows a server, and no file: leave out %s", c.Files[0])
	case c.Every <= 0:
		return usagef("--every must be above zero, but it is %v", c.Every)
	}
	url, err := watchURL(*c.Watch)
	if err != nil {
		return err
	}
	w := &watcher{url: url, every: c.Every, json: c.JSON, out: stdout, terminal: terminal(stdout)}
	return w.run(ctx)
}

func (c *poolsCommand) files(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	var result error
	var found []checkedFile
	shown := false
	for _, name := range c.Files {
		declared, err := readPools(ctx, name)
		if ctx.Err() != nil {
			return stoppedf("stopped while reading %s", shownName(name))
		}
		f := checkedFile{File: shownName(name), OK: err == nil, Pools: []poolRow{}}
		if err != nil {
			f.Pools = nil
			f.failed(err)
			result = errTold
		}
		for prefab, s := range asDeclared(declared) {
			f.Pools = append(f.Pools, rowOf(prefab, s))
		}
		found = append(found, f)
		var file *pool.FileError
		switch {
		case c.JSON:
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
	}
	if c.JSON {
		return errors.Join(printJSON(stdout, found), result)
	}
	return result
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
