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
	kept   []point // oldest first
	number uint64  // of the last one
}

// point ends the present stretch.
func (c *collector) point() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.takeLocked(time.Now())
	if before := c.pointed; before != nil && now.at.After(before.at) {
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
}

// pointsFrom gives the points whose number is above after, oldest first.
func (c *collector) pointsFrom(after uint64) []point {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := uint64(len(c.points.kept))
	first := c.points.number - have // of those that were dropped, the last
	if after > first {
		have -= min(after-first, have)
	}
	return append([]point{}, c.points.kept[uint64(len(c.points.kept))-have:]...)
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
