package stress

import (
	"context"
	"reflect"
	"slices"
	"time"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// worldOf is the registry of most scenarios: with room for what producers keep, or with faults sometimes not.
func (g *rig) worldOf() registry.Config {
	c := registry.Config{MaxEntities: 1 << 16}
	if n := 4 * keep * g.o.Producers; n > c.MaxEntities {
		c.MaxEntities = n
	}
	if g.o.Faults && g.o.Seed%2 == 0 {
		c.MaxEntities = keep * g.o.Producers / 2
	}
	return c
}

func playSync(ctx context.Context, g *rig) error {
	if err := g.build(ctx, archetype.Volatile, g.worldOf(), g.free()); err != nil {
		return err
	}
	g.drive(ctx, func(p *producer) { p.spawns(keep) })
	g.figures = append(g.figures,
		atLeast("operations a second", g.rate(), 5000),
		atMost("lost and doubled operations", g.violated(OneOutcome), 0))
	return nil
}

// spawns is one blocking spawn after the other. Who has too many entities ends the oldest one from outside.
func (p *producer) spawns(most int) {
	for !p.stopped {
		if p.g.o.Faults && p.rng.IntN(20) == 0 {
			p.fault()
		} else if p.handshake(context.Background(), spawnOne) == Exhausted && len(p.own) > 0 {
			p.cull()
		}
		if len(p.own) > most {
			p.cull()
		}
	}
}

func playBatched(ctx context.Context, g *rig) error {
	if err := g.build(ctx, archetype.Volatile, g.worldOf(), g.free()); err != nil {
		return err
	}
	g.drive(ctx, (*producer).batches)
	g.figures = append(g.figures,
		atLeast("operations a second", g.rate(), 150_000),
		atMost("lost and doubled operations", g.violated(OneOutcome), 0))
	return nil
}

// batches is 32 operations at a time: half of the times in one handshake, half in a lane.
func (p *producer) batches() {
	const size = 32
	for round := 0; !p.stopped; round++ {
		switch {
		case p.g.o.Faults && p.rng.IntN(4) == 0:
			p.fault()
		case round%2 == 0:
			p.batch(size)
		default:
			p.queue(size)
		}
		if len(p.own) > keep {
			p.cull()
		}
	}
}

func playCrowd(ctx context.Context, g *rig) error {
	c := g.free()
	if g.o.Faults {
		c.QueueSize = 0
	}
	if err := g.build(ctx, archetype.Volatile, g.worldOf(), c); err != nil {
		return err
	}
	g.drive(ctx, func(p *producer) { p.spawns(8) })
	slowest, sum := g.totals.Submitted, uint64(0)
	for _, p := range g.producers {
		slowest = min(slowest, p.book.next)
		sum += p.book.next
	}
	mean := float64(sum) / float64(len(g.producers))
	if mean >= 50 && slowest <= 1 {
		g.ledger.Violate(Fairness, "a producer did %d operations, the average is %.0f", slowest, mean)
	}
	g.figures = append(g.figures, atLeast("slowest producer's share of the average", float64(slowest)/max(mean, 1), 0.2))
	return nil
}

// rate is how many operations ran in a second: what was refused at the door is no load.
func (g *rig) rate() float64 {
	ran := uint64(0)
	for o, n := range g.totals.By {
		if least, _ := Outcome(o).runs(); least > 0 {
			ran += n
		}
	}
	return float64(ran) / max(g.ended.Sub(g.began).Seconds(), 1e-9)
}

func (g *rig) violated(invariant string) (n float64) {
	violations, _ := g.ledger.Violations()
	for _, v := range violations {
		if v.Invariant == invariant {
			n++
		}
	}
	return n
}

// The load of paced. A run of less than a second has a tenth of it: that is a look whether it runs at all.
const (
	pacedRate  = 60
	pacedLive  = 100_000
	pacedTurns = 2000 // spawned, and destroyed, a frame
)

// pacer is a producer's share of it: a ring of entities, of which it replaces the oldest.
type pacer struct {
	*producer
	ring   []handles.Local
	oldest int
	turns  int
	number uint64
	spawn  func(w *registry.Window) error
	frame  chan struct{} // a frame has ended
}

func playPaced(ctx context.Context, g *rig) error {
	c := g.free()
	c.Rate, c.WindowBudget, c.QueueSize = pacedRate, 12*time.Millisecond, 0
	if err := g.build(ctx, archetype.Volatile, registry.Config{MaxEntities: 2 * pacedLive}, c); err != nil {
		return err
	}
	live, turns := pacedLive, pacedTurns
	if g.o.For < time.Second {
		live, turns = live/10, turns/10
	}
	pacers := make([]*pacer, g.o.Producers)
	for i := range pacers {
		p := &pacer{producer: g.newProducer(i), frame: make(chan struct{}, 1)}
		g.producers = append(g.producers, p.producer)
		p.book.grown()
		p.turns = turns / len(pacers)
		p.spawn = p.turn
		pacers[i] = p
		if err := g.reg.Update(func(w *registry.Window) (err error) {
			p.ring, err = g.bodies.SpawnBatch(w, live/len(pacers), func(_ int, b *body) { b.Mark.Owner = uint64(p.id) })
			for _, h := range p.ring {
				if err == nil {
					err = registry.Set(w, h, mark{h, uint64(p.id), 0})
				}
			}
			return err
		}); err != nil {
			return err
		}
		g.counts["spawned at first"] += uint64(len(p.ring))
	}
	if _, err := g.eng.AddSystem(logic.Late, "turn", func(*logic.Frame) {
		for _, p := range pacers {
			select {
			case p.frame <- struct{}{}:
			default: // it is late
			}
		}
	}); err != nil {
		return err
	}
	var allocated, frames, handshakes [2]uint64
	sample := func(i int) {
		allocated[i], frames[i], handshakes[i] = readMetric("/gc/heap/allocs:bytes"), g.eng.FrameNumber(), uint64(g.ops.Value())
	}
	next := 0
	g.driveProducers(ctx, func(p *producer) { pacers[p.id].pace() }, func(ctx context.Context) {
		// The first fifth is for what grows once.
		select {
		case <-time.After(g.o.For / 5):
			sample(0)
			next = 1
		case <-ctx.Done():
		}
		<-ctx.Done()
		sample(next)
	})
	g.figures = append(g.figures,
		atMost("frame p99, ms", milliseconds(g.stats.FrameTime.Quantile(0.99)), 16.6),
		atMost("frames dropped", float64(g.stats.DroppedFrames), 0))
	if n := frames[1] - min(frames[0], frames[1]); next == 1 && n > 0 {
		// Each callback has a token of its own, which it may keep for ever: that is no part of what a frame itself costs.
		all := allocated[1] - allocated[0]
		tokens := (handshakes[1] - handshakes[0]) * uint64(reflect.TypeFor[registry.Window]().Size())
		g.counts["bytes allocated a frame, tokens of handshakes included"] = all / n
		g.figures = append(g.figures, atMost("bytes allocated a frame, without tokens of handshakes",
			(float64(all)-float64(tokens))/float64(n), 64))
	}
	if len(g.heap) > 7 { // marks: start, each minute, end
		at5, last := g.heap[5].Bytes, g.heap[len(g.heap)-2].Bytes
		g.figures = append(g.figures, atMost("heap growth after minute 5, percent", 100*(float64(last)/float64(at5)-1), 2))
	}
	for _, p := range pacers {
		for _, h := range p.ring {
			if !g.reg.Alive(h) {
				g.ledger.Violate(NoAlias, "producer %d: %v is not alive at the end", p.id, h)
			}
		}
	}
	return nil
}

// pace replaces a share of the entities in each frame.
func (p *pacer) pace() {
	stopped := time.NewTicker(progressEvery) // then no frame comes any more
	defer stopped.Stop()
	for !p.stopped {
		select {
		case <-p.frame:
		case <-stopped.C:
		}
		p.number = p.book.Submit()
		p.g.ops.Inc()
		switch p.book.Answer(p.number, p.g.gate.Spawn(context.Background(), p.spawn)) {
		case Applied:
			p.book.Spawned += uint64(p.turns)
			p.book.Destroyed += uint64(p.turns)
		case Stopped:
			p.stopped = true
		}
		p.book.Rest()
	}
}

// turn is the callback.
func (p *pacer) turn(w *registry.Window) error {
	p.book.Ran(p.number)
	for range p.turns {
		old := p.ring[p.oldest]
		if err := w.Destroy(old); err != nil {
			p.g.ledger.Violate(NoAlias, "producer %d: %v is alive, and cannot be destroyed: %v", p.id, old, err)
		}
		h, err := p.g.bodies.Spawn(w, body{Pulse: pulse{0, ^uint64(0)}})
		if err != nil {
			p.g.ledger.Violate(Caps, "producer %d: exhausted with %d of %d: %v", p.id, p.g.reg.Stats().Live, p.g.rc.MaxEntities, err)
			continue
		}
		if err := registry.Set(w, h, mark{h, uint64(p.id), p.number}); err != nil {
			p.g.ledger.Violate(NoAlias, "producer %d: %v was just spawned: %v", p.id, h, err)
		}
		p.ring[p.oldest] = h
		p.oldest = (p.oldest + 1) % len(p.ring)
	}
	return nil
}

// churner replaces the entity of the one slot there is.
type churner struct {
	*producer
	slot   *slot
	number uint64
	turn   func(w *registry.Window) error
}

// slot is who is there now; the holder of the window writes it.
type slot struct {
	now   atomic.Uint64 // handles.Local, for those who watch
	last  handles.Local
	net   handles.Net
	kept  []handles.Local // some of those who were there before
	turns uint64
}

// churnTurns is how often the entity is replaced in one handshake.
const churnTurns = 256

func playChurn(ctx context.Context, g *rig) error {
	c := g.free()
	c.LocalWindow, c.NetWindow, c.QueueSize = -1, -1, 0 // confirmed by hand, at once
	if err := g.build(ctx, archetype.Volatile, registry.Config{MaxEntities: 1}, c); err != nil {
		return err
	}
	s := &slot{}
	churners := make([]*churner, g.o.Producers)
	for i := range churners {
		p := &churner{producer: g.newProducer(i), slot: s}
		p.turn = p.replace
		g.producers = append(g.producers, p.producer)
		churners[i] = p
	}
	watcher := func(ctx context.Context) { g.watchSlot(ctx, s) }
	g.driveProducers(ctx, func(p *producer) { churners[p.id].churn() }, watcher, watcher)
	for _, h := range s.kept {
		if g.reg.Alive(h) {
			g.ledger.Violate(NoAlias, "%v was replaced, and is alive", h)
		}
	}
	g.counts["respawns"] = s.turns
	g.counts["looks at the dead"] = g.looks.Load()
	g.counts["indices used"] = uint64(g.roll.Indices)
	g.figures = append(g.figures, atLeast("respawns", float64(s.turns), 1e7), atMost("aliases", g.violated(NoAlias), 0))
	return nil
}

func (p *churner) churn() {
	for !p.stopped {
		p.number = p.book.Submit()
		p.g.ops.Add(churnTurns)
		if p.book.Answer(p.number, p.g.gate.Spawn(context.Background(), p.turn)) == Stopped {
			return
		}
		p.book.Rest()
	}
}

// replace is the callback. Its counts are those of the book that has the window.
func (p *churner) replace(w *registry.Window) error {
	p.book.Ran(p.number)
	s, r, ledger := p.slot, p.g.reg, p.g.ledger
	for range churnTurns {
		old, oldNet := s.last, s.net
		if old != 0 {
			if err := w.Destroy(old); err != nil {
				ledger.Violate(NoAlias, "%v is alive, and cannot be destroyed: %v", old, err)
			}
			p.book.Destroyed++
			w.ProcessDeferredDestructions()
			w.ConfirmLocalRecycles()
			w.ConfirmNetRecycles()
		}
		h, err := p.g.bodies.Spawn(w, body{})
		if err != nil {
			ledger.Violate(Caps, "nobody is there, and there is no room: %v", err)
			return err
		}
		p.book.Spawned++
		net, err := w.AssignNet(h)
		if err != nil {
			ledger.Violate(NoAlias, "%v gets no name: %v", h, err)
		}
		_ = registry.Set(w, h, mark{Self: h, Owner: uint64(p.id), Number: p.number})
		if old == h || r.Alive(old) || oldNet == net || r.AliveNet(oldNet) || !r.Alive(h) || !r.AliveNet(net) {
			ledger.Violate(NoAlias, "%v, %v came after %v, %v: alive %v, %v and %v, %v", h, net, old, oldNet, r.Alive(h), r.AliveNet(net), r.Alive(old), r.AliveNet(oldNet))
		}
		if old.Index() == h.Index() && h.Generation() <= old.Generation() {
			ledger.Violate(NoAlias, "%v came after %v", h, old)
		}
		if s.turns++; s.turns%10_000 == 1 && len(s.kept) < 1<<16 {
			s.kept = append(s.kept, h)
		}
		s.last, s.net = h, net
		s.now.Store(uint64(h))
	}
	s.kept = slices.DeleteFunc(s.kept, func(h handles.Local) bool { return h == s.last })
	return nil
}

// watchSlot is somebody who still has the handle of an entity that was replaced.
func (g *rig) watchSlot(ctx context.Context, s *slot) {
	looks := uint64(0)
	for ctx.Err() == nil {
		h := handles.Local(s.now.Load())
		for h != 0 && handles.Local(s.now.Load()) == h && ctx.Err() == nil {
			pause()
		}
		if ctx.Err() != nil || h == 0 {
			pause()
			continue
		}
		for range 16 {
			if g.reg.Alive(h) {
				g.ledger.Violate(NoAlias, "%v was replaced, and is alive", h)
			}
			if g.gate.Destroy(h) == nil {
				g.ledger.Violate(NoAlias, "%v was replaced, and could be destroyed", h)
			}
			looks++
		}
		pause()
	}
	g.looks.Add(looks)
}

// pause lets others run for a moment.
func pause() { <-time.After(50 * time.Microsecond) }
