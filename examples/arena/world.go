package arena

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// The rules of the game. Lengths are in units, times in seconds.
const (
	fieldSize   = 200 // the field is a square from 0 to here
	bodyRadius  = 2   // an arrow that comes this close to a player hits
	arrowSpeed  = 60
	arrowLife   = 2.5
	fullHealth  = 3
	longestStep = 10 // a single move goes no further
	sparkLife   = 0.25
)

// The world is reproducible: all of it that decides what happens is in Temporal components, which the hash of a frame
// covers, and changes by what systems do and by operations of windows, which a journal has. Products are
// rounded by a conversion, for else some processors add to them before they do.

// Position is where something is on the field. A component.
type Position struct{ X, Y float32 }

// Velocity is how something flies, in units a second. A component.
type Velocity struct{ X, Y float32 }

// Flight is what an arrow knows about itself. A component.
type Flight struct {
	Shooter handles.Local // may be dead by the time the arrow hits
	Left    float32       // seconds until the arrow falls
}

// Fighter is what a player is and has done. A component.
type Fighter struct {
	Name                  Name
	Health, Score, Deaths int32
}

// Name is what a player is called: without a pointer, so that it can be in a Temporal component.
type Name [maxName]byte

func nameOf(s string) (n Name) {
	copy(n[:], s)
	return n
}

// String is the name.
func (n Name) String() string { return string(bytes.TrimRight(n[:], "\x00")) }

// Player is the class of what a client plays.
type Player struct {
	Position Position
	Fighter  Fighter
}

// Arrow is the class of what players fire.
type Arrow struct {
	Position Position
	Velocity Velocity
	Flight   Flight
}

// Glow is how long something still shines, in seconds. A component.
type Glow struct{ Left float32 }

// Spark is the class of what flies where an arrow hits: nobody's state depends on it, and no hash has it.
type Spark struct {
	Position Position
	Glow     Glow
}

// step is a move that a client asked for.
type step struct {
	who    handles.Local
	dx, dy float32
}

// world is the game: classes, systems, and the data the systems keep from frame to frame.
// Everything here is owned by whoever owns the registry at the moment, Logic in a frame and
// the window's holder in a window, which are never two at once. What other goroutines may
// use as well says so.
type world struct {
	reg     *registry.Registry
	players *registry.Class[Player]
	arrows  *registry.Class[Arrow]
	sparks  *registry.Class[Spark]
	prefabs *pool.Prefabs
	places  *registry.Cells[Position]
	people  *registry.Cells[Fighter]
	flights *registry.Cells[Flight]
	speeds  *registry.Cells[Velocity]
	flying  *views.Query[flying]
	glowing *views.Query[glowing]
	bodies  *views.Query[bodies]
	engine  *logic.Engine
	lookout lookout    // any goroutine asks
	tally   *tally     // any goroutine counts and reads
	rng     *rand.Rand // where players appear; systems, which a replay runs again, have Frame.Rand
	targets []target   // of the frame, kept for its memory
}

type flying struct {
	Position []Position
	Velocity []Velocity
	Flight   []Flight
	ID       []handles.Local
}

type glowing struct {
	Glow []Glow
	ID   []handles.Local
}

type bodies struct {
	Position []Position `ecs:"read"`
	Fighter  []Fighter  `ecs:"read"`
	ID       []handles.Local
}

// newWorld registers what the game is made of with a registry.
func newWorld(reg *registry.Registry, t *tally, seed uint64) (*world, error) {
	w := &world{reg: reg, tally: t, rng: rand.New(rand.NewPCG(seed, 0))}
	var errs [14]error
	errs[0] = hashed[Position](reg)
	errs[1] = hashed[Velocity](reg)
	errs[2] = hashed[Flight](reg)
	errs[3] = hashed[Fighter](reg)
	w.players, errs[4] = registry.RegisterClass[Player](reg)
	w.arrows, errs[5] = registry.RegisterClass[Arrow](reg)
	w.sparks, errs[6] = registry.RegisterClass[Spark](reg, registry.Cosmetic())
	w.places, errs[7] = registry.NewCells[Position](reg)
	w.people, errs[8] = registry.NewCells[Fighter](reg)
	w.flights, errs[9] = registry.NewCells[Flight](reg)
	w.speeds, errs[10] = registry.NewCells[Velocity](reg)
	w.flying, errs[11] = views.NewQuery[flying](reg)
	w.glowing, errs[12] = views.NewQuery[glowing](reg)
	w.bodies, errs[13] = views.NewQuery[bodies](reg)
	return w, errors.Join(append(errs[:], w.definePrefabs(reg))...)
}

func hashed[C any](reg *registry.Registry) error {
	_, err := registry.RegisterComponent[C](reg, registry.InTier(archetype.Temporal))
	return err
}

// play registers the systems, before the first frame: of an engine that runs, or of a replay.
func (w *world) play(engine *logic.Engine) error {
	w.engine = engine
	_, err1 := engine.AddSystem(logic.Physics, "fly", w.fly)
	_, err2 := engine.AddSystem(logic.PostPhysics, "hit", w.hit)
	_, err3 := engine.AddSystem(logic.PostPhysics, "fade", w.fade)
	_, err4 := engine.AddSystem(logic.Late, "look", w.look)
	return errors.Join(err1, err2, err3, err4, w.tally.observe(w.reg))
}

// somewhere is a place on the field to appear at.
func somewhere(rng *rand.Rand) Position {
	return Position{float32(rng.Float32() * fieldSize), float32(rng.Float32() * fieldSize)}
}

