package handles_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// players are makers of fresh spaces, each of a config that is drawn.
var players = map[string]func(*rapid.T) func() player{
	"locals": func(t *rapid.T) func() player {
		c := handles.LocalsConfig{
			Limit:          rapid.SampledFrom([]uint32{3, 9, 1200}).Draw(t, "limit"),
			FirstIndex:     rapid.Uint32Range(1, 3).Draw(t, "first"),
			GenerationBits: uint8(rapid.IntRange(2, 5).Draw(t, "width")),
			MostPending:    rapid.SampledFrom([]int{0, 2, 700}).Draw(t, "most"),
		}
		return func() player {
			return &localPlayer{Locals: handles.NewLocals(c), first: c.FirstIndex, limit: c.Limit}
		}
	},
	"locals beside": func(t *rapid.T) func() player {
		first := rapid.SampledFrom([]uint32{12, 5000}).Draw(t, "first")
		limit := first + rapid.Uint32Range(0, 9).Draw(t, "room")
		return func() player {
			inner := handles.NewLocals(handles.LocalsConfig{Limit: 10, Words: limit, GenerationBits: 3})
			for range 3 {
				inner.Issue(1)
			}
			return &localPlayer{Locals: inner.Beside(handles.LocalsConfig{FirstIndex: first, Limit: limit}), first: first, limit: limit}
		}
	},
	"globals": func(t *rapid.T) func() player {
		limit, width := rapid.Uint32Range(1, 40).Draw(t, "limit"), rapid.IntRange(2, 4).Draw(t, "width")
		return func() player {
			return &globalPlayer{Globals: handles.NewGlobals(limit, uint8(width)), last: 1<<width - 1}
		}
	},
	"nets": func(t *rapid.T) func() player {
		c := handles.NetsConfig{
			Limit:          rapid.Uint32Range(3, 12).Draw(t, "limit"),
			FirstIndex:     rapid.Uint32Range(1, 3).Draw(t, "first"),
			GenerationBits: uint8(rapid.IntRange(2, 10).Draw(t, "width")),
		}
		return func() player { return &netPlayer{Nets: handles.NewNets(here, c)} }
	},
}

func TestARestoredSpaceGoesOnIdentically(t *testing.T) {
	for name, draw := range players {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				fresh := draw(t)
				saved, restored := fresh(), fresh()
				for range 3 {
					for _, step := range drawSteps(t, 60) {
						saved.do(step)
					}
					state := saved.state()
					require.NoError(t, restored.restore(state))
					require.NoError(t, restored.verify())
					require.Equal(t, state, restored.state())
					require.Equal(t, state, saved.state(), "saving changes nothing")
					restored.adopt(saved)
					for _, step := range drawSteps(t, 60) {
						require.Equal(t, saved.do(step), restored.do(step), "%v", step)
					}
					require.NoError(t, restored.verify())
					require.Equal(t, saved.state(), restored.state())
					if used := saved.state(); !empty(used) {
						require.ErrorIs(t, restored.restore(used), handles.ErrNotFresh)
					}
					saved, restored = restored, fresh()
				}
			})
		})
	}
}

// empty says whether a state has no words, so that its space is still fresh.
func empty(state any) bool {
	for _, field := range []string{"Words", "Uses", "Foreign"} {
		if v := reflect.ValueOf(state).FieldByName(field); v.IsValid() && v.Len() > 0 {
			return false
		}
	}
	return true
}

func TestADamagedStateIsRefusedOrAsGood(t *testing.T) {
	for name, draw := range players {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				fresh := draw(t)
				saved, restored := fresh(), fresh()
				for _, step := range drawSteps(t, 120) {
					saved.do(step)
				}
				before := restored.state()
				state := damaged(t, saved.state())
				if err := restored.restore(state); err != nil {
					require.ErrorIs(t, err, handles.ErrState)
					require.NoError(t, restored.verify())
					require.Equal(t, before, restored.state())
					require.NoError(t, restored.restore(saved.state()), "nothing has changed")
					return
				}
				require.NoError(t, restored.verify())
				require.Equal(t, state, restored.state())
				restored.adoptState()
				for _, step := range drawSteps(t, 40) {
					restored.do(step)
					require.NoError(t, restored.verify())
				}
			})
		})
	}
}

