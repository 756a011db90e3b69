package registry_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// TestStepsThatNoRecordHas are refused as they are added, which is where what was read from outside comes in.
func TestStepsThatNoRecordHas(t *testing.T) {
	k := newWorld(t, registry.Config{Deterministic: true, MaxEntities: 100})
	core, err := k.r.Attach(registry.Hooks{})
	require.NoError(t, err)
	defer core.Detach()
	require.NoError(t, core.Enter(true))
	defer core.Leave()
	far := handles.NewLocal(math.MaxUint32, 1)
	last := uint64(2 * (2*100 + 1<<16)) // more than there is
	refused := func(want string, before []registry.StepKind, s registry.Step) {
		t.Helper()
		rec := core.NewRecord()
		require.EqualValues(t, 1, rec.Frame())
		for _, kind := range before {
			require.NoError(t, rec.Add(&registry.Step{Kind: kind}))
		}
		require.ErrorContains(t, rec.Add(&s), want)
	}
	in := []registry.StepKind{registry.StepCallback}
	refused("no step of kind", in, registry.Step{Kind: registry.StepKinds})
	refused("no step of kind", in, registry.Step{Kind: 255})
	refused("outside a callback", nil, registry.Step{Kind: registry.StepDestroy})
	refused("outside a callback", []registry.StepKind{registry.StepUpdate}, registry.Step{Kind: registry.StepDestroyed})
	refused("outside a callback", []registry.StepKind{registry.StepUpdate, registry.StepSeen}, registry.Step{Kind: registry.StepDestroy})
	refused("a stretch of kind", []registry.StepKind{registry.StepUpdate}, registry.Step{Kind: registry.StepUpdate})
	refused("a stretch of kind", []registry.StepKind{registry.StepCallback}, registry.Step{Kind: registry.StepUpdate})
	refused("a stretch of kind", []registry.StepKind{registry.StepSeen, registry.StepCallback}, registry.Step{Kind: registry.StepSeen})
	refused("beyond the last index", in, registry.Step{Kind: registry.StepDestroy, Entity: far})
	refused("beyond the last index", in, registry.Step{Kind: registry.StepParent, Other: uint64(far)})
	for _, kind := range []registry.StepKind{registry.StepSpawn, registry.StepSpawnReserved, registry.StepHome, registry.StepBlock} {
		refused("of class -1", in, registry.Step{Kind: kind, Class: -1})
		refused("of class 2", in, registry.Step{Kind: kind, Class: 2})
		refused("a batch of 101 entities", in, registry.Step{Kind: kind, Other: 101})
	}
	refused("a pool of 0 slots", in, registry.Step{Kind: registry.StepBlock})
	refused("a pool of 5 slots", in, registry.Step{Kind: registry.StepBlock, Other: 5, Entity: handles.NewLocal(1, 1)})
	refused("a step of pool", in, registry.Step{Kind: registry.StepTake, Other: math.MaxUint64})
	refused("a step of pool", in, registry.Step{Kind: registry.StepInitial, Other: last * 4})
	for _, kind := range []registry.StepKind{registry.StepChange, registry.StepWrite, registry.StepInitial} {
		refused("of component 200", in, registry.Step{Kind: kind, Component: 200})
	}
	for _, field := range []int{-1, 1000} {
		refused("field", in, registry.Step{Kind: registry.StepWrite, Field: field})
		refused("field", in, registry.Step{Kind: registry.StepInitial, Field: field})
	}
	refused("net names were taken back", in, registry.Step{Kind: registry.StepBurnNet, Other: handles.MaxNetIndex + 1})

	rec := core.NewRecord()
	require.ErrorContains(t, rec.Lose(registry.Lost{Entity: far}), "beyond the last index")
	_, err = core.RecordOf(0)
	require.ErrorIs(t, err, registry.ErrTooOld)
	_, err = core.RecordOf(7)
	require.ErrorIs(t, err, registry.ErrTooOld)
	require.NoError(t, core.Feed(nil))
	require.Zero(t, k.r.Stats().Live)
}

func TestARecordIsDoneWhereItBelongs(t *testing.T) {
	attached := func(c registry.Config) *registry.Core {
		k := newWorld(t, c)
		core, err := k.r.Attach(registry.Hooks{})
		require.NoError(t, err)
		require.NoError(t, core.Enter(true))
		t.Cleanup(func() { core.Leave(); core.Detach() })
		return core
	}
	plain, one, two := attached(registry.Config{}), attached(registry.Config{Deterministic: true}), attached(registry.Config{Deterministic: true})
	require.ErrorIs(t, plain.KeepRecords(), registry.ErrDeterministic)
	require.ErrorIs(t, plain.Feed(plain.NewRecord()), registry.ErrDeterministic)
	require.ErrorIs(t, one.Feed(two.NewRecord()), registry.ErrTooOld, "another registry's")
	require.NoError(t, one.Feed(one.NewRecord()))
	require.NoError(t, one.Feed(nil))
}
