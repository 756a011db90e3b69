package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

const (
	maxEntities = 1 << 16 // bounds what clients can make the server hold
	visitors    = 64      // connections beside the bots'
	// acceptRetry is the pause after an accept that failed, as for lack of file descriptors.
	acceptRetry = 100 * time.Millisecond
	// shutdownLimit bounds the wait for Logic when the server stops.
	shutdownLimit = 5 * time.Second
)

// Server is the arena. New makes one, Run runs it once.
type Server struct {
	cfg      Config
	limits   limits
	log      *log.Logger // its own lock keeps lines whole
	listener net.Listener
	page     net.Listener // of package inspect, nil for none
	reg      *registry.Registry
	engine   *logic.Engine
	world    *world
	tally    tally
	started  atomic.Bool
}

// New validates cfg, listens on the loopback port, and builds the world. Nothing runs yet.
//
// Errors: ErrConfig, ErrPortInUse, ErrInspectInUse, ErrJournalExists; a *pool.FileError.
// Concurrency: any goroutine. Allocates: the server.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:    cfg,
		limits: limits{clients: cfg.Bots + visitors, idle: 5 * time.Minute, write: 2 * time.Second, farewell: 200 * time.Millisecond, spawn: 5 * time.Second},
		log:    log.New(cfg.Out, "", 0),
	}
	if s.listener, err = listen(cfg.Port); err != nil {
		return nil, err
	}
	if s.page, err = listenInspect(cfg.Inspect); err != nil {
		s.listener.Close()
		return nil, err
	}
	if err := s.build(); err != nil {
		s.closePage()
		if errors.Is(err, ErrJournalExists) || errors.Is(err, ErrConfig) || errors.Is(err, pool.ErrFile) {
			s.listener.Close() // the error is that of a file
			return nil, err
		}
		return nil, errors.Join(fmt.Errorf("arena: %w", err), s.listener.Close())
	}
	return s, nil
}

func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &refusal{ErrPortInUse, fmt.Sprintf("another program listens on 127.0.0.1:%d", port)}
	}
	if err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	return l, nil
}

func (s *Server) build() (err error) {
	if s.reg, err = newRegistry(); err != nil {
		return err
	}
	if s.world, err = newWorld(s.reg, &s.tally, s.cfg.Seed); err != nil {
		return err
	}
	if err := s.world.declarePools(s.cfg.Pools); err != nil {
		return err
	}
	s.engine, err = logic.New(s.reg, logic.Config{
		Rate:      s.cfg.Rate,
		NetWindow: s.cfg.Rate, // a player's net handle comes back into use after a second
		OnError:   s.tally.check,
		Flight:    s.cfg.Flight,
	})
	if err != nil {
		return err
	}
	if s.cfg.Journal != "" {
		if err := s.engine.Journal(s.cfg.Journal); err != nil {
			s.engine.Stop()
			if errors.Is(err, fs.ErrExist) {
				return &refusal{ErrJournalExists, fmt.Sprintf("there is a journal in %s already", s.cfg.Journal)}
			}
			return err
		}
	}
	return s.world.play(s.engine)
}

// newRegistry makes the registry of an arena: deterministic, so that a journal of it can be done again.
func newRegistry() (*registry.Registry, error) {
	return registry.New(registry.Config{MaxEntities: maxEntities, Deterministic: true})
}

// Addr is where the server listens, with the port that was picked.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close gives the ports back. Only a server that is not going to Run needs it.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Server) Close() error {
	s.closePage()
	return s.listener.Close()
}

// Run serves until ctx ends, then ends everything it started and returns what the server
// did. The error is nil if the totals add up and nothing failed on the way. A second Run is
// an error.
//
// Concurrency: any goroutine; returns when every goroutine of the server has ended.
func (s *Server) Run(ctx context.Context) (Totals, error) {
	if !s.started.CompareAndSwap(false, true) {
		return Totals{}, errors.New("arena: a server runs only once")
	}
	began := time.Now()
	logicEnded := make(chan error, 1)
	// Not ctx: Logic has to outlive the connections, to bury their players.
	go func() { logicEnded <- s.engine.Run(context.Background()) }()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { s.accept(ctx, &all) })
	all.Go(func() { s.showPage(ctx) })
	for i := range s.cfg.Bots {
		b := &bot{name: fmt.Sprintf("bot-%02d", i), addr: s.Addr().String(), rng: rand.New(rand.NewPCG(s.cfg.Seed, uint64(i)+1))}
		all.Go(func() { b.play(ctx) })
	}
	err := s.watch(ctx, logicEnded)
	s.log.Print("stopping: no more clients, waiting for those that are connected")
	stop()
	s.listener.Close() // wakes accept
	all.Wait()
	if err == nil {
		err = s.endLogic(logicEnded)
	}
	sum, wrong := s.tally.audit(s.reg, s.engine.Stats().Frames, time.Since(began))
	s.log.Print("totals: ", sum)
	return sum, errors.Join(err, wrong)
}

// accept gives each connection a goroutine of its own until the listener is closed.
func (s *Server) accept(ctx context.Context, all *sync.WaitGroup) {
	room := make(chan struct{}, s.limits.clients)
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.log.Print("a client could not be accepted: ", err)
			select {
			case <-time.After(acceptRetry):
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case room <- struct{}{}:
			all.Go(func() {
				defer func() { <-room }()
				(&session{srv: s, conn: conn}).serve(ctx)
			})
		default: // a line fits the buffer of a fresh connection: this does not wait
			io.WriteString(conn, "error: no more clients fit in, try again later\n")
			conn.Close()
		}
	}
}

// endLogic runs a last frame and stops the engine.
func (s *Server) endLogic(ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	// A window hears of the deaths from outside, so after this empty one observers know all.
	err := s.engine.Spawn(ctx, func(*registry.Window) error { return nil })
	if err := errors.Join(err, s.engine.Shutdown(ctx)); err != nil {
		return fmt.Errorf("arena: Logic did not stop cleanly: %w", err)
	}
	return <-ended
}
