package handles_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

func TestPlaceOfIsBeyondAllPlacesForAnybodyElse(t *testing.T) {
	generation := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 1, 2, 1<<32 - 1, 1<<32 - 2}))
	place := rapid.OneOf(rapid.Uint32Range(0, handles.NoPlace), rapid.SampledFrom([]uint32{0, handles.MaxPlace, handles.NoPlace}))
	rapid.Check(t, func(t *rapid.T) {
		h := handles.NewLocal(rapid.Uint32().Draw(t, "index"), generation.Draw(t, "generation"))
		state := rapid.SampledFrom([]handles.State{handles.Free, handles.Reserved, handles.Alive, handles.Dying}).Draw(t, "state")
		w := handles.MakeWord(rapid.OneOf(generation, rapid.Just(h.Generation())).Draw(t, "of the word"), state, place.Draw(t, "place"))
		if got := w.PlaceOf(h); w.State() == handles.Alive && w.Generation() == h.Generation() {
			require.EqualValues(t, w.Place(), got)
		} else {
			require.Greater(t, got, uint64(handles.MaxPlace))
		}
		require.Greater(t, handles.Word(0).PlaceOf(h), uint64(handles.MaxPlace), "an index that was never claimed")
	})
}

func TestPagesHaveTheWords(t *testing.T) {
	l := handles.NewLocals(handles.LocalsConfig{Limit: 3 * handles.PageSize})
	require.Len(t, l.Pages(), 4)
	require.Nil(t, l.Pages()[1].Load())
	for range handles.PageSize + 5 {
		h, ok := l.Issue(7)
		require.True(t, ok)
		w := l.Pages()[h.Index()/handles.PageSize].Load()[h.Index()%handles.PageSize].Load()
		require.EqualValues(t, l.Word(h.Index()), w)
	}
	require.Nil(t, l.Pages()[2].Load())
}
