package handles_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain gives the models longer walks than rapid's default of 30 steps, unless the command
// line says how long: a burned generation that comes back as a free one takes eight steps in a row.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.steps" })
	if !given {
		if err := flag.Set("rapid.steps", "150"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
