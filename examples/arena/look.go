package arena

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
)

// nearest is how many other players one look shows.
const nearest = 10

// scene is what look shows of one frame. Logic writes it before it closes done; after that
// nobody does, so any number of goroutines may read it.
type scene struct {
	done    chan struct{}
	frame   uint64
	arrows  int
	players []sighting
}

type sighting struct {
	id  handles.Local
	net handles.Net
	at  Position
	Fighter
}

// lookout holds the scene that somebody waits for, nil when nobody does. The first client to
// ask puts an empty one in; Logic takes it out at the end of the frame and fills it, for all
// who asked in that frame.
type lookout struct{ asked atomic.Pointer[scene] }

// look waits for the end of a frame that ends after the call. Any goroutine.
func (l *lookout) look(ctx context.Context) (*scene, error) {
	s := l.asked.Load()
	for s == nil {
		l.asked.CompareAndSwap(nil, &scene{done: make(chan struct{})}) // if not ours, then another's
		s = l.asked.Load()
	}
	select {
	case <-s.done:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look is the last system of a frame. Without a client that asked it is one atomic load.
func (w *world) look(f *logic.Frame) {
	if w.lookout.asked.Load() == nil {
		return
	}
	s := w.lookout.asked.Swap(nil)
	s.frame, s.arrows = f.FrameNumber(), w.flying.Count(f)
	for run := range w.bodies.Runs(f) {
		for i, id := range run.ID {
			if net, err := w.reg.NetOf(id); err == nil { // else its client left during this frame
				s.players = append(s.players, sighting{id, net, run.Position[i], run.Fighter[i]})
			}
		}
	}
	close(s.done)
}

// describe is the answer to look: how many lines follow, the client's own player, then the
// nearest others with the numbers to fire at them. Who hasn't joined looks from the middle.
func (s *scene) describe(me handles.Local) string {
	from := Position{fieldSize / 2, fieldSize / 2}
	others := slices.Clone(s.players)
	var lines []string
	if i := slices.IndexFunc(others, func(p sighting) bool { return p.id == me }); i >= 0 {
		from = others[i].at
		lines = append(lines, "you    "+others[i].String())
		others = slices.Delete(others, i, i+1)
	}
	slices.SortFunc(others, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(distance2(a.at, from), distance2(b.at, from)), cmp.Compare(a.net, b.net))
	})
	for _, p := range others[:min(len(others), nearest)] {
		lines = append(lines, fmt.Sprintf("player %v  fire %.1f %.1f", p, p.at.X-from.X, p.at.Y-from.Y))
	}
	head := fmt.Sprintf("ok frame %d, %d players, %d arrows, %d lines follow", s.frame, len(s.players), s.arrows, len(lines))
	return strings.Join(append([]string{head}, lines...), "\n")
}

func (p sighting) String() string {
	return fmt.Sprintf("%-9v %-*s at %5.1f %5.1f  health %d  score %d  deaths %d",
		p.net, maxName, p.Name, p.at.X, p.at.Y, p.Health, p.Score, p.Deaths)
}
