package inspect

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
)

// exposition is text in the format of Prometheus, version 0.0.4.
type exposition struct{ bytes.Buffer }

// label is a name and a value. The value may be anything, also what nobody can read: it comes back as it is, but that bytes that are
// no UTF-8 are replaced, as the format has none.
type label struct{ name, value string }

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// family begins the samples of one metric.
func (x *exposition) family(name, kind, help string) {
	x.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n")
}

func (x *exposition) sample(name string, value float64, labels ...label) {
	x.WriteString(name)
	for i, l := range labels {
		x.WriteByte("{,"[min(i, 1)])
		x.WriteString(l.name + `="` + escaped.Replace(strings.ToValidUTF8(l.value, "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		x.WriteByte('}')
	}
	x.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// single is a metric of one sample.
func (x *exposition) single(name, kind, help string, value float64) {
	x.family(name, kind, help)
	x.sample(name, value)
}

// The bounds of a histogram's buckets, as exponents of two of nanoseconds: 1 µs to 8.6 s.
const firstBound, lastBound = 10, 33

// histogram writes cumulative buckets whose bounds are powers of two, for which counts are exact.
func (x *exposition) histogram(name, help string, h *logic.Histogram) {
	x.family(name, "histogram", help)
	for e := firstBound; e <= lastBound; e++ {
		bound := strconv.FormatFloat(float64(uint64(1)<<e)/1e9, 'g', -1, 64)
		x.sample(name+"_bucket", float64(h.Below(e)), label{"le", bound})
	}
	x.sample(name+"_bucket", float64(h.Count), label{"le", "+Inf"})
	x.sample(name+"_sum", h.Sum.Seconds())
	x.sample(name+"_count", float64(h.Count))
}

// metricsOf writes a reading.
func metricsOf(n *reading) []byte {
	x := &exposition{}
	x.engine(n)
	x.registry(n)
	x.archetypes(n)
	x.pools(n)
	x.systems(n)
	return x.Bytes()
}

func (x *exposition) engine(n *reading) {
	s := &n.engine
	x.family("airlock_state", "gauge", "1 for what the engine does now.")
	x.sample("airlock_state", 1, label{"state", n.figures.State})
	heldFor, by := 0.0, ""
	if n.figures.Held != nil {
		heldFor, by = float64(n.figures.Held.ForNanos)/1e9, n.figures.Held.By
	}
	x.family("airlock_held_seconds", "gauge", "How long somebody's code has kept Logic, once that is long.")
	x.sample("airlock_held_seconds", heldFor, label{"by", by})
	x.single("airlock_frame", "gauge", "Frame in progress or last run.", float64(n.reg.Frame))
	x.single("airlock_frame_budget_seconds", "gauge", "Time that a frame has.", float64(n.figures.BudgetNanos)/1e9)
	x.single("airlock_frames_total", "counter", "Frames run.", float64(s.Frames))
	x.single("airlock_overruns_total", "counter", "Callbacks past the watchdog.", float64(s.Overruns))
	x.single("airlock_publish_skips_total", "counter", "Frames not published because readers held every buffer.", float64(s.PublishSkips))
	x.single("airlock_rollbacks_total", "counter", "Rollbacks served.", float64(s.Rollbacks))
	x.single("airlock_dropped_frames_total", "counter", "Frames given up because Logic was late.", float64(s.DroppedFrames))
	x.single("airlock_waiting_callers", "gauge", "Goroutines that wait for the window.", float64(s.Waiting))
	x.single("airlock_queued_operations", "gauge", "Deferred operations that wait for the window.", float64(s.Queued))
	x.single("airlock_peers", "gauge", "Peers that acknowledge net handles.", float64(s.Peers))
	x.histogram("airlock_frame_seconds", "Work of a frame.", &s.FrameTime)
	x.histogram("airlock_handshake_wait_seconds", "From a caller's queueing to its grant.", &s.HandshakeWait)
	x.histogram("airlock_window_stall_seconds", "How long Logic stood still for callers.", &s.WindowStall)
}

func (x *exposition) registry(n *reading) {
	s := &n.reg
	x.family("airlock_entities", "gauge", "Entities, by what they are.")
	for _, l := range []struct {
		state string
		n     int
	}{{"active", s.Live - s.Inactive}, {"inactive", s.Inactive}, {"idle", s.Idle}, {"tombstoned", s.Tombstoned}} {
		x.sample("airlock_entities", float64(l.n), label{"state", l.state})
	}
	x.single("airlock_live_entities", "gauge", "Entities alive, active or not.", float64(s.Live))
	x.single("airlock_allocated_slots", "gauge", "Slots ever used.", float64(s.Allocated))
	x.single("airlock_chunks", "gauge", "Chunks.", float64(s.Chunks))
	x.single("airlock_pinned_frames", "gauge", "Published frames that readers hold.", float64(s.Pinned))
	x.single("airlock_pending_destructions", "gauge", "Dead that wait to be reclaimed.", float64(s.PendingDestructions))
	x.single("airlock_claims_total", "counter", "Local indices claimed: spawns and reservations.", float64(n.claimed))
	x.single("airlock_ends_total", "counter", "Local indices freed.", float64(n.ended))
	spaces := []struct {
		name string
		handles.SpaceStats
	}{{"global", s.Global}, {"local", s.Local}, {"net", s.Net}}
	x.family("airlock_handles", "gauge", "Indices of a handle space.")
	for _, space := range spaces {
		for _, l := range []struct {
			state string
			n     int
		}{{"issued", space.Issued}, {"free", space.Free}, {"pending", space.Pending}, {"retired", space.Retired}} {
			x.sample("airlock_handles", float64(l.n), label{"space", space.name}, label{"state", l.state})
		}
	}
	x.family("airlock_oldest_pending_frames", "gauge", "Age of the index that waits longest.")
	for i, space := range spaces {
		x.sample("airlock_oldest_pending_frames", float64(n.figures.Spaces[i].AgeFrames), label{"space", space.name})
	}
}

func (x *exposition) archetypes(n *reading) {
	for _, m := range []struct {
		name, help string
		of         func(a *archetypeRow) float64
	}{
		{"airlock_archetype_live", "Entities of an archetype.", func(a *archetypeRow) float64 { return float64(a.Live) }},
		{"airlock_archetype_allocated", "Slots of an archetype ever used.", func(a *archetypeRow) float64 { return float64(a.Allocated) }},
		{"airlock_archetype_idle", "Idle slots of a pooled archetype.", func(a *archetypeRow) float64 { return float64(a.Idle) }},
		{"airlock_archetype_chunks", "Chunks of an archetype.", func(a *archetypeRow) float64 { return float64(a.Chunks) }},
		{"airlock_archetype_bytes", "Memory set aside for an archetype.", func(a *archetypeRow) float64 { return float64(a.Bytes) }},
	} {
		x.family(m.name, "gauge", m.help)
		for i := range n.figures.Registry.Archetypes {
			a := &n.figures.Registry.Archetypes[i]
			x.sample(m.name, m.of(a), label{"archetype", strconv.Itoa(a.Number)}, label{"class", a.Class})
		}
	}
}

func (x *exposition) pools(n *reading) {
	for _, m := range []struct {
		name, kind, help string
		of               func(p *poolRow) int
	}{
		{"airlock_pool_cap", "gauge", "Places of a pool.", func(p *poolRow) int { return p.Cap }},
		{"airlock_pool_in_use", "gauge", "Places in use.", func(p *poolRow) int { return p.InUse }},
		{"airlock_pool_free", "gauge", "Places that can be taken.", func(p *poolRow) int { return p.Free }},
		{"airlock_pool_peak", "gauge", "The most that was ever in use at once.", func(p *poolRow) int { return p.Peak }},
		{"airlock_pool_refused_total", "counter", "What was asked for in vain.", func(p *poolRow) int { return p.Refused }},
		{"airlock_pool_grown_total", "counter", "How often the pool grew.", func(p *poolRow) int { return p.Grown }},
		{"airlock_pool_leaked_total", "counter", "What was lost without being given back.", func(p *poolRow) int { return p.Leaked }},
	} {
		x.family(m.name, m.kind, m.help)
		for i := range n.figures.Pools {
			p := &n.figures.Pools[i]
			x.sample(m.name, float64(m.of(p)), label{"source", strconv.Itoa(p.Source)}, label{"place", strconv.Itoa(i)}, label{"pool", p.Name})
		}
	}
}

func (x *exposition) systems(n *reading) {
	x.family("airlock_system", "gauge", "1 for each system, in the order in which they run.")
	for i, s := range n.figures.Systems {
		x.sample("airlock_system", 1, label{"place", strconv.Itoa(i)}, label{"phase", s.Phase}, label{"system", s.Name})
	}
}
