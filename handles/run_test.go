package handles_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

// A run that is killed or moved ends at the first name that is not alive where it should be: also at one that was never
// issued, or cannot have been.
func TestARunEndsAtANameThatNobodyHas(t *testing.T) {
	for name, wrong := range map[string]handles.Local{
		"zero":                  0,
		"no generation":         handles.NewLocal(2, 0),
		"an index never used":   handles.NewLocal(9, 1),
		"a page never made":     handles.NewLocal(1<<16, 1),
		"a page there is not":   handles.NewLocal(1<<30, 1),
		"the next generation":   handles.NewLocal(2, 2),
		"somebody at his place": handles.NewLocal(1, 1),
	} {
		l := handles.NewLocals(handles.LocalsConfig{Limit: 1 << 20})
		first, ok := l.IssueRun(2, 10)
		require.True(t, ok)
		hs := append(runOf(first, 2), wrong)
		require.Equal(t, 2, l.MoveRun(hs, 10, 20), name)
		require.Equal(t, uint32(21), l.Word(2).Place(), name)
		require.Equal(t, 2, l.KillRun(hs, 20), name)
		require.Zero(t, l.KillRun(hs, 20), name)
		require.Zero(t, l.KillRun(hs[2:], 20), name)
		require.Equal(t, 2, l.Stats().Issued, name)
		require.NoError(t, l.Verify(), name)
	}
}

// An index that comes twice in a run is issued once.
func TestAGlobalIndexIsIssuedOnceToARun(t *testing.T) {
	g := handles.NewGlobals(1<<10, 32)
	for range 4 {
		g.Issue(0)
	}
	for i := range uint32(4) {
		g.Free(i + 1)
	}
	twice := []handles.Local{handles.NewLocal(2, 2), handles.NewLocal(3, 2), handles.NewLocal(2, 2), handles.NewLocal(4, 2)}
	require.Equal(t, 2, g.IssueRun(twice))
	require.Equal(t, 2, g.Stats().Issued)
	require.Equal(t, 1, g.IssueRun(twice[3:]))
	require.NoError(t, g.Verify())
}