// damaged is a state with one field changed. Empty slices are nil, as in a state that was not damaged.
func damaged(t *rapid.T, state any) any {
	copied := reflect.New(reflect.TypeOf(state)).Elem()
	copied.Set(reflect.ValueOf(state))
	field := copied.Field(rapid.IntRange(0, copied.NumField()-1).Draw(t, "field"))
	if field.Kind() != reflect.Slice {
		damageNumber(t, field)
		return copied.Interface()
	}
	list := reflect.MakeSlice(field.Type(), 0, field.Len()+1)
	list = reflect.AppendSlice(list, field)
	if n := list.Len(); n == 0 {
		list = reflect.Append(list, reflect.Zero(field.Type().Elem()))
		damageElement(t, list.Index(0))
	} else {
		i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, n-1).Draw(t, "j")
		switch rapid.SampledFrom([]string{"element", "drop", "twice", "swap", "end"}).Draw(t, "damage") {
		case "element":
			damageElement(t, list.Index(i))
		case "drop":
			list = reflect.AppendSlice(list.Slice(0, i), list.Slice(i+1, n))
		case "twice":
			list = reflect.Append(list, list.Index(i))
		case "swap":
			reflect.Swapper(list.Interface())(i, j)
		case "end":
			list = list.Slice(0, i)
		}
	}
	if list.Len() == 0 {
		list = reflect.Zero(field.Type())
	}
	field.Set(list)
	return copied.Interface()
}

func damageElement(t *rapid.T, v reflect.Value) {
	if v.Kind() == reflect.Struct {
		v = v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "part"))
	}
	damageNumber(t, v)
}

func damageNumber(t *rapid.T, v reflect.Value) {
	if v.Kind() == reflect.Bool {
		v.SetBool(!v.Bool())
		return
	}
	change := rapid.SampledFrom([]uint64{1, math.MaxUint64, 1 << 30, 1 << 32, 1<<32 - 1, 1 << 33, 1 << 63, 1 << 24, 4096}).Draw(t, "change")
	v.SetUint((v.Uint() + change) & (math.MaxUint64 >> (64 - v.Type().Bits())))
}

func TestImpossibleStatesAreRefused(t *testing.T) {
	for name, harm := range map[string]func(*handles.LocalsState){
		"another stretch":        func(s *handles.LocalsState) { s.First++ },
		"too many words":         func(s *handles.LocalsState) { s.Words = slices.Concat(s.Words, s.Words) },
		"an empty end":           func(s *handles.LocalsState) { s.Words = append(s.Words, 0) },
		"a state of nobody":      func(s *handles.LocalsState) { s.Words[0] = 1 << 32 },
		"a generation too high":  func(s *handles.LocalsState) { s.Words[0] += 8 << 32 },
		"a reservation's place":  func(s *handles.LocalsState) { s.Words[1] -= 7 },
		"a lost frame":           func(s *handles.LocalsState) { s.PendingFrames = s.PendingFrames[1:] },
		"one free and pending":   func(s *handles.LocalsState) { s.Free = append(s.Free, s.Pending[0]) },
		"one free twice":         func(s *handles.LocalsState) { s.Free = append(s.Free, s.Free[0]) },
		"one free and alive":     func(s *handles.LocalsState) { s.Free[0] = handles.NewLocal(1, 2) },
		"one of the next but":    func(s *handles.LocalsState) { s.Returned[0]++ },
		"one of no index":        func(s *handles.LocalsState) { s.Burned[0] = 0 },
		"one of no generation":   func(s *handles.LocalsState) { s.Burned[0] &^= math.MaxUint32 },
		"one out of range":       func(s *handles.LocalsState) { s.Burned[0] = handles.NewLocal(12, 1) },
		"a free one's place":     func(s *handles.LocalsState) { s.Words[5]-- },
		"a retired one's place":  func(s *handles.LocalsState) { s.Words[9]-- },
		"another retired one":    func(s *handles.LocalsState) { s.Retired++ },
		"all retired":            func(s *handles.LocalsState) { s.Retired = math.MaxUint64 },
		"a burnt one of no past": func(s *handles.LocalsState) { s.Burnt = []uint32{1} },
		"a burnt one that waits": func(s *handles.LocalsState) { s.Burnt = []uint32{9} },
		"burnt ones twice":       func(s *handles.LocalsState) { s.Burnt = []uint32{2, 2} },
		"burnt ones out of line": func(s *handles.LocalsState) { s.Burnt = []uint32{3, 2} },
		"more than any number":   func(s *handles.LocalsState) { s.Over = true },
	} {
		state := mixedLocals(t).State()
		harm(&state)
		s := handles.NewLocals(handles.LocalsConfig{Limit: 20, GenerationBits: 2})
		err := s.Restore(state)
		assert.ErrorIs(t, err, handles.ErrState, name)
		assert.Zero(t, s.Lives())
	}
	state := mixedLocals(t).State()
	require.NoError(t, handles.NewLocals(handles.LocalsConfig{Limit: 20, GenerationBits: 2}).Restore(state))
	assert.ErrorIs(t, mixedLocals(t).Restore(state), handles.ErrNotFresh)
}

