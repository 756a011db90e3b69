package handles_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// past is a mark, and what the caller keeps beside it.
type past struct {
	mark  handles.LocalsMark
	words []handles.Word
	held  []handles.Local
	frame uint64
	state handles.LocalsState
	since int // steps of the log that came before
}

func (p *past) take(s *localPlayer, since int) {
	s.Mark(&p.mark)
	p.words = p.words[:0]
	for i := s.first; i <= s.Highest(); i++ {
		p.words = append(p.words, s.Word(i))
	}
	p.held, p.frame, p.since, p.state = slices.Clone(s.held), s.frame, since, s.State()
}

// restoreWords puts the words back, as the owner of a registry would.
func (p *past) restoreWords(s *localPlayer) {
	for i := s.first; i <= s.limit; i++ {
		old := handles.Word(0)
		if at := int(i - s.first); at < len(p.words) {
			old = p.words[at]
		}
		for g := s.Word(i).Generation(); g > old.Generation(); g = s.Word(i).Generation() {
			s.Unclaim(handles.NewLocal(i, g))
		}
		h := handles.NewLocal(i, old.Generation())
		switch old.State() {
		case handles.Alive:
			_ = s.Revive(h, old.Place()) || s.Spawned(h, old.Place()) || s.Move(h, old.Place())
		case handles.Reserved:
			_ = s.ReviveReserved(h) || s.Unspawned(h)
		case handles.Dying:
			s.Kill(h)
			s.SetPlace(h, old.Place())
		}
	}
}

func (p *past) rewind(s *localPlayer, wordsFirst bool) {
	if wordsFirst {
		p.restoreWords(s)
	}
	s.Rewind(&p.mark)
	if !wordsFirst {
		p.restoreWords(s)
	}
	s.held, s.frame = slices.Clone(p.held), p.frame
}

func TestARewoundSpaceDoesTheSameAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, room := rapid.Uint32Range(1, 5).Draw(t, "first"), rapid.SampledFrom([]uint32{2, 3, 9, 9, 9, 20, 1100}).Draw(t, "room")
		c := handles.LocalsConfig{
			FirstIndex: first, Limit: first + room - 1,
			GenerationBits: uint8(rapid.SampledFrom([]int{2, 5, 0}).Draw(t, "width")),
			MostPending:    rapid.SampledFrom([]int{0, 3, 700}).Draw(t, "most"),
		}
		type taken struct {
			step
			outcome
		}
		var (
			s     = &localPlayer{Locals: handles.NewLocals(c), first: first, limit: c.Limit}
			marks []*past
			log   []taken
			turn  int
		)
		t.Repeat(map[string]func(*rapid.T){
			"steps": func(t *rapid.T) {
				for _, step := range drawSteps(t, 15) {
					log = append(log, taken{step, s.do(step)})
				}
			},
			"mark": func(*rapid.T) {
				m := &past{}
				if len(marks) == 4 {
					m = marks[0] // its memory is used again
					marks = marks[1:]
				}
				m.take(s, len(log))
				marks = append(marks, m)
				s.KeepFrom(&marks[0].mark)
			},
			"forget": func(t *rapid.T) {
				if marks = marks[min(len(marks), rapid.IntRange(0, 2).Draw(t, "n")):]; len(marks) == 0 {
					s.KeepFrom(nil)
				} else {
					s.KeepFrom(&marks[0].mark)
				}
			},
			"rewind": func(t *rapid.T) {
				if len(marks) == 0 {
					t.Skip("no mark")
				}
				at := rapid.IntRange(0, len(marks)-1).Draw(t, "mark")
				m := marks[at]
				marks = marks[:at+1]
				m.rewind(s, rapid.Bool().Draw(t, "words first"))
				require.NoError(t, s.Verify())
				require.Equal(t, m.state, s.State())
				again := log[m.since:]
				log = log[:m.since]
				for _, a := range again[:rapid.IntRange(0, len(again)).Draw(t, "again")] {
					require.Equal(t, a.outcome, s.do(a.step), "%v", a.step)
					log = append(log, a)
				}
			},
			"": func(t *rapid.T) {
				if turn++; turn%4 == 0 { // it is a long walk, and a rewind does it anyway
					require.NoError(t, s.Verify())
				}
			},
		})
	})
}

