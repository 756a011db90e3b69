package arena

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/airlock-ecs/airlock/logic"
)

const statusEvery = time.Second

// reading is what a status line compares with the reading before.
type reading struct {
	at                 time.Time
	engine             logic.Stats
	spawned, destroyed int64
}

func (s *Server) read() *reading {
	return &reading{time.Now(), s.engine.Stats(), s.tally.spawned.Load(), s.tally.destroyed.Load()}
}

// watch says where the server is and prints its status lines, until ctx ends, which is no
// error, or Logic does, which is one.
func (s *Server) watch(ctx context.Context, logicEnded <-chan error) error {
	host, port, err := net.SplitHostPort(s.Addr().String())
	s.tally.check(err)
	s.log.Printf("arena: %d frames a second, %d bots; to play, type in another terminal: nc %s %s", s.cfg.Rate, s.cfg.Bots, host, port)
	if s.page != nil {
		s.log.Printf("inspect: http://%s/ shows the registry while this runs", s.page.Addr())
	}
	s.log.Print("times are p50/p99 since the line before; stall is how long Logic stood still in a window that had callers; pools are in use/places")
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for last := s.read(); ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-logicEnded:
			return errors.Join(errors.New("arena: Logic ended before the server was stopped"), err)
		case <-tick.C:
			now := s.read()
			s.log.Print(s.status(last, now))
			last = now
		}
	}
}

// status is one line. Frame, live, pending and pools are of this moment.
func (s *Server) status(last, now *reading) string {
	gauges, seconds := s.reg.Stats(), now.at.Sub(last.at).Seconds()
	return fmt.Sprintf("frame %d | frame time %s | live %d | spawns %.0f/s destroys %.0f/s | handshake wait %s | stall %s | pending local %d net %d | pools%s",
		s.engine.FrameNumber(), quantiles(now.engine.FrameTime.Since(&last.engine.FrameTime)), gauges.Live,
		float64(now.spawned-last.spawned)/seconds, float64(now.destroyed-last.destroyed)/seconds,
		quantiles(now.engine.HandshakeWait.Since(&last.engine.HandshakeWait)),
		quantiles(now.engine.WindowStall.Since(&last.engine.WindowStall)),
		gauges.Local.Pending, gauges.Net.Pending, s.world.poolsLine())
}

// quantiles writes p50/p99; a dash says that nothing was measured.
func quantiles(h logic.Histogram) string {
	if h.Count == 0 {
		return "-"
	}
	return short(h.Quantile(0.5)) + "/" + short(h.Quantile(0.99))
}

// short keeps as many digits as a histogram has.
func short(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.0fµs", d.Seconds()*1e6)
	}
	return fmt.Sprintf("%.1fms", d.Seconds()*1e3)
}