func TestImpossibleStatesOfGlobalsAreRefused(t *testing.T) {
	for name, harm := range map[string]func(*handles.GlobalsState){
		"beyond the limit": func(s *handles.GlobalsState) {
			*s = handles.GlobalsState{Runs: []handles.GlobalRun{{First: 1, Count: 6, Use: handles.GlobalFirst}}}
		},
		"beyond all": func(s *handles.GlobalsState) {
			*s = handles.GlobalsState{Runs: []handles.GlobalRun{{First: 2, Count: math.MaxUint32, Use: handles.GlobalFirst}}}
		},
		"index 0":              func(s *handles.GlobalsState) { s.Runs[0] = handles.GlobalRun{Count: 2, Use: handles.GlobalFirst} },
		"a run of nobody":      func(s *handles.GlobalsState) { s.Runs[0].Count = 0 },
		"an overlap":           func(s *handles.GlobalsState) { s.Runs[0].Count = 2 },
		"wrong order":          func(s *handles.GlobalsState) { s.Runs[0], s.Runs[1] = s.Runs[1], s.Runs[0] },
		"a split run":          func(s *handles.GlobalsState) { s.Runs[1].Use = handles.GlobalFirst },
		"ends in wrong order":  func(s *handles.GlobalsState) { s.Ended[0], s.Ended[1] = s.Ended[1], s.Ended[0] },
		"an end twice":         func(s *handles.GlobalsState) { s.Ended[0] = s.Ended[1] },
		"an end of nobody":     func(s *handles.GlobalsState) { s.Ended[2].Index = 5 },
		"an end of index 0":    func(s *handles.GlobalsState) { s.Ended[0].Index = 0 },
		"nothing burned":       func(s *handles.GlobalsState) { s.Ended = slices.Delete(s.Ended, 1, 2) },
		"burned in 0 ends":     func(s *handles.GlobalsState) { s.Ended[1].Times = 0 },
		"no use":               func(s *handles.GlobalsState) { s.Runs[0].Use = handles.GlobalRetired + 1 },
		"use 0":                func(s *handles.GlobalsState) { s.Runs[0].Use = 0 },
		"too many generations": func(s *handles.GlobalsState) { s.Ended[0].Times = 3 },
		"a retired one alive":  func(s *handles.GlobalsState) { s.Runs[3].Use = handles.GlobalAgain },
		"an alive one retired": func(s *handles.GlobalsState) { s.Runs[0].Use = handles.GlobalRetired },
	} {
		g := handles.NewGlobals(5, 2)
		for range 4 {
			g.Issue(0)
		}
		g.Free(2)
		g.Unissue(3)
		require.False(t, g.Raise(4, 9))
		state := g.State()
		require.Equal(t, handles.GlobalsState{
			Runs: []handles.GlobalRun{
				{First: 1, Count: 1, Use: handles.GlobalFirst}, {First: 2, Count: 1, Use: handles.GlobalFree},
				{First: 3, Count: 1, Use: handles.GlobalBurned}, {First: 4, Count: 1, Use: handles.GlobalRetired},
			},
			Ended: []handles.GlobalEnd{{Index: 2, Times: 1}, {Index: 3, Times: 1}, {Index: 4, Times: 1 << 32}},
		}, state)
		harm(&state)
		s := handles.NewGlobals(5, 2)
		assert.ErrorIs(t, s.Restore(state), handles.ErrState, name)
		assert.EqualValues(t, 1, s.Issue(0), "nothing has changed")
		assert.ErrorIs(t, s.Restore(handles.GlobalsState{}), handles.ErrNotFresh)
	}
}

