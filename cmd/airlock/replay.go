package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/airlock-ecs/airlock/examples/arena"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/snapshot"
)

// errTold is a failure that has been told already.
var errTold = errors.New("told")

type replayCommand struct {
	Dir    string `arg:"" complete:"dir" help:"Directory that airlock arena --journal has recorded in."`
	Hashes bool   `help:"Print the hash of the state after every frame."`
	JSON   bool   `name:"json" help:"Print JSON: an object in a line, with --hashes one for each frame before it."`
}

// replayResult is what came of a replay, as a program reads it.
type replayResult struct {
	Identical  bool   `json:"identical"`
	Through    uint64 `json:"through"`           // the last frame that is
	Differs    uint64 `json:"differs,omitempty"` // the first frame that is not, and its hashes
	Recorded   string `json:"recorded,omitempty"`
	Replayed   string `json:"replayed,omitempty"`
	LostBytes  int64  `json:"lost_bytes,omitempty"` // at the end of the journal
	LostReason string `json:"lost_reason,omitempty"`
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
	p := newBar(stderr, "frame")
	if c.Hashes && terminal(stdout) {
		p.on = false // hashes that run over the screen are progress enough
	}
	if p.on {
		opts = append(opts, logic.WithProgress(p.show))
	}
	lines := bufio.NewWriter(stdout)
	if c.Hashes {
		line := "frame %d hash %016x\n"
		if c.JSON {
			line = "{\"frame\":%d,\"hash\":\"%016x\"}\n"
		}
		opts = append(opts, logic.WithHashes(func(frame, hash uint64) { fmt.Fprintf(lines, line, frame, hash) }))
	}
	frame, err := arena.Replay(os.DirFS(c.Dir), opts...)
	p.end()
	if err := lines.Flush(); err != nil {
		return err
	}
	var diverged *logic.DivergedError
	switch {
	case errors.As(err, &diverged) && c.JSON:
		return errors.Join(json.NewEncoder(stdout).Encode(replayResult{
			Through: frame, Differs: diverged.Frame, Recorded: fmt.Sprintf("%016x", diverged.Recorded), Replayed: fmt.Sprintf("%016x", diverged.Replayed),
		}), errTold)
	case errors.As(err, &diverged):
		fmt.Fprintf(stdout, "frame %d differs: its hash was %016x, and is %016x; identical through frame %d\n", diverged.Frame, diverged.Recorded, diverged.Replayed, frame)
		return errTold
	case errors.Is(err, context.Canceled):
		return stoppedf("stopped; identical through frame %d, and there is more", frame)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no journal in %s; airlock arena --journal DIR records one", c.Dir)
	case errors.Is(err, snapshot.ErrSchema), errors.Is(err, snapshot.ErrConfig):
		return fmt.Errorf("the journal in %s is not of this arena: %w", c.Dir, err)
	case err != nil:
		return err
	}
	if c.JSON {
		result := replayResult{Identical: true, Through: frame, LostBytes: lost}
		if reason != nil {
			result.LostReason = reason.Error()
		}
		return json.NewEncoder(stdout).Encode(result)
	}
	if reason != nil {
		fmt.Fprintf(stdout, "the end of the journal is lost, %d bytes: %v\n", lost, reason)
	}
	fmt.Fprintf(stdout, "identical through frame %d\n", frame)
	return nil
}
