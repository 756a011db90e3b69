package main

import (
	"context"
)

type checkCommand struct {
	Files []string `arg:"" name:"file" help:"World files, - for standard input."`
	paramFlags
}

// Run says nothing of sound files, and goes on after a bad one, so that one look shows what is wrong with each.
func (c *checkCommand) Run(ctx context.Context, stderr stderrWriter) error {
	params, err := c.values()
	if err != nil {
		return err
	}
	var result error
	for _, name := range c.Files {
		if _, err := loadWorld(ctx, stderr, name, params); err != nil {
			if ctx.Err() != nil {
				return err
			}
			tell(stderr, err)
			result = errTold
		}
	}
	return result
}
