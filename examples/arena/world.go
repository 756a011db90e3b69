package arena

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
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
)

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
	Name                  string
	Health, Score, Deaths int32
}

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
	places  *registry.Cells[Position]
	people  *registry.Cells[Fighter]
	flying  *views.Query[flying]
	bodies  *views.Query[bodies]
	steps   *logic.Inbox[step] // any goroutine sends
	lookout lookout            // any goroutine asks
	tally   *tally             // any goroutine counts and reads
	rng     *rand.Rand         // where players appear
	targets []target           // of the frame, kept for its memory
}

type flying struct {
	Position []Position
	Velocity []Velocity
	Flight   []Flight
	ID       []handles.Local
}

type bodies struct {
	Position []Position `ecs:"read"`
	Fighter  []Fighter  `ecs:"read"`
	ID       []handles.Local
}

// newWorld registers the game with a registry and its engine, before the first frame.
func newWorld(reg *registry.Registry, engine *logic.Engine, t *tally, seed uint64) (*world, error) {
	w := &world{reg: reg, tally: t, rng: rand.New(rand.NewPCG(seed, 0))}
	var errs [11]error
	w.players, errs[0] = registry.RegisterClass[Player](reg)
	w.arrows, errs[1] = registry.RegisterClass[Arrow](reg)
	w.places, errs[2] = registry.NewCells[Position](reg)
	w.people, errs[3] = registry.NewCells[Fighter](reg)
	w.flying, errs[4] = views.NewQuery[flying](reg)
	w.bodies, errs[5] = views.NewQuery[bodies](reg)
	w.steps, errs[6] = logic.NewInbox[step](engine, 4096)
	_, errs[7] = engine.AddSystem(logic.PrePhysics, "step", w.step)
	_, errs[8] = engine.AddSystem(logic.Physics, "fly", w.fly)
	_, errs[9] = engine.AddSystem(logic.PostPhysics, "hit", w.hit)
	_, errs[10] = engine.AddSystem(logic.Late, "look", w.look)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return w, t.observe(reg)
}

// somewhere is a place on the field to appear at.
func (w *world) somewhere() Position {
	return Position{w.rng.Float32() * fieldSize, w.rng.Float32() * fieldSize}
}

// spawnPlayer runs in a window, on the goroutine of the connection that joins.
func (w *world) spawnPlayer(win *registry.Window, name string) (handles.Local, handles.Net, Position, error) {
	at := w.somewhere()
	id, err := w.players.Spawn(win, Player{at, Fighter{Name: name, Health: fullHealth}})
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
	_, err = w.arrows.Spawn(win, Arrow{at, Velocity{float32(dx / far * arrowSpeed), float32(dy / far * arrowSpeed)}, Flight{shooter, arrowLife}})
	return err
}

// step moves the players whose clients asked for it since the last frame.
func (w *world) step(f *logic.Frame) {
	for _, s := range w.steps.Drain(f.Frame) {
		if at, ok := w.places.Get(f, s.who); ok { // false: the player left in the meantime
			*at = Position{at.X + s.dx, at.Y + s.dy}.onField()
		}
	}
}

// fly moves the arrows and drops those that are too old or leave the field.
func (w *world) fly(f *logic.Frame) {
	dt := float32(f.Delta)
	for run := range w.flying.Runs(f) {
		at, v, flight, id := run.Position, run.Velocity, run.Flight, run.ID
		for i := range at {
			at[i].X += v[i].X * dt
			at[i].Y += v[i].Y * dt
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
			from := Position{to.X - run.Velocity[i].X*dt, to.Y - run.Velocity[i].Y*dt}
			shooter := run.Flight[i].Shooter
			for _, t := range w.targets {
				if t.id != shooter && touches(t.at, from, to) {
					w.tally.check(f.Destroy(run.ID[i]))
					w.wound(f, t.id, shooter)
					break
				}
			}
		}
	}
}

// touches says whether the way from from to to comes within bodyRadius of p.
func touches(p, from, to Position) bool {
	dx, dy := to.X-from.X, to.Y-from.Y
	t := ((p.X-from.X)*dx + (p.Y-from.Y)*dy) / max(dx*dx+dy*dy, 1e-9)
	t = min(max(t, 0), 1)
	return distance2(p, Position{from.X + t*dx, from.Y + t*dy}) <= bodyRadius*bodyRadius
}

func distance2(a, b Position) float32 {
	dx, dy := a.X-b.X, a.Y-b.Y
	return dx*dx + dy*dy
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
		*at = w.somewhere()
	}
	if s, ok := w.people.Get(f, shooter); ok {
		s.Score++
	}
}
