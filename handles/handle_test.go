package handles_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

func TestHandlesKeepWhatTheyAreMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, generation := rapid.Uint32().Draw(t, "index"), rapid.Uint32().Draw(t, "generation")
		owner := rapid.Uint8().Draw(t, "owner")

		g := handles.NewGlobal(index, generation)
		assert.Equal(t, []uint32{index, generation}, []uint32{g.Index(), g.Generation()})
		assert.Equal(t, uint64(index)<<32|uint64(generation), uint64(g))

		l := handles.NewLocal(index, generation)
		assert.Equal(t, []uint32{index, generation}, []uint32{l.Index(), l.Generation()})
		assert.Equal(t, uint64(index)<<32|uint64(generation), uint64(l))

		n := handles.NewNet(owner, index, generation)
		low := index & handles.MaxNetIndex
		assert.Equal(t, []uint32{low, generation, uint32(owner)}, []uint32{n.Index(), n.Generation(), uint32(n.Owner())})
		assert.Equal(t, uint64(generation)<<32|uint64(owner)<<24|uint64(low), uint64(n))
		assert.Equal(t, uint32(owner)<<24|low, n.Wire())
	})
}

func TestZeroIsNoHandle(t *testing.T) {
	assert.True(t, handles.Global(0).IsZero() && handles.Local(0).IsZero() && handles.Net(0).IsZero())
	assert.False(t, handles.NewGlobal(1, 1).IsZero() || handles.NewLocal(1, 1).IsZero() || handles.NewNet(0, 1, 1).IsZero())
	assert.False(t, handles.NewLocal(0, 1).IsZero(), "only all zeros is the zero value")
}

func TestTextOfHandles(t *testing.T) {
	assert.Equal(t, "G5.1", handles.NewGlobal(5, 1).String())
	assert.Equal(t, "L5.1", handles.NewLocal(5, 1).String())
	assert.Equal(t, "N0:7.3", handles.NewNet(0, 7, 3).String())
	assert.Equal(t, "G0.0 L0.0 N0:0.0", strings.Join([]string{
		handles.Global(0).String(), handles.Local(0).String(), handles.Net(0).String()}, " "))
	assert.Equal(t, "L4294967295.4294967295", handles.Local(math.MaxUint64).String())
	assert.Equal(t, "N255:16777215.4294967295", handles.Net(math.MaxUint64).String())
}

func TestHandlesAreStringsInJSON(t *testing.T) {
	type all struct {
		G handles.Global
		L handles.Local
		N handles.Net
		M map[handles.Local]handles.Net
	}
	in := all{handles.NewGlobal(1, 2), handles.NewLocal(3, 4), handles.NewNet(5, 6, 7),
		map[handles.Local]handles.Net{handles.NewLocal(8, 9): handles.Net(math.MaxUint64)}}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	assert.Equal(t, `{"G":"G1.2","L":"L3.4","N":"N5:6.7","M":{"L8.9":"N255:16777215.4294967295"}}`, string(text))
	var out all
	require.NoError(t, json.Unmarshal(text, &out))
	assert.Equal(t, in, out)
	assert.ErrorIs(t, json.Unmarshal([]byte(`{"L":"G3.4"}`), &out), handles.ErrSyntax)
}

func TestTextsThatAreNoHandle(t *testing.T) {
	for _, text := range []string{
		"", "5.1", "l5.1", "X5.1", " L5.1", "L5.1 ", "L5", "L5.", "L.1", "L.", "L", "L5.1.1", "L5:1", "L5,1",
		"L-5.1", "L+5.1", "L5.-1", "L5.+1", "L05.1", "L5.01", "L00.0", "L0x5.1", "L5_0.1", "L5.1\x00", "L٥.1",
		"L4294967296.1", "L5.4294967296", "L99999999999999999999999.1", "L18446744073709551617.1",
	} {
		h := handles.NewLocal(7, 7)
		assert.ErrorIs(t, h.UnmarshalText([]byte(text)), handles.ErrSyntax, "%q", text)
		assert.Equal(t, handles.NewLocal(7, 7), h, "%q changed the handle", text)

		g := handles.NewGlobal(7, 7)
		text := strings.Replace(text, "L", "G", 1)
		assert.ErrorIs(t, g.UnmarshalText([]byte(text)), handles.ErrSyntax, "%q", text)
		assert.Equal(t, handles.NewGlobal(7, 7), g, "%q changed the handle", text)
	}
	for _, text := range []string{
		"", "N", "N0", "N0:", "N0:7", "N0:7.", "N:7.3", "N7.3", "N0.7.3", "L7.3", "N256:7.3", "N0:16777216.3",
		"N0:7.4294967296", "N00:7.3", "N0:07.3", "N-1:7.3", "N0:7.3 ", "N0:7.3:1",
	} {
		h := handles.NewNet(7, 7, 7)
		assert.ErrorIs(t, h.UnmarshalText([]byte(text)), handles.ErrSyntax, "%q", text)
		assert.Equal(t, handles.NewNet(7, 7, 7), h, "%q changed the handle", text)
	}
	var h handles.Local
	err := h.UnmarshalText([]byte(strings.Repeat("9", 1<<20)))
	assert.Less(t, len(err.Error()), 200, "a message does not repeat whatever was sent")
}

