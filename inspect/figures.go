package inspect

import (
	"fmt"
	"time"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// heldAfter is how long somebody's code keeps Logic before the page says so: more than any frame should take.
const heldAfter = 250 * time.Millisecond

// figures is /stats.json, and what the page shows. Names of counters are those of the packages they come from.
type figures struct {
	Taken       time.Time
	State       string // see stateOf
	Held        *held  `json:",omitempty"`
	Actions     bool   // whether there are any
	Declares    bool   // whether a pool can be declared
	Frame       uint64
	Rate        int
	BudgetNanos int64 // that a frame has at that rate

	Engine   engineFigures
	Registry registryFigures
	Spaces   []spaceFigures
	Pools    []poolRow
	Systems  []systemRow

	PoolsLeft, SystemsLeft int // that the tables have no room for
}

// held says who keeps Logic.
type held struct {
	By       string
	Since    time.Time
	ForNanos int64
	Stacks   string `json:",omitempty"`
}

// engineFigures are the engine's statistics, with quantiles of the last second in the place of the histograms.
type engineFigures struct {
	logic.Stats
	FrameTime, HandshakeWait, WindowStall times
}

type times struct {
	Count    uint64 // of all time
	P50Nanos int64  // of the last second
	P99Nanos int64
	MaxNanos int64 // of all time
}

// registryFigures are the registry's statistics, with rows that say more of the archetypes.
type registryFigures struct {
	registry.Stats
	Archetypes     []archetypeRow
	ArchetypesLeft int // that the table has no room for
}

// spaceFigures are a handle space.
type spaceFigures struct {
	Space string
	registry.SpaceStats
	AgeFrames uint64 // of the oldest pending
	HeldBy    string // what it waits for
}

type systemRow struct{ Phase, Name string }

// poolRow is a pool. Its counters add up: InUse + Free = Cap.
type poolRow struct {
	Source                                                int // place in Config.Pools
	Name                                                  string
	Cap, InUse, Free, Peak, Built, Refused, Grown, Leaked int
	Max                                                   int
	Grow, GrowShort                                       string
	Warm, Fixed, AtCap                                    bool
}

// figuresOf makes figures of a reading; quantiles are of what happened since an earlier one.
func (c *collector) figuresOf(n, earlier *reading) figures {
	f := figures{
		Taken: n.at, State: stateOf(n), Actions: c.actions, Declares: declarerOf(c.sources) != nil, Frame: n.reg.Frame,
		Rate: c.e.Rate(), BudgetNanos: int64(time.Second) / int64(c.e.Rate()),
		Engine: engineFigures{
			Stats:         n.engine,
			FrameTime:     timesOf(&n.engine.FrameTime, &earlier.engine.FrameTime),
			HandshakeWait: timesOf(&n.engine.HandshakeWait, &earlier.engine.HandshakeWait),
			WindowStall:   timesOf(&n.engine.WindowStall, &earlier.engine.WindowStall),
		},
		Registry: registryFigures{Stats: n.reg},
		Spaces:   spacesOf(n),
		Pools:    n.pools,
		Systems:  []systemRow{},
	}
	f.Registry.Archetypes, f.Registry.ArchetypesLeft = c.archetypeRows(n.reg.Archetypes)
	if len(f.Pools) > mostRows {
		f.Pools, f.PoolsLeft = f.Pools[:mostRows], len(f.Pools)-mostRows
	}
	for i, s := range n.systems {
		if i == mostRows {
			f.SystemsLeft = len(n.systems) - i
			break
		}
		f.Systems = append(f.Systems, systemRow{s.Phase().String(), s.Name()})
	}
	if n.doing.For >= heldAfter {
		f.Held = &held{By: n.doing.What, Since: n.at.Add(-n.doing.For), ForNanos: int64(n.doing.For), Stacks: n.doing.Stacks}
	}
	return f
}

// stateOf says in a word or two what the engine does.
func stateOf(n *reading) string {
	switch d := n.doing; {
	case d.Mode == logic.Stopped:
		return "stopped"
	case d.For >= heldAfter:
		return "held"
	case d.Mode == logic.Idle && n.engine.Frames == 0:
		return "not started"
	case d.Mode == logic.Running && d.Paused:
		return "paused"
	default:
		return d.Mode.String()
	}
}

func timesOf(now, earlier *logic.Histogram) times {
	t := times{Count: now.Count, MaxNanos: int64(now.Max)}
	t.P50Nanos, t.P99Nanos = quantiles(now, earlier)
	return t
}

// spacesOf says of each handle space how old its oldest pending index is, and what that waits for.
func spacesOf(n *reading) []spaceFigures {
	list := []spaceFigures{
		{Space: "Global", SpaceStats: n.reg.Global}, {Space: "Local", SpaceStats: n.reg.Local}, {Space: "Net", SpaceStats: n.reg.Net},
	}
	for i := range list {
		s := &list[i]
		if s.Pending == 0 {
			continue
		}
		s.AgeFrames = n.reg.Frame - min(s.OldestPending, n.reg.Frame)
		switch {
		case s.Space != "Net":
			s.HeldBy = "its window of frames, or a confirm"
		case n.engine.Peers == 0:
			s.HeldBy = "its window of frames, or a confirm: no peer was added"
		case n.engine.SlowestAck >= s.OldestPending:
			s.HeldBy = "nobody: the next frame confirms it"
		default:
			s.HeldBy = fmt.Sprintf("peer %d, which has acknowledged frame %d", n.engine.SlowestPeer, n.engine.SlowestAck)
		}
	}
	return list
}

// poolRows asks every source. One that panics is a stranger's, and shows nothing.
func poolRows(sources []pool.Source) []poolRow {
	rows := []poolRow{}
	for i, source := range sources {
		rows = appendPools(rows, i, source)
	}
	return rows
}

func appendPools(rows []poolRow, i int, source pool.Source) (all []poolRow) {
	all = rows
	defer func() {
		if recover() != nil {
			all = rows
		}
	}()
	if source == nil {
		return all
	}
	for name, s := range source.Pools() {
		all = append(all, poolRow{
			Source: i, Name: name, Cap: s.Cap, InUse: s.InUse, Free: s.Free, Peak: s.Peak, Built: s.Built, Refused: s.Refused,
			Grown: s.Grown, Leaked: s.Leaked, Max: s.Max, Grow: s.Grow.String(), GrowShort: s.Grow.Short(), Warm: s.Warm,
			Fixed: s.Grow == pool.Fixed(), AtCap: s.InUse >= s.Cap,
		})
	}
	return all
}
