package flight_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-ecs/airlock/flight"
)

// An engine does this by itself when its Config has a Recorder.
func Example() {
	dir, _ := os.MkdirTemp("", "flight")
	defer os.RemoveAll(dir)
	r, err := flight.New(flight.Config{Dir: dir, Budget: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	fmt.Println(err, r.Budget(60))
	_ = r.Begin()
	r.Overran(412, "frame", 31*time.Millisecond)
	r.End()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		fmt.Println(filepath.Base(file))
	}
	// Output:
	// <nil> 10ms
	// frame-0000000412.trace
}
