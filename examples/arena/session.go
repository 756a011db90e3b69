package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

const (
	welcome  = "ok airlock arena: " + usage
	rules    = "ok the field is 200 by 200, an arrow flies up to 150, three hits kill: " + usage
	stopping = "bye, the server is stopping"
)

// limits keep clients from holding the server up.
type limits struct {
	clients  int           // connections at a time
	idle     time.Duration // without a whole line
	write    time.Duration // until a client has taken an answer
	farewell time.Duration // until it has taken the last line
	spawn    time.Duration // wait for the handshake
}

// session is one connection. All of it belongs to the connection's goroutine.
type session struct {
	srv    *Server
	conn   net.Conn
	player handles.Local // zero before join
}

// serve answers line after line until the client leaves or the server stops, and takes the
// player out of the world on every way out.
func (s *session) serve(ctx context.Context) {
	defer s.conn.Close()
	defer s.leave()
	// Wakes the read when the server stops. The loop sets its own deadline first and looks at
	// ctx after, so one side always sees the other. A write is not woken: it has its deadline,
	// and a client that is being told goodbye should get the line.
	defer context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Unix(1, 0)) })()

	in := newLineReader(s.conn)
	more := s.say(ctx, welcome)
	for more {
		s.conn.SetReadDeadline(time.Now().Add(s.srv.limits.idle))
		err := ctx.Err()
		var line []byte
		if err == nil {
			line, err = in.next()
		}
		var answer string
		switch {
		case err == nil:
			answer, more = s.obey(ctx, line)
		case errors.Is(err, errLineTooLong):
			answer = "error: " + err.Error()
		case ctx.Err() != nil:
			answer, more = stopping, false
		case errors.Is(err, os.ErrDeadlineExceeded):
			answer, more = fmt.Sprintf("bye, no whole line came for %v", s.srv.limits.idle), false
		default:
			return // the client is gone
		}
		more = s.say(ctx, answer) && more
	}
}

// say sends a line, and reports whether the client took it in time.
func (s *session) say(ctx context.Context, text string) bool {
	s.conn.SetWriteDeadline(time.Now().Add(s.srv.limits.write))
	if ctx.Err() != nil {
		s.conn.SetWriteDeadline(time.Now().Add(s.srv.limits.farewell))
	}
	_, err := io.WriteString(s.conn, text+"\n")
	return err == nil
}

// obey carries one line out. It returns the answer, and whether the conversation goes on.
func (s *session) obey(ctx context.Context, line []byte) (answer string, more bool) {
	c, err := parseLine(line)
	if err != nil {
		return "error: " + err.Error(), true
	}
	ctx, cancel := context.WithTimeout(ctx, s.srv.limits.spawn)
	defer cancel()
	switch outside := s.player.IsZero(); {
	case c.verb == "quit":
		return "bye", false
	case c.verb == "help":
		return rules, true
	case c.verb == "look":
		answer, err = s.look(ctx)
	case c.verb == "join" && outside:
		answer, err = s.join(ctx, c.name)
	case c.verb == "join":
		return "error: you are in the arena already", true
	case outside:
		return "error: you are not in the arena yet, try join NAME", true
	case c.verb == "fire":
		answer, err = s.fire(ctx, c)
	case c.verb == "move":
		answer, err = s.move(c)
	}
	switch {
	case err == nil:
		return answer, true
	case errors.Is(err, logic.ErrStopped), errors.Is(err, context.Canceled):
		return stopping, false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, logic.ErrQueueFull):
		return "error: the arena is too busy, try again", true
	case errors.Is(err, registry.ErrExhausted):
		return "error: the arena is full, try again", true
	case s.taken(err):
		s.player = 0
		return "error: somebody has taken you out of the arena, join NAME again", true
	}
	s.srv.tally.check(err)
	return "error: the server failed to do that", true
}

// join spawns the player: the function given to Spawn runs on this goroutine while Logic
// waits, and leaves nothing behind if it fails.
func (s *session) join(ctx context.Context, name string) (string, error) {
	var id handles.Local
	var net handles.Net
	var at Position
	err := s.srv.engine.Spawn(ctx, func(w *registry.Window) (err error) {
		id, net, at, err = s.srv.world.spawnPlayer(w, name)
		return err
	})
	if err != nil {
		return "", err
	}
	s.player = id
	s.srv.tally.joined.Inc()
	return fmt.Sprintf("ok %s is %v, at %.1f %.1f", name, net, at.X, at.Y), nil
}

func (s *session) fire(ctx context.Context, c command) (string, error) {
	err := s.srv.engine.Spawn(ctx, func(w *registry.Window) error {
		return s.srv.world.spawnArrow(w, s.player, c.dx, c.dy)
	})
	if err != nil {
		return "", err
	}
	s.srv.tally.fired.Inc()
	return "ok", nil
}

func (s *session) move(c command) (string, error) {
	scale := min(1, longestStep/math.Hypot(c.dx, c.dy))
	return "ok", s.srv.world.steer(step{s.player, float32(c.dx * scale), float32(c.dy * scale)})
}

func (s *session) look(ctx context.Context) (string, error) {
	seen, err := s.srv.world.lookout.look(ctx)
	if err != nil {
		return "", err
	}
	return seen.describe(s.player), nil
}

// leave ends the player. It needs no window: any goroutine may destroy.
func (s *session) leave() {
	if s.player.IsZero() {
		return
	}
	if err := s.srv.reg.Destroy(s.player); !s.taken(err) {
		s.srv.tally.check(err)
	}
}

// taken says whether an error is that the player is dead, as only who has the token of the page can bring about.
func (s *session) taken(err error) bool {
	return s.srv.cfg.InspectToken != "" && errors.Is(err, registry.ErrStale)
}
