package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/airlock-ecs/airlock/declare"
)

type fmtCommand struct {
	Files []string `arg:"" name:"file" complete:"file" help:"World files, - for standard input."`
	Write bool     `short:"w" xor:"what" help:"Write the result to the file, if it differs, instead of to standard output."`
	Diff  bool     `short:"d" help:"Print what would change."`
	Check bool     `xor:"what" help:"Print the names of files that are laid out otherwise; exit status 1 if there are any."`
}

// Run goes on after a bad file, which stays as it is.
func (c *fmtCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	var result error
	for _, name := range c.Files {
		if name == "-" && c.Write {
			return usagef("-w cannot write to standard input")
		}
	}
	for _, name := range c.Files {
		src, err := readSource(ctx, name)
		if ctx.Err() != nil {
			return err
		}
		var out []byte
		if err == nil {
			out, err = declare.Format(shownName(name), src)
			err = tellFaults(stderr, err)
		}
		if err != nil {
			tell(stderr, err)
			result = errTold
			continue
		}
		differs, err := c.put(stdout, name, src, out)
		if err != nil {
			return err
		}
		if differs && c.Check {
			result = errTold
		}
	}
	return result
}

// put does with a file what the flags say.
func (c *fmtCommand) put(stdout io.Writer, name string, src, out []byte) (differs bool, err error) {
	differs = !bytes.Equal(src, out)
	if !c.Write && !c.Diff && !c.Check {
		_, err = stdout.Write(out)
		return differs, err
	}
	if !differs {
		return false, nil
	}
	if c.Check {
		if _, err := fmt.Fprintln(stdout, shownName(name)); err != nil {
			return true, err
		}
	}
	if c.Diff {
		if _, err := stdout.Write(unified(shownName(name), src, out)); err != nil {
			return true, err
		}
	}
	if c.Write {
		f, err := replace(name)
		if err != nil {
			return true, err
		}
		_, err = f.Write(out)
		return true, f.commit(err)
	}
	return true, nil
}
