package arena

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/pool"
)

// checkInspect finds out whether the page may be where it is to be.
func (c Config) checkInspect() error {
	if c.Inspect == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Inspect)
	if err != nil || port == "" {
		return &refusal{ErrConfig, fmt.Sprintf("the address of the page must be like 127.0.0.1:8080, not %q", c.Inspect)}
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "localhost", err == nil && addr.IsLoopback():
		return nil
	case !c.InspectRemote:
		return &refusal{ErrConfig, fmt.Sprintf("the page is for this machine: %s is not loopback, and would need --inspect-remote and a token", c.Inspect)}
	case c.InspectToken == "":
		return &refusal{ErrConfig, fmt.Sprintf("a page that others can reach needs a token: %s is not loopback", c.Inspect)}
	}
	return nil
}

// listenInspect listens for the page, nil if there is none.
func listenInspect(addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &refusal{ErrInspectInUse, "another program listens on " + addr}
	}
	if err != nil {
		return nil, &refusal{ErrConfig, fmt.Sprintf("the page cannot be at %s: %v", addr, err)}
	}
	return l, nil
}

// showPage serves the page until ctx ends.
func (s *Server) showPage(ctx context.Context) {
	if s.page == nil {
		return
	}
	page := inspect.New(s.engine, inspect.Config{
		Pools: []pool.Source{s.world.prefabs}, Token: s.cfg.InspectToken, Remote: s.cfg.InspectRemote,
	})
	if err := page.Serve(ctx, s.page); err != nil {
		s.log.Print("the page is gone: ", err)
	}
}

func (s *Server) closePage() {
	if s.page != nil {
		s.page.Close()
	}
}

// PageAddr is where the page is, with the port that was picked; nil if there is none.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Server) PageAddr() net.Addr {
	if s.page == nil {
		return nil
	}
	return s.page.Addr()
}
