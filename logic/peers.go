package logic

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// peer is someone who is told of net handles. Who joins knows nothing that died before, so it
// counts as if it had acknowledged all that: it holds back only what dies later, and it is not
// the slowest for being new.
type peer struct {
	id    uint32
	since uint64        // the frame in which AddPeer was called; set once
	first uint64        // the death it counts from, as registry.Core.NetDeaths numbers them; set once
	ack   atomic.Uint64 // the newest frame it acknowledged: raised by Ack under the table's lock, loaded by Logic
}

// shown is what statistics call its acknowledgement.
func (p *peer) shown() uint64 { return max(p.since, p.ack.Load()) }

// peerChange is a joining or a leaving that waits for the top of the next frame.
type peerChange struct {
	peer  *peer
	leave bool
}

// peerTable is what AddPeer, Ack and DropPeer answer from.
type peerTable struct {
	mu      sync.Mutex // guards members and waiting; leaf lock
	members map[uint32]*peer
	waiting []peerChange
	taken   []peerChange // Logic's, swapped with waiting
	any     atomic.Bool  // something waits: spares a steady frame the lock
}

// take gives who joined and left since the last call, in order. Logic only.
func (t *peerTable) take() []peerChange {
	if !t.any.Load() {
		return nil
	}
	clear(t.taken)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting, t.taken = t.taken[:0], t.waiting
	t.any.Store(false)
	return t.taken
}

// slowest is the peer that acknowledged least; the lowest id of several.
func (t *peerTable) slowest() (count int, id uint32, ack uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := true
	for _, p := range t.members {
		if a := p.shown(); first || a < ack || a == ack && p.id < id {
			first, id, ack = false, p.id, a
		}
	}
	return len(t.members), id, ack
}

// peerage is Logic's own list of the peers that count.
type peerage struct {
	members []*peer
	ever    bool // some peer was added once: NetWindow no longer applies
}

// join lets newcomers count.
func (g *peerage) join(changes []peerChange) {
	for _, c := range changes {
		if !c.leave {
			g.members = append(g.members, c.peer)
			g.ever = true
		}
	}
}

// part lets peers go.
func (g *peerage) part(changes []peerChange) {
	for _, c := range changes {
		if !c.leave {
			continue
		}
		for i, p := range g.members {
			if p == c.peer {
				g.members = append(g.members[:i], g.members[i+1:]...)
				break
			}
		}
	}
}

// acknowledged reports whether every peer that was there when an index died has acknowledged
// the frame it was freed in. Deaths are asked for in their order, and the answer is no for all
// behind one for which it is.
func (g *peerage) acknowledged(death, frame uint64) bool {
	for i, p := range g.members {
		if planted.Enabled && planted.Is(planted.NetNameBeforeAllAcks) && i > 0 {
			break
		}
		if death >= p.first && frame > p.ack.Load() {
			return false
		}
	}
	return true
}

// AddPeer has net indices of entities that die from now on stay pending until this peer, too,
// has acknowledged a frame in which they are dead.
//
// Errors: a peer with that id is there already; ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: the peer.
func (e *Engine) AddPeer(id uint32) error {
	if e.stopAsked() {
		return ErrStopped
	}
	t := &e.peerTable
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.members[id]; ok {
		return fmt.Errorf("logic: peer %d is there already", id)
	}
	p := &peer{id: id, since: e.now(), first: e.core.NetDeaths()}
	t.members[id] = p
	t.waiting = append(t.waiting, peerChange{peer: p})
	t.any.Store(true)
	return nil
}

// Ack notes that a peer has seen frame, and all before it. An acknowledgement that is lower
// than an earlier one changes nothing: messages overtake each other.
//
// Errors: the peer is unknown; ErrNotPublished for a frame that has not run.
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Ack(peer uint32, frame uint64) error {
	t := &e.peerTable
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.members[peer]
	if !ok {
		return fmt.Errorf("logic: peer %d is unknown", peer)
	}
	if now := e.now(); frame > now {
		return fmt.Errorf("logic: peer %d acknowledges frame %d in frame %d: %w", peer, frame, now, registry.ErrNotPublished)
	}
	if planted.Enabled && planted.Is(planted.WrongPeerAcknowledged) {
		for _, p = range t.members {
			p.ack.Store(max(frame, p.ack.Load()))
		}
	}
	p.ack.Store(max(frame, p.ack.Load()))
	return nil
}

// DropPeer forgets a peer at the top of the next frame: nothing waits for it any longer. When
// the last one leaves, all that waited for peers is confirmed.
//
// Errors: the peer is unknown.
// Concurrency: any goroutine; never waits. Allocates: no, but for growth.
func (e *Engine) DropPeer(id uint32) error {
	t := &e.peerTable
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.members[id]
	if !ok {
		return fmt.Errorf("logic: peer %d is unknown", id)
	}
	delete(t.members, id)
	t.waiting = append(t.waiting, peerChange{peer: p, leave: true})
	t.any.Store(true)
	return nil
}
