package inspect

import (
	"sync"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

const (
	collectEvery = 100 * time.Millisecond // on the average, however many ask
	collectBurst = 10                     // after a rest that many may follow each other, so that who asks once gets the present
	recently     = time.Second            // what quantiles are of
)

// collector takes the figures of an engine, at most some ten times a second. Everybody gets the same readings.
type collector struct {
	e       *logic.Engine
	sources []pool.Source
	actions bool

	mu      sync.Mutex // guards what follows; no callback of the engine runs under it, so nobody holds it for long
	last    *reading
	past    []*reading // of the last second, oldest first
	budget  float64    // readings that may be taken
	filled  time.Time  // when budget was what it says
	shapes  map[*archetype.Archetype]shape
	points  points
	pointed *reading // that the last point ends with
}

// reading is all that was taken at one time. It does not change.
type reading struct {
	at      time.Time
	engine  logic.Stats
	doing   logic.Doing
	reg     registry.Stats
	claimed uint64 // see Registry.Lives
	ended   uint64
	pools   []poolRow
	systems []*logic.System
	figures figures
	message *message      // of figures
	metrics func() []byte // made by the first who asks
}

func newCollector(e *logic.Engine, c Config) *collector {
	return &collector{
		e: e, sources: c.Pools, actions: c.Token != "",
		budget: collectBurst, filled: time.Now(), shapes: map[*archetype.Archetype]shape{},
	}
}

// latest is the newest reading: one of now, if there may be one.
func (c *collector) latest() *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.budget = min(collectBurst, c.budget+now.Sub(c.filled).Seconds()/collectEvery.Seconds())
	c.filled = now
	if c.last != nil && c.budget < 1 {
		return c.last
	}
	c.budget = max(c.budget-1, 0)
	return c.takeLocked(now)
}

// takeLocked takes a reading.
func (c *collector) takeLocked(now time.Time) *reading {
	n := &reading{
		at: now, doing: c.e.Doing(), engine: c.e.Stats(), reg: c.e.Registry().Stats(),
		pools: poolRows(c.sources), systems: c.e.Systems(),
	}
	n.claimed, n.ended = c.e.Registry().Lives()
	for len(c.past) > 1 && now.Sub(c.past[1].at) >= recently {
		c.past = c.past[1:]
	}
	earlier := n
	if len(c.past) > 0 {
		earlier = c.past[0]
	}
	if len(c.past) == 0 || now.Sub(c.past[len(c.past)-1].at) >= collectEvery {
		c.past = append(c.past, n)
	}
	n.figures = c.figuresOf(n, earlier)
	n.message = newMessage("stats", &n.figures, c.like())
	n.metrics = sync.OnceValue(func() []byte { return metricsOf(n) })
	c.last = n
	return n
}

// like is the last message, which the next will be about as long as.
func (c *collector) like() *message {
	if c.last == nil {
		return nil
	}
	return c.last.message
}

// collect keeps the past for the charts until the engine ends or the handler is closed.
func (h *Handler) collect() {
	defer close(h.collected)
	tick := time.NewTicker(pointEvery)
	defer tick.Stop()
	for {
		h.figures.point(pointEvery / 2)
		select {
		case <-tick.C:
		case <-h.engine.Done():
			h.figures.point(0)
			return
		case <-h.closed:
			return
		}
	}
}
