package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// token is what the page's actions need here. The test knows it.
const token = "harbour"

// names are what things are called.
type names struct{ class, component, prefab, system, cause, entity string }

// Awkward names do harm where they are not text. Plain ones are for pictures.
var (
	awkward = names{
		class:     `<img src="//example.invalid/x" onerror="window.harmed=1"><b>bold</b>`,
		component: `<i>place</i>&lt;`,
		prefab:    `<u onmouseover="window.harmed=1">Gull</u>`,
		system:    `</li><script>window.harmed=1</script>`,
		cause:     `<em>the tide</em>`,
		entity:    `<b>Anna</b>`,
	}
	plain = names{"Buoy", "Place", "Gull", "drift", "the tide", "Anna"}
)

const (
	field = 200 // the harbour is a square from 0 to here
	ships = 1500
	held  = 2 * time.Second
)

// The components and classes.
type (
	position struct{ X, Y float32 }
	velocity struct{ X, Y float32 }
	place    struct{ X, Y float32 }
	label    struct{ Name [24]byte }

	ship struct {
		At  position
		V   velocity
		Tag label
	}
	buoy struct {
		At  place
		Tag label
	}
	gull struct {
		At position
		V  velocity
	}

	moving struct {
		At []position
		V  []velocity
	}
)

func main() {
	called := awkward
	if len(os.Args) == 2 && os.Args[1] == "-plain" {
		called = plain
	}
	if err := run(called, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// harbour is the world.
type harbour struct {
	names
	reg     *registry.Registry
	engine  *logic.Engine
	ships   *registry.Class[ship]
	buoys   *registry.Class[buoy]
	prefabs *pool.Prefabs
	fleet   []handles.Local
}

func run(called names, in io.Reader, out io.Writer) error {
	h, err := newHarbour(called)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	page := inspect.New(h.engine, inspect.Config{Pools: []pool.Source{h.prefabs}, Token: token})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended, served := make(chan error, 1), make(chan error, 1)
	go func() { ended <- h.engine.Run(ctx) }()
	go func() { served <- page.Serve(ctx, l) }()
	err = h.engine.Spawn(ctx, h.populate)
	fmt.Fprintf(out, "page http://%s/\n", l.Addr())
	for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
		if err = h.obey(ctx, lines.Text()); err == nil {
			fmt.Fprintln(out, lines.Text(), "done")
		}
	}
	cancel()
	if failure := <-ended; !errors.Is(failure, context.Canceled) {
		err = errors.Join(err, failure)
	}
	return errors.Join(err, <-served, h.reg.Verify())
}

func newHarbour(called names) (*harbour, error) {
	reg, err := registry.New(registry.Config{})
	if err != nil {
		return nil, err
	}
	h := &harbour{names: called, reg: reg, prefabs: pool.NewPrefabs(reg)}
	var errs [10]error
	_, errs[0] = registry.RegisterComponent[position](reg, registry.InTier(archetype.Volatile), registry.Named("Position"))
	_, errs[1] = registry.RegisterComponent[velocity](reg, registry.InTier(archetype.Volatile), registry.Named("Velocity"))
	_, errs[2] = registry.RegisterComponent[place](reg, registry.InTier(archetype.Volatile), registry.Named(h.component))
	_, errs[3] = registry.RegisterComponent[label](reg, registry.Named("Label"))
	h.ships, errs[4] = registry.RegisterClass[ship](reg, registry.Named("Ship"), registry.SlotsPerChunk(128))
	h.buoys, errs[5] = registry.RegisterClass[buoy](reg, registry.Named(h.class))
	gulls, err := registry.RegisterClass[gull](reg, registry.Named("Gull"))
	errs[6] = errors.Join(err, pool.Define(h.prefabs, h.prefab, gulls, gull{At: position{20, 20}, V: velocity{9, 4}}))
	query, err := views.NewQuery[moving](reg)
	errs[7] = err
	if h.engine, err = logic.New(reg, logic.Config{Rate: 60}); err != nil {
		return nil, errors.Join(append(errs[:], err)...)
	}
	_, errs[8] = h.engine.AddSystem(logic.Physics, h.system, func(f *logic.Frame) { drift(f, query) })
	errs[9] = h.engine.AddPeer(7) // who never acknowledges anything, so that net handles wait
	return h, errors.Join(errs[:]...)
}

// drift moves everybody, and turns them round at the quays.
func drift(f *logic.Frame, query *views.Query[moving]) {
	for m := range query.Runs(f) {
		for i := range m.At {
			at, v := &m.At[i], &m.V[i]
			at.X, v.X = bounced(at.X+v.X*float32(f.Delta), v.X)
			at.Y, v.Y = bounced(at.Y+v.Y*float32(f.Delta), v.Y)
		}
	}
}

func bounced(x, v float32) (at, speed float32) {
	if x < 0 || x > field {
		return min(max(x, 0), field), -v
	}
	return x, v
}

func named(name string) (l label) {
	copy(l.Name[:], name)
	return l
}

// populate spawns everybody. One buoy that had a net name dies.
func (h *harbour) populate(w *registry.Window) (err error) {
	w.Named(h.cause)
	h.fleet, err = h.ships.SpawnBatch(w, ships, func(i int, s *ship) {
		*s = ship{
			At: position{float32(i * 37 % field), float32(i * 91 % field)}, V: velocity{float32(i%11) - 5, float32(i%7) - 3},
			Tag: named(fmt.Sprintf("ship %d", i)),
		}
	})
	if err != nil {
		return err
	}
	if err := registry.Set(w, h.fleet[0], named(h.entity)); err != nil {
		return err
	}
	buoys, err := h.buoys.SpawnBatch(w, 12, func(i int, b *buoy) {
		*b = buoy{At: place{float32(i) * 17, float32(i) * 17}, Tag: named(h.entity)}
	})
	if err != nil {
		return err
	}
	if _, err := w.AssignNet(buoys[0]); err != nil {
		return err
	}
	if err := w.Destroy(buoys[0]); err != nil {
		return err
	}
	if err := h.prefabs.Declare(w, h.prefab, 3, pool.Fixed(), true); err != nil {
		return err
	}
	for range 3 {
		if _, err := h.prefabs.Spawn(w, h.prefab); err != nil {
			return err
		}
	}
	if _, err := h.prefabs.Spawn(w, h.prefab); !errors.Is(err, pool.ErrExhausted) {
		return fmt.Errorf("a fourth gull of three: %v", err)
	}
	return nil
}

// obey does what a line says, and returns when it is done.
func (h *harbour) obey(ctx context.Context, line string) error {
	switch strings.TrimSpace(line) {
	case "churn":
		return h.engine.Spawn(ctx, h.churn)
	case "hold":
		return h.engine.Spawn(ctx, func(*registry.Window) error {
			<-time.After(held)
			return nil
		})
	case "stop":
		return h.engine.Stop()
	}
	return fmt.Errorf("there is no %q", line)
}

// churn destroys seven of eight.
func (h *harbour) churn(w *registry.Window) error {
	w.Named(h.cause)
	var stay []handles.Local
	for i, n := range rand.New(rand.NewPCG(1, 0)).Perm(len(h.fleet)) {
		if s := h.fleet[i]; n < len(h.fleet)/8+1 {
			stay = append(stay, s)
		} else if err := w.Destroy(s); err != nil {
			return err
		}
	}
	h.fleet = stay
	return nil
}