func TestAppendTextKeepsWhatWasThere(t *testing.T) {
	buf := []byte("at ")
	buf, err := handles.NewGlobal(1, 2).AppendText(buf)
	require.NoError(t, err)
	buf, err = handles.NewLocal(3, 4).AppendText(append(buf, ' '))
	require.NoError(t, err)
	buf, err = handles.NewNet(5, 6, 7).AppendText(append(buf, ' '))
	require.NoError(t, err)
	assert.Equal(t, "at G1.2 L3.4 N5:6.7", string(buf))
}

func TestNetHandlesOnTheWire(t *testing.T) {
	n := handles.NewNet(0x12, 0x345678, 0x9abcdef0)
	buf := n.Append([]byte{1, 2})
	assert.Equal(t, []byte{1, 2, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78}, buf)
	got, rest, err := handles.ParseNet(append(buf[2:], 9, 8))
	require.NoError(t, err)
	assert.Equal(t, n, got)
	assert.Equal(t, []byte{9, 8}, rest)
	for short := range 8 {
		data := buf[2 : 2+short]
		got, rest, err := handles.ParseNet(data)
		assert.ErrorIs(t, err, handles.ErrShort)
		assert.Zero(t, got)
		assert.Equal(t, data, rest)
	}
}

func TestStatesAndStatusesHaveNames(t *testing.T) {
	for want, s := range map[string]handles.State{"free": handles.Free, "reserved": handles.Reserved,
		"alive": handles.Alive, "dying": handles.Dying, "invalid": 17} {
		assert.Equal(t, want, s.String())
	}
	for want, s := range map[string]handles.Status{"invalid": handles.Invalid, "stale": handles.Stale,
		"not spawned": handles.NotSpawned, "live": handles.Live, "unknown": 17} {
		assert.Equal(t, want, s.String())
	}
}

func TestWordsKeepWhatTheyAreMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generation, place := rapid.Uint32().Draw(t, "generation"), rapid.Uint32().Draw(t, "place")
		state := handles.State(rapid.IntRange(0, 3).Draw(t, "state"))
		w := handles.MakeWord(generation, state, place)
		assert.Equal(t, generation, w.Generation())
		assert.Equal(t, state, w.State())
		assert.Equal(t, place&handles.NoPlace, w.Place(), "a place that is too large must not spill into the state")
	})
	assert.EqualValues(t, 1<<30-1, handles.NoPlace)
	assert.EqualValues(t, handles.NoPlace-1, handles.MaxPlace)
}

// FuzzUnmarshalText: whatever is accepted has exactly one spelling, and what is refused changes nothing.
func FuzzUnmarshalText(f *testing.F) {
	for _, s := range []string{"L5.1", "G5.1", "N0:7.3", "L0.0", "N255:16777215.4294967295", "L05.1", "L-1.1", "N256:1.1", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l handles.Local
		if err := l.UnmarshalText(text); err == nil {
			require.Equal(t, string(text), l.String())
		} else {
			require.ErrorIs(t, err, handles.ErrSyntax)
			require.Zero(t, l)
		}
		var g handles.Global
		if err := g.UnmarshalText(text); err == nil {
			require.Equal(t, string(text), g.String())
		} else {
			require.ErrorIs(t, err, handles.ErrSyntax)
			require.Zero(t, g)
		}
		var n handles.Net
		if err := n.UnmarshalText(text); err == nil {
			require.Equal(t, string(text), n.String())
		} else {
			require.ErrorIs(t, err, handles.ErrSyntax)
			require.Zero(t, n)
		}
	})
}

// FuzzParseNet: eight bytes in are eight bytes out, less is an error, and the rest is left.
func FuzzParseNet(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		n, rest, err := handles.ParseNet(data)
		if len(data) < 8 {
			require.ErrorIs(t, err, handles.ErrShort)
			require.Len(t, rest, len(data))
			return
		}
		require.NoError(t, err)
		require.Equal(t, data, append(n.Append(nil), rest...))
		var again handles.Net
		require.NoError(t, again.UnmarshalText([]byte(n.String())))
		require.Equal(t, n, again)
	})
}
