package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/examples/arena"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/snapshot"
)

// errTold is a failure that has been told already, on standard output.
var errTold = errors.New("told")

type replayCommand struct {
	Dir    string `arg:"" help:"Directory that airlock arena --journal has recorded in."`
	Hashes bool   `help:"Print the hash of the state after every frame."`
}

func (c *replayCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	switch info, err := os.Stat(c.Dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s", c.Dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", c.Dir)
	}
	var lost int64
	var reason error
	opts := []logic.ReplayOption{logic.WithContext(ctx), logic.WithLoss(func(n int64, err error) { lost, reason = n, err })}
	p := newProgress(stderr)
	if !c.Hashes || !p.terminal || !terminal(stdout) { // hashes that run over the screen are progress enough
		opts = append(opts, logic.WithProgress(p.show))
	}
	lines := bufio.NewWriter(stdout)
	if c.Hashes {
		opts = append(opts, logic.WithHashes(func(frame, hash uint64) { fmt.Fprintf(lines, "frame %d hash %016x\n", frame, hash) }))
	}
	frame, err := arena.Replay(os.DirFS(c.Dir), opts...)
	p.end()
	if err := lines.Flush(); err != nil {
		return err
	}
	var diverged *logic.DivergedError
	switch {
	case errors.As(err, &diverged):
		fmt.Fprintf(stdout, "frame %d differs: its hash was %016x, and is %016x; identical through frame %d\n", diverged.Frame, diverged.Recorded, diverged.Replayed, frame)
		return errTold
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped; identical through frame %d, and there is more", frame)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no journal in %s; airlock arena --journal DIR records one", c.Dir)
	case errors.Is(err, snapshot.ErrSchema), errors.Is(err, snapshot.ErrConfig):
		return fmt.Errorf("the journal in %s is not of this arena: %w", c.Dir, err)
	case err != nil:
		return err
	}
	if reason != nil {
		fmt.Fprintf(stdout, "the end of the journal is lost, %d bytes: %v\n", lost, reason)
	}
	fmt.Fprintf(stdout, "identical through frame %d\n", frame)
	return nil
}

// stderrWriter is standard error, by a type of its own so that kong can tell it from standard output.
type stderrWriter struct{ io.Writer }

// progress shows how far a replay has come: as a bar on a terminal, else in a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	next     time.Time // when there is something to show again
	shown    bool
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 2 * time.Second
	barWidth  = 40
)

func newProgress(out stderrWriter) *progress {
	p := &progress{out: out.Writer, next: time.Now().Add(lineEvery)}
	if terminal(out.Writer) {
		p.terminal, p.next = true, time.Time{}
	}
	return p
}

// terminal reports whether what is written is shown at once.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show is called after every frame.
func (p *progress) show(frame, of uint64) {
	if now := time.Now(); now.After(p.next) || p.terminal && frame == of {
		p.next = now.Add(lineEvery)
		if p.terminal {
			p.next = now.Add(barEvery)
		}
		p.draw(frame, of)
	}
}

func (p *progress) draw(frame, of uint64) {
	if !p.terminal {
		fmt.Fprintf(p.out, "frame %d of %d\n", frame, of)
		return
	}
	done := int(min(frame, of) * barWidth / max(of, 1))
	fmt.Fprintf(p.out, "\r[%s%s] frame %d of %d", strings.Repeat("=", done), strings.Repeat(" ", barWidth-done), frame, of)
	p.shown = true
}

// end leaves the line of the bar.
func (p *progress) end() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
}
