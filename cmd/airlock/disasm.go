package main

import (
	"context"
	"io"

	"github.com/airlock-ecs/airlock/declare"
)

type disasmCommand struct {
	File string `arg:"" complete:"file" help:"World file, - for standard input."`
	paramFlags
}

func (c *disasmCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	params, err := c.values()
	if err != nil {
		return err
	}
	p, err := loadWorld(ctx, stderr, c.File, params)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, declare.Disassemble(p))
	return err
}