func TestAMarkThatWasNotKeptIsRefused(t *testing.T) {
	s := &localPlayer{Locals: locals(t, 2000, false), first: 1, limit: 2000}
	fill(t, s.Locals)
	var m past
	m.take(s, 0)
	for i, h := range fillAgain(t, s.Locals, 1) {
		require.EqualValues(t, i+1, h.Index())
	}
	s.KeepFrom(&m.mark)
	fillAgain(t, s.Locals, 2)
	assert.Panics(t, func() { s.Rewind(&m.mark) }, "it was kept too late")
	m.take(s, 0)
	s.KeepFrom(&m.mark)
	want := fillAgain(t, s.Locals, 3)
	for range 3 {
		m.rewind(s, true)
		require.Equal(t, want, fillAgain(t, s.Locals, 3))
	}
	s.KeepFrom(nil)
	fillAgain(t, s.Locals, 4)
	assert.Panics(t, func() { s.Rewind(&m.mark) }, "it is kept no more")
}

// fillAgain ends everybody, and issues until there is no more.
func fillAgain(t *testing.T, s *handles.Locals, frame uint64) []handles.Local {
	for i := uint32(1); i <= s.Highest(); i++ {
		end(t, s, handles.NewLocal(i, s.Word(i).Generation()), frame)
	}
	s.Confirm()
	return fill(t, s)
}

func TestMarksAndRewindsAllocateNothing(t *testing.T) {
	const count, depth = 1500, 8
	s := locals(t, 4*count, false)
	marks, held := [depth]handles.LocalsMark{}, [depth][]handles.Local{}
	for i := range held {
		held[i] = make([]handles.Local, count)
	}
	names := make([]handles.Local, count)
	for i := range names {
		names[i], _ = s.Issue(0)
	}
	frame := 0
	play := func() {
		for i, h := range names {
			s.Kill(h)
			s.Free(h, uint64(frame))
			names[i], _ = s.Issue(0)
		}
		s.ConfirmThrough(uint64(frame))
	}
	turn := func() { // frames, each marked; then the last few again
		for range depth {
			frame++
			s.Mark(&marks[frame%depth])
			copy(held[frame%depth], names)
			s.KeepFrom(&marks[max(frame-depth+1, 1)%depth])
			play()
		}
		for f := frame; f > frame-3; f-- {
			for _, h := range names {
				s.Unclaim(h)
			}
			copy(names, held[f%depth])
			for _, h := range names {
				s.Revive(h, 0)
			}
		}
		frame -= 2
		s.Rewind(&marks[frame%depth])
		play()
	}
	for range 10 {
		turn()
	}
	require.NoError(t, s.Verify())
	assert.Zero(t, testing.AllocsPerRun(20, turn))
	assert.Equal(t, count, s.Stats().Issued)
}

func TestARewoundSpaceFindsWhatWaitsByName(t *testing.T) {
	s := &localPlayer{Locals: locals(t, 3, false), first: 1, limit: 3}
	names := fill(t, s.Locals)
	for _, h := range names {
		end(t, s.Locals, h, 1)
	}
	s.Confirm()
	var m past
	m.take(s, 0)
	s.KeepFrom(&m.mark)
	for range 3 {
		for g := range uint32(3) { // each of them waits further behind
			h := names[1] + 1 + handles.Local(g)
			require.True(t, s.Claim(h, handles.Alive, 0))
			end(t, s.Locals, h, 2)
		}
		m.rewind(s, true)
		require.NoError(t, s.Verify())
		require.Equal(t, m.state, s.State())
	}
}

func TestUnclaimLeavesOtherNamesAlone(t *testing.T) {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 5000})
	h, _ := s.Issue(3)
	for _, other := range []handles.Local{0, h + 1, h - 1, handles.NewLocal(4999, 1), 1<<64 - 1} {
		s.Unclaim(other)
		assert.True(t, s.Alive(h))
	}
	s.Unclaim(h)
	assert.Zero(t, s.Word(h.Index()))
}

// Others may kill at any time, whatever the owner takes back.
func TestKillersDoNotMindMarks(t *testing.T) {
	const limit = 300
	var (
		s       = &localPlayer{Locals: handles.NewLocals(handles.LocalsConfig{Limit: limit}), first: 1, limit: limit}
		stop    atomic.Bool
		killers sync.WaitGroup
		m       past
	)
	for k := range uint32(3) {
		killers.Go(func() {
			for i := k; !stop.Load(); i += 7 {
				s.Kill(handles.NewLocal(i%limit+1, s.Word(i%limit+1).Generation()))
			}
		})
	}
	for round := range 300 {
		if round%5 == 0 {
			m.take(s, 0)
			s.KeepFrom(&m.mark)
		}
		for i := range 200 {
			s.do(step{[]int{0, 1, 3, 4, 6, 7, 8, 9, 12, 13}[(i+round)%10], i})
		}
		m.rewind(s, round%2 == 0)
	}
	stop.Store(true)
	killers.Wait()
	require.NoError(t, s.Verify())
}
