package stress

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// Stage is what a script is played on: all that must not show in its history.
type Stage struct {
	Slots         int  // in a chunk; 0 means 64
	Workers       int  // 0 means 1
	Deterministic bool // then hashes of two stages are equal, too, if both make the pool at the same time
	Ring          int  // depth of the temporal ring
	Defrag        bool // refused for a deterministic one
	Prewarmed     bool // the pool's slots are made before the first frame
}

// Performance is what came of a script, one entry a frame.
type Performance struct {
	History []string // outcomes of the operations, and a digest of what there is to see of all entities
	Hashes  []uint64 // of the temporal state, of a deterministic stage
}

// Differs says in which frame two histories part, and how. False if they do not.
//
// Concurrency: any goroutine; never waits. Allocates: what it says.
func (p *Performance) Differs(other *Performance) (string, bool) {
	for i := range min(len(p.History), len(other.History)) {
		if p.History[i] != other.History[i] {
			return fmt.Sprintf("frame %d: %s\nand: %s", i+1, p.History[i], other.History[i]), true
		}
	}
	if len(p.History) != len(other.History) {
		return fmt.Sprintf("%d and %d frames", len(p.History), len(other.History)), true
	}
	return "", false
}

// HashDiffers says in which frame two lists of hashes part. False if they do not.
//
// Concurrency: any goroutine; never waits. Allocates: what it says.
func (p *Performance) HashDiffers(other *Performance) (string, bool) {
	for i := range min(len(p.Hashes), len(other.Hashes)) {
		if p.Hashes[i] != other.Hashes[i] {
			return fmt.Sprintf("frame %d: %016x and %016x", i+1, p.Hashes[i], other.Hashes[i]), true
		}
	}
	return "", len(p.Hashes) != len(other.Hashes)
}

// Digest is one number for a history and its hashes.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (p *Performance) Digest() uint64 {
	h := fnv.New64a()
	for _, line := range p.History {
		_, _ = io.WriteString(h, line)
	}
	for _, n := range p.Hashes {
		fmt.Fprintf(h, "%016x", n)
	}
	return h.Sum64()
}

// metaValue is state; metaMark moves who has it to another archetype.
type (
	metaThing struct{ Value metaValue }
	metaValue struct{ N int64 }
	metaMark  struct{ N int64 }
)

const (
	metaParts    = 8
	metaEntities = 1 << 14
	metaArrow    = "Arrow"
)

// player is a script on its stage.
type player struct {
	reg     *registry.Registry
	engine  *logic.Engine
	class   *registry.Class[metaThing]
	prefabs *pool.Prefabs

	names    map[int]handles.Local // by number; written by whoever holds the window, and between frames
	numbers  []int                 // that have a name, in the order in which they got it
	outcomes []string              // of this frame
	parts    [metaParts][]Act      // of the next one
	did      [metaParts][]partDone // what the parts of a frame did; each writes its own
	seen     uint64                // the digest of the last frame
	result   Performance
	err      error
}

type partDone struct {
	act Act
	h   handles.Local // whom it gave a name to
	err error
}

// Play plays a script.
//
// Errors: a stage that registry or engine refuses; a registry that is not whole at the end.
// Concurrency: any goroutine; waits. Allocates: yes.
func (s Script) Play(stage Stage) (*Performance, error) {
	p := &player{names: make(map[int]handles.Local)}
	if err := p.set(stage); err != nil {
		return nil, err
	}
	var tickets []metaTicket
	for _, a := range s {
		switch a.Verb {
		case VerbStep:
			if err := p.frame(tickets); err != nil {
				return nil, errors.Join(err, p.engine.Stop())
			}
			tickets = tickets[:0]
		case VerbKill:
			p.outcome(a, p.reg.Destroy(p.names[a.Entity]))
		case VerbPartSpawn, VerbPartKill:
			part := a.Entity % metaParts
			p.parts[part] = append(p.parts[part], a)
		default:
			t, err := p.engine.Enqueue(func(w *registry.Window) error { return p.perform(w, a) })
			if err != nil {
				return nil, errors.Join(err, p.engine.Stop())
			}
			tickets = append(tickets, metaTicket{a, t})
		}
	}
	return &p.result, errors.Join(p.err, p.engine.Shutdown(context.Background()), p.reg.Verify())
}

type metaTicket struct {
	act Act
	*logic.Ticket
}

// set makes the world.
func (p *player) set(stage Stage) (err error) {
	if stage.Slots == 0 {
		stage.Slots = 64
	}
	stage.Workers = max(stage.Workers, 1)
	p.reg, err = registry.New(registry.Config{MaxEntities: metaEntities, Deterministic: stage.Deterministic, TemporalFrames: stage.Ring})
	if err != nil {
		return err
	}
	if p.class, err = registry.RegisterClass[metaThing](p.reg, registry.SlotsPerChunk(stage.Slots)); err != nil {
		return err
	}
	if _, err = registry.RegisterComponent[metaMark](p.reg); err != nil {
		return err
	}
	p.prefabs = pool.NewPrefabs(p.reg)
	if err = pool.Define(p.prefabs, metaArrow, p.class, metaThing{metaValue{7}}); err != nil {
		return err
	}
	err = p.reg.Update(func(w *registry.Window) error {
		return p.prefabs.Declare(w, metaArrow, 128, pool.Double(), stage.Prewarmed)
	})
	if err != nil {
		return err
	}
	c := logic.Config{Workers: stage.Workers, WindowBudget: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), OnError: func(error) {}}
	if stage.Defrag {
		c.Defrag = logic.Defrag{Moves: 16, Above: 0.01}
	}
	if p.engine, err = logic.New(p.reg, c); err != nil {
		return err
	}
	if _, err = p.engine.AddSystem(logic.Physics, "parts", p.work); err == nil {
		_, err = p.engine.AddSystem(logic.Late, "looks", p.look)
	}
	if err != nil {
		return errors.Join(err, p.engine.Stop())
	}
	return nil
}