// spawnPlayer runs in a window, on the goroutine of the connection that joins.
func (w *world) spawnPlayer(win *registry.Window, name string) (handles.Local, handles.Net, Position, error) {
	at := somewhere(w.rng)
	id, err := w.players.Spawn(win, Player{at, Fighter{Name: nameOf(name), Health: fullHealth}})
	if err != nil {
		return 0, 0, at, err
	}
	net, err := win.AssignNet(id)
	return id, net, at, err // an error undoes the spawn as well: the callback returns it
}

// spawnArrow runs in a window, on the goroutine of the connection that fires. dx and dy are
// finite and not both zero.
func (w *world) spawnArrow(win *registry.Window, shooter handles.Local, dx, dy float64) error {
	at, err := registry.Peek[Position](win, shooter)
	if err != nil {
		return err
	}
	far := math.Hypot(dx, dy) // may be so small that its inverse is infinite
	arrow, err := w.prefabs.Spawn(win, prefabArrow)
	if err != nil {
		return err
	}
	w.places.Set(win, arrow, at)
	w.speeds.Set(win, arrow, Velocity{float32(dx / far * arrowSpeed), float32(dy / far * arrowSpeed)})
	w.flights.Set(win, arrow, Flight{shooter, arrowLife})
	return w.readySparks(win)
}

// steer moves a player in the next window. Any goroutine.
func (w *world) steer(s step) error {
	return w.engine.Defer(func(win *registry.Window) error {
		if at, ok := w.places.Peek(win, s.who); ok { // false: the player left in the meantime
			w.places.Set(win, s.who, Position{at.X + s.dx, at.Y + s.dy}.onField())
		}
		return nil
	})
}

// fly moves the arrows and drops those that are too old or leave the field.
func (w *world) fly(f *logic.Frame) {
	dt := float32(f.Delta)
	for run := range w.flying.Runs(f) {
		at, v, flight, id := run.Position, run.Velocity, run.Flight, run.ID
		for i := range at {
			at[i].X += float32(v[i].X * dt)
			at[i].Y += float32(v[i].Y * dt)
			flight[i].Left -= dt
			if flight[i].Left <= 0 || at[i] != at[i].onField() {
				w.tally.check(f.Destroy(id[i]))
			}
		}
	}
}

// onField is the place on the field that is nearest to p.
func (p Position) onField() Position {
	return Position{min(max(p.X, 0), fieldSize), min(max(p.Y, 0), fieldSize)}
}

// target is a player as the arrows of one frame meet it.
type target struct {
	at Position
	id handles.Local
}

// hit lets each arrow wound one player, but its shooter, whose body this frame's flight touched.
func (w *world) hit(f *logic.Frame) {
	w.targets = w.targets[:0]
	for run := range w.bodies.Runs(f) {
		for i, at := range run.Position {
			w.targets = append(w.targets, target{at, run.ID[i]})
		}
	}
	dt := float32(f.Delta)
	for run := range w.flying.Runs(f) {
		for i, to := range run.Position {
			from := Position{to.X - float32(run.Velocity[i].X*dt), to.Y - float32(run.Velocity[i].Y*dt)}
			shooter := run.Flight[i].Shooter
			for _, t := range w.targets {
				if t.id != shooter && touches(t.at, from, to) {
					w.tally.check(f.Destroy(run.ID[i]))
					w.spark(f, t.at)
					w.wound(f, t.id, shooter)
					break
				}
			}
		}
	}
}

// spark lets a spark fly, if there is one left.
func (w *world) spark(f *logic.Frame, at Position) {
	spark, err := w.prefabs.SpawnNow(f.Frame, prefabSpark)
	switch {
	case err == nil:
		w.places.Set(f, spark, at)
		w.tally.spark()
	case !errors.Is(err, pool.ErrExhausted):
		w.tally.check(err)
	}
}

// fade lets sparks go out.
func (w *world) fade(f *logic.Frame) {
	dt := float32(f.Delta)
	for run := range w.glowing.Runs(f) {
		for i := range run.Glow {
			if run.Glow[i].Left -= dt; run.Glow[i].Left <= 0 {
				w.tally.check(f.Destroy(run.ID[i]))
				w.tally.fade()
			}
		}
	}
}

// touches says whether the way from from to to comes within bodyRadius of p.
func touches(p, from, to Position) bool {
	dx, dy := to.X-from.X, to.Y-from.Y
	t := (float32((p.X-from.X)*dx) + float32((p.Y-from.Y)*dy)) / max(float32(dx*dx)+float32(dy*dy), 1e-9)
	t = min(max(t, 0), 1)
	return distance2(p, Position{from.X + float32(t*dx), from.Y + float32(t*dy)}) <= bodyRadius*bodyRadius
}

func distance2(a, b Position) float32 {
	dx, dy := a.X-b.X, a.Y-b.Y
	return float32(dx*dx) + float32(dy*dy)
}

// wound takes one health from victim. A player without health scores for the shooter, if
// that one is still here, and appears again somewhere else.
func (w *world) wound(f *logic.Frame, victim, shooter handles.Local) {
	v, ok := w.people.Get(f, victim)
	if !ok {
		return // destroyed from outside since hit began
	}
	w.tally.hits.Inc()
	if v.Health--; v.Health > 0 {
		return
	}
	w.tally.kills.Inc()
	v.Health = fullHealth
	v.Deaths++
	if at, ok := w.places.Get(f, victim); ok {
		*at = somewhere(f.Rand())
	}
	if s, ok := w.people.Get(f, shooter); ok {
		s.Score++
	}
}
