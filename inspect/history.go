package inspect

import (
	"time"

	"github.com/airlock-ecs/airlock/logic"
)

const (
	pointEvery = 500 * time.Millisecond
	pointsKept = int(2 * time.Minute / pointEvery)
)

// point is what happened in one stretch of the charts, with Number rising by one from stretch to stretch.
type point struct {
	Number  uint64
	AtMilli int64 // when it ended, since 1970
	Frame   uint64
	Live    int

	FrameP50Nanos, FrameP99Nanos int64
	WaitP50Nanos, WaitP99Nanos   int64
	StallP50Nanos, StallP99Nanos int64

	// A second.
	Frames, Spawns, Destroys, PublishSkips float64
}

// points are the last two minutes.
type points struct {
	kept   []point  // oldest first
	number uint64   // of the last one
	newest *message // the last one alone, as all streams get it that have those before
	all    *message // made by the first who asks
}

// point ends the present stretch, if it has lasted for as long as it should: a tick that comes late is followed by one that
// comes early, and what one frame in a millisecond is in a second says nothing.
func (c *collector) point(least time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, at := c.pointed, time.Now()
	if before != nil && at.Sub(before.at) <= least {
		return
	}
	now := c.takeLocked(at)
	if before != nil {
		c.points.add(pointOf(before, now))
	}
	c.pointed = now
}

func (p *points) add(next point) {
	p.number++
	next.Number = p.number
	if len(p.kept) == pointsKept {
		copy(p.kept, p.kept[1:])
		p.kept = p.kept[:pointsKept-1]
	}
	p.kept = append(p.kept, next)
	p.newest, p.all = newMessage("points", p.kept[len(p.kept)-1:], nil), nil
}

// pointsFrom gives the points whose number is above after, oldest first, and the number of the last; nil if there are none.
func (c *collector) pointsFrom(after uint64) (*message, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.points
	switch have := uint64(len(p.kept)); {
	case after >= p.number:
		return nil, after
	case after == p.number-1:
		return p.newest, p.number
	case after <= p.number-have:
		return c.historyLocked(), p.number
	default: // a stream that is behind
		return newMessage("points", p.kept[have-(p.number-after):], nil), p.number
	}
}

// history is all points.
func (c *collector) history() *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.historyLocked()
}

func (c *collector) historyLocked() *message {
	if c.points.all == nil {
		c.points.all = newMessage("points", append([]point{}, c.points.kept...), nil)
	}
	return c.points.all
}

func pointOf(before, now *reading) point {
	seconds := now.at.Sub(before.at).Seconds()
	rate := func(a, b uint64) float64 { return float64(b-min(a, b)) / seconds }
	p := point{
		AtMilli:      now.at.UnixMilli(),
		Frame:        now.reg.Frame,
		Live:         now.reg.Live,
		Frames:       rate(before.engine.Frames, now.engine.Frames),
		Spawns:       rate(before.claimed, now.claimed),
		Destroys:     rate(before.ended, now.ended),
		PublishSkips: rate(before.engine.PublishSkips, now.engine.PublishSkips),
	}
	p.FrameP50Nanos, p.FrameP99Nanos = quantiles(&now.engine.FrameTime, &before.engine.FrameTime)
	p.WaitP50Nanos, p.WaitP99Nanos = quantiles(&now.engine.HandshakeWait, &before.engine.HandshakeWait)
	p.StallP50Nanos, p.StallP99Nanos = quantiles(&now.engine.WindowStall, &before.engine.WindowStall)
	return p
}

func quantiles(now, before *logic.Histogram) (p50, p99 int64) {
	h := now.Since(before)
	return int64(h.Quantile(0.5)), int64(h.Quantile(0.99))
}
