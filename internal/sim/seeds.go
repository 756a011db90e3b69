package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ReadSeeds reads the saved seeds of a file: one a line, and behind a # why it was saved. A file that does
// not exist has none.
//
// Errors: those of the file; a line that is no seed.
// Concurrency: any goroutine. Allocates: the seeds.
func ReadSeeds(path string) ([]uint64, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	var seeds []uint64
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		seed, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("sim: %s: %w", path, err)
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

// SaveSeed adds a seed to a file, with the first line of why.
//
// Errors: those of the file.
// Concurrency: any goroutine; several processes may save at a time. Allocates: yes.
func SaveSeed(path string, seed uint64, why error) error {
	first, _, _ := strings.Cut(why.Error(), "\n")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	_, err = fmt.Fprintf(file, "%d # %s\n", seed, first)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return nil
}
