package handles_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// step is something to do with a space, as data: the same step on equal spaces does the same.
type step struct{ kind, pick int }

// drawSteps draws steps of any kind.
func drawSteps(t *rapid.T, most int) []step {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 16*41-1), func(n int) step { return step{n % 16, n / 16} }), 1, most).Draw(t, "steps")
}

// outcome is all that a step answers, and what is to be seen of the space after it.
type outcome struct {
	name      uint64
	other     uint64
	ok        bool
	stats     handles.SpaceStats
	lives     uint64
	highest   uint32
	ownDeaths uint64
}

// player is a space and what its owner knows of it.
type player interface {
	do(step) outcome
	verify() error
	state() any
	restore(state any) error
	adopt(player) // goes on for another one
	adoptState()  // goes on without knowing of the past
}

type localPlayer struct {
	*handles.Locals
	first, limit uint32
	held         []handles.Local // claimed and not freed
	frame        uint64
}

func (p *localPlayer) verify() error       { return p.Verify() }
func (p *localPlayer) state() any          { return p.State() }
func (p *localPlayer) restore(s any) error { return p.Restore(s.(handles.LocalsState)) }

func (p *localPlayer) adopt(from player) {
	f := from.(*localPlayer)
	p.held, p.frame = slices.Clone(f.held), f.frame
}

func (p *localPlayer) adoptState() {
	for i, w := range p.State().Words {
		if s := handles.Word(w).State(); s == handles.Alive || s == handles.Reserved {
			p.held = append(p.held, handles.NewLocal(p.first+uint32(i), handles.Word(w).Generation()))
		}
	}
}

func (p *localPlayer) pick(pick int) handles.Local {
	if len(p.held) == 0 {
		return 0
	}
	return p.held[len(p.held)-1-pick%len(p.held)]
}

func (p *localPlayer) hold(h handles.Local, ok bool) (uint64, bool) {
	if ok {
		p.held = append(p.held, h)
	}
	return uint64(h), ok
}

func (p *localPlayer) drop(h handles.Local) {
	p.held = slices.DeleteFunc(p.held, func(x handles.Local) bool { return x == h })
}

func (p *localPlayer) do(s step) (o outcome) {
	h, place := p.pick(s.pick), uint32(s.pick)
	switch s.kind % 16 {
	case 0, 1, 2:
		o.name, o.ok = p.hold(p.Issue(place))
	case 3:
		o.name, o.ok = p.hold(p.Reserve())
	case 4, 5:
		var w handles.Word
		w, o.ok = p.Kill(h)
		o.name, o.other = uint64(h), uint64(w)
	case 6, 7:
		if o.ok = h != 0 && p.Word(h.Index()).State() == handles.Dying; o.ok {
			p.Free(h, p.frame)
			p.drop(h)
		}
	case 8:
		if o.ok = h != 0 && p.Unissue(h); o.ok {
			p.drop(h)
		}
	case 9:
		o.other = uint64(p.Confirm())
	case 10:
		p.frame++
		o.other = uint64(p.ConfirmThrough(p.frame - min(p.frame, uint64(s.pick%4))))
	case 11:
		p.Publish()
	case 12:
		o.ok = p.Spawned(h, place) || p.Unspawned(h)
	case 13:
		o.ok = p.Move(h, place) || h != 0 && p.Revive(h, place)
	case 14:
		index := p.first + uint32(s.pick)%(p.limit-p.first+2)
		name := handles.NewLocal(index, p.Word(index).Generation()+1+uint32(s.pick%2))
		o.name, o.ok = p.hold(name, p.Claim(name, handles.State(1+s.pick%3), place))
	case 15:
		o.other = p.churn(s.pick * s.pick)
	}
	o.stats, o.lives, o.highest = p.Stats(), p.Lives(), p.Highest()
	return o
}

// churn issues and ends many, so that segments of the line come and go. It is a digest of their names.
func (p *localPlayer) churn(count int) (digest uint64) {
	var names []handles.Local
	for range count {
		h, ok := p.Issue(1)
		if !ok {
			break
		}
		names = append(names, h)
		digest = digest*31 + uint64(h)
	}
	for _, h := range names {
		p.Kill(h)
	}
	p.FreeAll(names, p.frame)
	return digest
}

type globalPlayer struct {
	*handles.Globals
	last uint32
	held []uint32
}