// name gives a number to an entity.
func (p *player) name(number int, h handles.Local) {
	if _, ok := p.names[number]; !ok {
		p.numbers = append(p.numbers, number)
	}
	p.names[number] = h
}

var errMeta = errors.New("stress: as the script says")

// perform does an operation of a window.
func (p *player) perform(w *registry.Window, a Act) error {
	h := p.names[a.Entity]
	switch a.Verb {
	case VerbSpawn:
		h, err := p.class.Spawn(w, metaThing{metaValue{int64(a.Arg)}})
		if err == nil {
			p.name(a.Entity, h)
		}
		return err
	case VerbBatch:
		hs, err := p.class.SpawnBatch(w, a.Arg, func(i int, e *metaThing) { e.Value.N = int64(a.Entity + i) })
		for i, h := range hs {
			p.name(a.Entity+i, h)
		}
		return err
	case VerbPrefab:
		h, err := p.prefabs.Spawn(w, metaArrow)
		if err == nil {
			p.name(a.Entity, h)
		}
		return err
	case VerbDestroy:
		return w.Destroy(h)
	case VerbSet:
		return registry.Set(w, h, metaValue{int64(a.Arg)})
	case VerbAdd:
		return registry.Add(w, h, metaMark{int64(a.Arg)})
	case VerbRemove:
		return registry.Remove[metaMark](w, h)
	case VerbParent:
		return registry.SetParent(w, h, p.names[a.Arg])
	case VerbActive:
		return registry.SetActive(w, h, a.Arg%2 == 1)
	case VerbNet:
		_, err := w.AssignNet(h)
		return err
	}
	_, err := p.class.SpawnBatch(w, 3, nil)
	err = errors.Join(err, registry.Set(w, h, metaValue{-1}), registry.Add(w, h, metaMark{-1}), registry.SetActive(w, h, false))
	_ = w.Destroy(p.names[a.Entity/2])
	if a.Arg%2 == 1 {
		panic(errMeta)
	}
	return errors.Join(errMeta, err)
}

// outcome books what became of an operation. Errors count by what they are, not by what they say.
func (p *player) outcome(a Act, err error) {
	what := "other"
	for name, is := range map[string]error{
		"stale": registry.ErrStale, "invalid": registry.ErrInvalidHandle, "exhausted": registry.ErrExhausted,
		"component": registry.ErrNoComponent, "unborn": registry.ErrNotSpawned,
	} {
		if errors.Is(err, is) {
			what = name
		}
	}
	switch {
	case err == nil:
		what = "ok"
	case errors.Is(err, errMeta):
		what = "failed"
	}
	p.outcomes = append(p.outcomes, a.String()+": "+what)
}

// frame runs one and writes it down.
func (p *player) frame(tickets []metaTicket) error {
	if err := p.engine.Step(); err != nil {
		return err
	}
	for _, t := range tickets {
		select {
		case <-t.Done():
			p.outcome(t.act, t.Err())
		default:
			return fmt.Errorf("stress: %v has no answer", t.act)
		}
	}
	for part := range p.parts {
		for _, d := range p.did[part] {
			if p.outcome(d.act, d.err); d.act.Verb == VerbPartSpawn && d.err == nil {
				p.name(d.act.Entity, d.h)
			}
		}
		p.parts[part], p.did[part] = p.parts[part][:0], p.did[part][:0]
	}
	p.result.History = append(p.result.History, fmt.Sprintf("%v, %d live, %016x", p.outcomes, p.reg.Stats().Live, p.seen))
	p.outcomes = p.outcomes[:0]
	return p.err
}

// work is the system of the stage: it changes everybody, in parts.
func (p *player) work(f *logic.Frame) { registry.Fork(f, p, metaParts, true) }

// Part does what the script asks of a part, and its share of everybody.
//
// Concurrency: any worker, each with a part of its own. Allocates: yes.
func (p *player) Part(f *registry.Frame, _, part int) {
	for _, a := range p.parts[part] {
		d := partDone{act: a}
		if a.Verb == VerbPartSpawn {
			d.h, d.err = p.class.SpawnLater(f, metaThing{metaValue{int64(a.Arg)}})
		} else {
			d.err = f.Destroy(p.names[a.Entity])
		}
		p.did[part] = append(p.did[part], d)
	}
	for i := part; i < len(p.numbers); i += metaParts {
		if v, err := registry.Get[metaValue](f, p.names[p.numbers[i]]); err == nil {
			v.N = v.N*3 + int64(f.FrameNumber()) + int64(p.numbers[i])
		}
	}
}

// look writes down what there is to see of everybody.
func (p *player) look(f *logic.Frame) {
	h := fnv.New64a()
	for _, number := range p.numbers {
		e := p.names[number]
		v, err := registry.Peek[metaValue](f, e)
		if err != nil {
			continue
		}
		mark, _ := registry.Peek[metaMark](f, e)
		net, _ := p.reg.NetOf(e)
		fmt.Fprintln(h, number, v.N, registry.Has[metaMark](f, e), mark.N, registry.Active(f, e), net != 0)
	}
	p.seen = h.Sum64()
	if p.reg.Config().Deterministic {
		hash, err := snapshot.Hash(f)
		p.result.Hashes = append(p.result.Hashes, hash)
		p.err = errors.Join(p.err, err)
	}
}