func TestImpossibleStatesOfNetsAreRefused(t *testing.T) {
	for name, harm := range map[string]func(*handles.NetsState){
		"another owner":            func(s *handles.NetsState) { s.Owner++ },
		"another stretch":          func(s *handles.NetsState) { s.First = 0 },
		"too many words":           func(s *handles.NetsState) { s.Words = slices.Concat(s.Words, s.Words) },
		"one of no generation":     func(s *handles.NetsState) { s.Words[0] = 7 },
		"too many generations":     func(s *handles.NetsState) { s.Words[0] |= 1 << 40 },
		"one in no list":           func(s *handles.NetsState) { s.Words[0] = 1 << 32 },
		"a lost frame":             func(s *handles.NetsState) { s.PendingFrames = nil },
		"one free and pending":     func(s *handles.NetsState) { s.Free = s.Pending },
		"a free one bound":         func(s *handles.NetsState) { s.Words[1]++ },
		"a stranger free":          func(s *handles.NetsState) { s.Free[0] += 1 << 24 },
		"too few deaths":           func(s *handles.NetsState) { s.Deaths = 1 },
		"deaths without end":       func(s *handles.NetsState) { s.Deaths = math.MaxUint64 },
		"a burnt one of no past":   func(s *handles.NetsState) { s.Burnt = []uint32{1} },
		"a burnt one twice":        func(s *handles.NetsState) { s.Burnt = []uint32{4, 4} },
		"an own one from far":      func(s *handles.NetsState) { s.Foreign[0].Name -= 1 << 24 },
		"one of nobody":            func(s *handles.NetsState) { s.Foreign[0].Name &= math.MaxUint32 },
		"one twice":                func(s *handles.NetsState) { s.Foreign[1].Name = s.Foreign[0].Name },
		"one younger before":       func(s *handles.NetsState) { s.Foreign[0].Before = 9 },
		"one unbound, with a past": func(s *handles.NetsState) { s.Foreign[0].Local = 0 },
	} {
		n := handles.NewNets(here, handles.NetsConfig{Limit: 6, GenerationBits: 4})
		names := make([]handles.Net, 5)
		for i := range uint32(4) {
			names[i+1], _ = n.Issue(i + 1)
		}
		n.Unissue(names[4])
		_, _ = n.Issue(4)
		n.Free(names[2], 1)
		n.Confirm()
		n.Free(names[3], 2)
		far := handles.NewNet(here+1, 5, 3)
		require.True(t, n.Bind(far, 1))
		n.Free(far, 2)
		require.True(t, n.Bind(far+1<<32, 1) && n.Bind(far+1, 2))
		state := n.State()
		require.Equal(t, []handles.ForeignNet{{Name: far + 1<<32, Local: 1, Before: 3}, {Name: far + 1, Local: 2}}, state.Foreign)
		require.Equal(t, []uint32{4}, state.Burnt)
		harm(&state)
		s := handles.NewNets(here, handles.NetsConfig{Limit: 6, GenerationBits: 4})
		assert.ErrorIs(t, s.Restore(state), handles.ErrState, name)
		require.NoError(t, s.Restore(n.State()), "nothing has changed")
		require.NoError(t, s.Verify())
		assert.ErrorIs(t, s.Restore(n.State()), handles.ErrNotFresh)
	}
}

// What happened before, and cannot be told any more, is not in the state.
func TestTheStateForgetsHowItCameAbout(t *testing.T) {
	straight, winding := locals(t, 2000, true), locals(t, 2000, true)
	for range 3 { // segments come and go, a stranger claims in between
		for _, s := range []*handles.Locals{straight, winding} {
			var names []handles.Local
			for h, ok := s.Issue(0); ok; h, ok = s.Issue(0) {
				if names = append(names, h); s == winding && len(names)%3 == 0 {
					h, ok := s.Reserve()
					require.True(t, ok && s.Spawned(h, 7))
					names = append(names, h)
				}
			}
			for _, h := range names {
				end(t, s, h, 5)
			}
			s.Confirm()
		}
	}
	winding.Publish()
	require.NoError(t, winding.Verify())
	assert.Equal(t, straight.State(), winding.State())
}

// TestOnlyAFreshSpaceIsRestored asks beforehand, and then does it: both say no to a space that has been used.
func TestOnlyAFreshSpaceIsRestored(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 10})
	state := l.State()
	require.NoError(t, l.Check(state))
	_, ok := l.Reserve()
	require.True(t, ok)
	assert.ErrorIs(t, l.Check(state), handles.ErrNotFresh)
	assert.ErrorIs(t, l.Restore(state), handles.ErrNotFresh)
	assert.Equal(t, 1, l.Stats().Issued)

	g := handles.NewGlobals(10, 0)
	globals := g.State()
	require.NoError(t, g.Check(globals))
	require.EqualValues(t, 4, g.Issue(4))
	g.Unissue(4)
	assert.ErrorIs(t, g.Check(globals), handles.ErrNotFresh, "burned is used, too")
	assert.ErrorIs(t, g.Restore(globals), handles.ErrNotFresh)

	for name, use := range map[string]func(n *handles.Nets){
		"issued":             func(n *handles.Nets) { n.Issue(1) },
		"issued and dead":    func(n *handles.Nets) { h, _ := n.Issue(1); n.Free(h, 1) },
		"seen somebody's":    func(n *handles.Nets) { n.Bind(handles.NewNet(here+1, 1, 1), 1) },
		"somebody's is dead": func(n *handles.Nets) { h := handles.NewNet(here+1, 1, 1); n.Bind(h, 1); n.Free(h, 1) },
	} {
		n := handles.NewNets(here, handles.NetsConfig{})
		nets := n.State()
		require.NoError(t, n.Check(nets))
		use(n)
		assert.ErrorIs(t, n.Check(nets), handles.ErrNotFresh, name)
		assert.ErrorIs(t, n.Restore(nets), handles.ErrNotFresh, name)
		assert.NoError(t, n.Verify(), name)
	}
}
