package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/airlock-ecs/airlock/examples/arena"
	"github.com/airlock-ecs/airlock/flight"
	"github.com/airlock-ecs/airlock/pool"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a write to a closed pipe is an error, which ends the command in order
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends ctx, and gives the next one its usual effect: it kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type commands struct {
	Arena   arenaCommand   `cmd:"" help:"Run the arena, a small game server full of bots that you can join with nc."`
	Replay  replayCommand  `cmd:"" help:"Do again what an arena has recorded with --journal, and compare every frame."`
	Pools   poolsCommand   `cmd:"" help:"Check pool files, and print the pools that they declare."`
	Run     runCommand     `cmd:"" help:"Run a declared world, and print the state that it comes to."`
	Check   checkCommand   `cmd:"" help:"Check world files, and show what is wrong with them."`
	Fmt     fmtCommand     `cmd:"" help:"Lay out world files."`
	Disasm  disasmCommand  `cmd:"" help:"Print the code that the reference interpreter runs for a world."`
	Stress  stressCommand  `cmd:"" help:"Load the engine, check every invariant, and report."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script that completes command lines in a shell."`
}

// run is the whole command as a function: it ends when ctx does, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &output{Writer: stdout, cancel: cancel}
	exit := -1 // what kong wanted to exit with: after --help
	parser, err := kong.New(&commands{},
		kong.Name("airlock"),
		kong.Description("An embeddable ECS registry engine, and programs that show it at work."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(out, stderr),
		kong.Exit(func(code int) { exit = max(exit, code) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(out, (*io.Writer)(nil)),
		kong.Bind(stderrWriter{stderr}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "airlock:", err)
		return exitFailed
	}
	chosen, err := parser.Parse(args)
	switch {
	case out.gone.Load(): // while it was told what there is
		return 0
	case exit >= 0:
		return exit
	case out.failed.Load():
		fmt.Fprintln(stderr, "airlock:", err)
		return exitFailed
	case err != nil:
		fmt.Fprintf(stderr, "airlock: %s (airlock --help shows what there is)\n", explained(parser.Model, err))
		return exitUsage
	}
	err = chosen.Run(parser)
	var usage usageError
	var file *pool.FileError
	switch {
	case err == nil, out.quiet(err):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "airlock: %v\n", err)
		return exitUsage
	case errors.Is(err, errTold):
		return exitFailed
	case errors.As(err, &file): // as airlock pools shows it
		fmt.Fprintln(stderr, file.Detail())
		return exitFailed
	case errors.Is(err, arena.ErrJournalExists):
		fmt.Fprintf(stderr, "airlock: %v; choose another directory for --journal, or see it again with airlock replay\n", err)
		return exitFailed
	case errors.Is(err, arena.ErrConfig):
		fmt.Fprintf(stderr, "airlock: %v\n", err)
		return exitUsage
	case errors.Is(err, arena.ErrInspectInUse):
		fmt.Fprintf(stderr, "airlock: %v; stop it, or choose another address with --inspect (off turns the page off)\n", err)
		return exitFailed
	case errors.Is(err, arena.ErrPortInUse):
		fmt.Fprintf(stderr, "airlock: %v; stop it, or choose a port with --port (0 picks a free one)\n", err)
		return exitFailed
	}
	fmt.Fprintf(stderr, "airlock: %s\n", visible(strings.ReplaceAll(err.Error(), "\n", "; ")))
	return exitFailed
}

// visible spells what cannot be printed, which a server may have put into its answer for the terminal to obey.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

type arenaCommand struct {
	Flight *string `placeholder:"DIR" help:"When a frame overruns, write a trace of the last seconds to a file in this directory, for go tool trace."`

	Port int           `default:"7700" help:"Loopback TCP port to listen on; 0 picks a free one."`
	Bots int           `default:"64" help:"Clients that play by themselves, over real sockets."`
	Rate int           `default:"60" help:"Frames a second, 1 to 1000."`
	For  time.Duration `placeholder:"10s" help:"Stop after this time; without it, Ctrl-C stops the arena."`
	Seed uint64        `default:"1" help:"Where players appear and what bots do."`

	Pools         *string `placeholder:"FILE" help:"Pool file with the pools of arrows and sparks; without it pools/arena.pools.ron, or the same as it was built in if there is none."`
	Inspect       string  `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Loopback address of the page that shows the registry's health; port 0 picks a free one, off turns the page off."`
	InspectToken  string  `placeholder:"TOKEN" help:"Have actions on that page, for who gives this token."`
	InspectRemote bool    `help:"Let --inspect be an address that is not loopback; needs --inspect-token."`

	Journal *string `placeholder:"DIR" help:"Record everything in this new directory, for airlock replay."`
}

func (c *arenaCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	if c.Rate < 1 || c.Rate > arena.MaxRate { // to the library 0 means 60
		return usagef("--rate must be between 1 and %d frames a second, not %d", arena.MaxRate, c.Rate)
	}
	if c.For < 0 {
		return usagef("--for must not be negative, but it is %v", c.For)
	}
	config := arena.Config{Port: c.Port, Bots: c.Bots, Rate: c.Rate, Seed: c.Seed, Out: stdout}
	if c.Inspect != "off" {
		if c.Inspect == "" {
			return usagef("--inspect needs an address, or off")
		}
		config.Inspect, config.InspectToken, config.InspectRemote = c.Inspect, c.InspectToken, c.InspectRemote
	}
	if c.Journal != nil {
		if config.Journal = *c.Journal; config.Journal == "" {
			return usagef("--journal needs the name of a directory")
		}
	}
	if c.Pools != nil {
		if config.Pools = *c.Pools; config.Pools == "" {
			return usagef("--pools needs the name of a file")
		}
	} else if _, err := os.Stat(arena.PoolFile); err == nil {
		config.Pools = arena.PoolFile
	}
	var err error
	if config.Flight, err = flightTo(c.Flight, 0, stderr); err != nil {
		return err
	}
	server, err := arena.New(config)
	if err != nil {
		return err
	}
	if c.Journal != nil {
		fmt.Fprintf(stdout, "recorded in %s; to see it again: airlock replay %s\n", config.Journal, config.Journal)
	}
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
		fmt.Fprintf(stdout, "this stops in %v, or with Ctrl-C\n", c.For)
	} else {
		fmt.Fprintln(stdout, "Ctrl-C stops this; a second one does not wait")
	}
	_, err = server.Run(ctx)
	return err
}

// flightTo makes the flight recorder of a flag --flight; none if it was not given. The budget of 0 is that of the engine.
func flightTo(dir *string, budget time.Duration, stderr io.Writer) (*flight.Recorder, error) {
	if dir == nil {
		return nil, nil
	}
	if *dir == "" {
		return nil, usagef("--flight needs the name of a directory")
	}
	return flight.New(flight.Config{Dir: *dir, Budget: budget, Logger: slog.New(slog.NewTextHandler(stderr, nil))})
}

type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c versionCommand) Run(stdout io.Writer) error {
	version, revision := "(unknown)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if c.JSON {
		return printJSON(stdout, struct {
			Version  string `json:"version"`
			Revision string `json:"revision,omitempty"`
			Go       string `json:"go"`
			OS       string `json:"os"`
			Arch     string `json:"arch"`
		}{version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}
	_, err := fmt.Fprintf(stdout, "airlock %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// printJSON prints a value for programs, which people read too.
func printJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
