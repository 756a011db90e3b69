package main

import (
	"context"
	"errors"
	"io"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/pool"
)

type checkCommand struct {
	Files []string `arg:"" name:"file" complete:"file" help:"World files, - for standard input."`
	paramFlags
	JSON bool `name:"json" help:"Print what is wrong as JSON, on standard output: an object for each file."`
}

// checkedFile is what was found about a file, as a program reads it.
type checkedFile struct {
	File   string      `json:"file"`
	OK     bool        `json:"ok"`
	Pools  []poolRow   `json:"pools,omitempty"`  // of a pool file
	Faults []fileFault `json:"faults,omitempty"` // in the file
	Error  string      `json:"error,omitempty"`  // why it could not be read
}

type fileFault struct {
	Line    int    `json:"line,omitempty"` // from 1; none if no place is at fault
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// failed notes why a file is no good.
func (f *checkedFile) failed(err error) {
	var faults declare.Errors
	var fault *pool.FileError
	switch {
	case errors.As(err, &faults):
		for _, e := range faults {
			f.Faults = append(f.Faults, fileFault{e.Pos.Line, e.Pos.Column, e.Message})
		}
	case errors.As(err, &fault):
		f.Faults = []fileFault{{fault.Line, fault.Column, fault.Problem}}
	default:
		f.Error = err.Error()
	}
}

// Run says nothing of sound files, and goes on after a bad one, so that one look shows what is wrong with each.
func (c *checkCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	params, err := c.values()
	if err != nil {
		return err
	}
	var result error
	var found []checkedFile
	for _, name := range c.Files {
		_, err := parseWorld(ctx, name, params)
		f := checkedFile{File: shownName(name), OK: err == nil}
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			f.failed(err)
			if !c.JSON {
				tell(stderr, tellFaults(stderr, err))
			}
			result = errTold
		}
		found = append(found, f)
	}
	if c.JSON {
		return errors.Join(printJSON(stdout, found), result)
	}
	return result
}