func (p *globalPlayer) verify() error       { return p.Verify() }
func (p *globalPlayer) state() any          { return p.State() }
func (p *globalPlayer) restore(s any) error { return p.Restore(s.(handles.GlobalsState)) }
func (p *globalPlayer) adopt(from player)   { p.held = slices.Clone(from.(*globalPlayer).held) }

func (p *globalPlayer) adoptState() {
	for _, run := range p.State().Runs {
		for i := range run.Count {
			if run.Use == handles.GlobalFirst || run.Use == handles.GlobalAgain {
				p.held = append(p.held, run.First+i)
			}
		}
	}
}

func (p *globalPlayer) do(s step) (o outcome) {
	index := uint32(0)
	if n := len(p.held); n > 0 && s.kind%8 >= 3 {
		at := s.pick % n
		index = p.held[at]
		p.held = slices.Delete(p.held, at, at+1)
	}
	switch kind := s.kind % 8; {
	case kind < 3:
		index = p.Issue(uint32(s.pick))
		o.name, o.ok = uint64(p.Handle(index)), index != 0
		if o.ok {
			p.held = append(p.held, index)
		}
	case index == 0:
	case kind < 5:
		p.Free(index)
	case kind == 5:
		p.Unissue(index)
	case kind == 6:
		p.FreeOwn(index, 1+uint32(s.pick)%p.last)
	case kind == 7:
		if o.ok = p.Raise(index, uint32(s.pick)%(p.last+2)); o.ok {
			p.held = append(p.held, index)
		}
	}
	o.stats, o.other = p.Stats(), uint64(p.Generation(index))
	return o
}

type netPlayer struct {
	*handles.Nets
	held  []handles.Net
	frame uint64
}

func (p *netPlayer) verify() error       { return p.Verify() }
func (p *netPlayer) state() any          { return p.State() }
func (p *netPlayer) restore(s any) error { return p.Restore(s.(handles.NetsState)) }

func (p *netPlayer) adopt(from player) {
	f := from.(*netPlayer)
	p.held, p.frame = slices.Clone(f.held), f.frame
}

func (p *netPlayer) adoptState() {
	s := p.State()
	for i, w := range s.Words {
		if uint32(w) != 0 {
			p.held = append(p.held, handles.NewNet(s.Owner, s.First+uint32(i), uint32(w>>32)))
		}
	}
	for _, k := range s.Foreign {
		if k.Local != 0 {
			p.held = append(p.held, k.Name)
		}
	}
}

func (p *netPlayer) do(s step) (o outcome) {
	var h handles.Net
	if n := len(p.held); n > 0 {
		h = p.held[n-1-s.pick%n]
	}
	ended := false
	switch kind := s.kind % 16; {
	case kind < 4:
		h, o.ok = p.Issue(uint32(s.pick))
		if o.name = uint64(h); o.ok {
			p.held = append(p.held, h)
		}
	case kind > 4 && kind < 8 && h != 0:
		p.Free(h, p.frame)
		ended = true
	case kind > 7 && kind < 10 && h != 0 && h.Owner() == here:
		p.Unissue(h)
		ended = true
	case kind == 10 && h != 0:
		o.ok = p.Unbind(h)
		ended = o.ok
	case kind == 11:
		o.other = uint64(p.Confirm())
	case kind == 12:
		p.frame++
		o.other = uint64(p.ConfirmThrough(p.frame - min(p.frame, uint64(s.pick%4))))
	case kind == 13:
		o.other = uint64(p.ConfirmWhile(func(seq, _ uint64) bool { return seq%5 != uint64(s.pick%5) }))
	case kind == 14:
		for range s.pick * 20 { // so that segments of the line come and go
			if h, ok := p.Issue(1); ok {
				p.Free(h, p.frame)
				o.name = o.name*31 + uint64(h)
			}
		}
	default:
		h = handles.NewNet(uint8(here+1-s.pick%2*2), uint32(s.pick/2%2)*5000+1, uint32(s.pick%7))
		if o.ok = p.Bind(h, uint32(s.pick%5)); o.ok {
			p.held = append(p.held, h)
		}
	}
	if ended {
		p.held = slices.DeleteFunc(p.held, func(x handles.Net) bool { return x == h })
	}
	o.stats, o.ownDeaths, o.highest = p.Stats(), p.Deaths(), uint32(p.Bound())
	return o
}
