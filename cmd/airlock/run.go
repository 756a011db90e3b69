package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

type runCommand struct {
	File string `arg:"" complete:"file" help:"World file, - for standard input."`
	paramFlags
	Steps      int64    `required:"" placeholder:"N" help:"Run so many steps."`
	Hash       bool     `help:"Print the hash of the state."`
	CrossCheck bool     `help:"Run both backends, and compare the hashes of their states after every step."`
	Every      int64    `placeholder:"K" help:"Print the state after every K steps, too."`
	States     string   `enum:"active,all,none" default:"active" help:"Whose state is printed: ${enum}."`
	JSON       bool     `name:"json" help:"Print JSON: an object, with --every one in each line."`
	Backend    string   `enum:"batch,interpreter" default:"batch" help:"What computes the steps: ${enum}."`
	Workers    int      `placeholder:"N" help:"Goroutines that share the work; without it, one for each processor."`
	Plot       *string  `placeholder:"FILE.svg" help:"Draw values over time, as SVG."`
	Slots      []string `placeholder:"p#0.x,p" help:"What --plot draws: state slots, and by the name of an entity or a pool how many are active. Without it, each pool."`
}

const (
	mostSteps   = 1 << 53 // beyond, the number of a step is no float64
	mostWorkers = 1 << 10
)

// Run stops after a step when ctx ends, and prints the state that was reached.
func (c *runCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	params, err := c.checked()
	if err != nil {
		return err
	}
	p, err := loadWorld(ctx, stderr, c.File, params)
	if err != nil {
		return err
	}
	var drawn *plot
	if c.Plot != nil {
		if drawn, err = newPlot(p, c.Slots); err != nil {
			return err
		}
		out, err := replace(*c.Plot)
		if err != nil {
			return err
		}
		drawn.out = out
		defer drawn.discard()
	}
	r, err := declare.NewRunner(p, c.options())
	if err != nil {
		return fmt.Errorf("%s: %w", shownName(c.File), err)
	}
	return errors.Join(c.run(ctx, r, drawn, stdout, stderr), r.Close())
}

// checked finds flags that make no sense, and gives the parameters.
func (c *runCommand) checked() (map[string]float64, error) {
	switch {
	case c.Steps < 0 || c.Steps > mostSteps:
		return nil, usagef("--steps must be between 0 and %d, not %d", int64(mostSteps), c.Steps)
	case c.Every < 0:
		return nil, usagef("--every must not be negative, but it is %d", c.Every)
	case c.Workers < 0 || c.Workers > mostWorkers:
		return nil, usagef("--workers must be between 1 and %d, not %d", mostWorkers, c.Workers)
	case c.Plot != nil && *c.Plot == "":
		return nil, usagef("--plot needs the name of a file")
	case c.Plot != nil && !forSVG(*c.Plot):
		return nil, usagef("--plot writes SVG: name a file that ends in .svg, not %q", *c.Plot)
	case c.Plot == nil && c.Slots != nil:
		return nil, usagef("--slots says what --plot draws, which is not given")
	}
	return c.values()
}

// forSVG says whether a file of that name may be SVG: one that ends as another picture does would open nowhere.
func forSVG(name string) bool {
	ext := filepath.Ext(name)
	return len(ext) <= 1 || strings.EqualFold(ext, ".svg")
}

func (c *runCommand) options() declare.RunnerOptions {
	o := declare.RunnerOptions{CrossCheck: c.CrossCheck, Workers: c.Workers}
	if c.Backend == declare.Interpreter.String() {
		o.Backend = declare.Interpreter
	}
	return o
}

func (c *runCommand) run(ctx context.Context, r *declare.Runner, drawn *plot, stdout io.Writer, stderr stderrWriter) error {
	out := bufio.NewWriter(stdout)
	report := &report{command: c, runner: r, out: out}
	report.head()
	bar := newBar(stderr, "step")
	if c.Every > 0 && terminal(stdout) {
		bar.on = false // states that run over the screen are progress enough
	}
	done, failure := stepwise(ctx, uint64(c.Steps), r.Step, func(done uint64) error {
		bar.show(done, uint64(c.Steps))
		if drawn != nil {
			if err := drawn.sample(r, done); err != nil {
				return err
			}
		}
		if c.Every > 0 && done > 0 && done%uint64(c.Every) == 0 && done < uint64(c.Steps) {
			return errors.Join(report.state(done), out.Flush())
		}
		return nil
	})
	bar.end()
	stopped := errors.Is(failure, context.Canceled)
	if failure != nil && !stopped {
		return errors.Join(told(failure), out.Flush())
	}
	if err := errors.Join(report.state(done), out.Flush()); err != nil {
		return err
	}
	if drawn != nil {
		if err := drawn.write(); err != nil {
			return err
		}
	}
	if stopped {
		return stoppedf("stopped after step %d of %d", done, c.Steps)
	}
	return nil
}

// stepwise runs steps, and calls after behind each one, and before the first. It returns how many steps are done, and the error
// that ended it: that of ctx, or of a call.
func stepwise(ctx context.Context, steps uint64, step func() error, after func(done uint64) error) (done uint64, err error) {
	for {
		if err := after(done); err != nil || done == steps {
			return done, err
		}
		if ctx.Err() != nil {
			return done, context.Canceled
		}
		if err := step(); err != nil {
			return done, err
		}
		done++
	}
}

// told is the error of a step, in the words of the command.
func told(err error) error {
	var differs *declare.CrossCheckError
	switch {
	case !errors.As(err, &differs):
		return err
	case differs.ID == 0:
		return fmt.Errorf("the backends differ after step %d: %s", differs.Step+1, differs.Detail)
	}
	return fmt.Errorf("the backends differ after step %d, in %s.%s: batch %v (%016x), interpreter %v (%016x)",
		differs.Step+1, differs.Entity, differs.Slot, differs.Batch, math.Float64bits(differs.Batch),
		differs.Interpreter, math.Float64bits(differs.Interpreter))
}

// look calls f with the state after the last step. That is a published frame: a window would begin the next one.
func look(r *declare.Runner, f func(registry.Access)) error {
	reg := r.World().Registry()
	if snap, err := reg.Acquire(); err == nil {
		defer snap.Release()
		if snap.FrameNumber() == r.Engine().FrameNumber() {
			f(snap)
			return nil
		}
	}
	return reg.Update(func(w *registry.Window) error {
		f(w)
		return nil
	})
}
