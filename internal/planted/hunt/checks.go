package main

import (
	"slices"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// check is a set of tests of a package.
type check struct {
	pkg   string
	tests string // a pattern of names
	kind  string // of a general check; "" for all tests of the package
	race  bool   // with the race detector: for bugs that are races, and only for them
	tags  string // of the build, beside planted
}

func (c check) binary() string {
	name := c.pkg
	if c.tags != "" {
		name += "." + c.tags
	}
	if c.race {
		name += ".race"
	}
	return name
}

// own is the kind of a check that is all tests of a package.
const own = ""

// generals are the general checks, what is cheap first.
var generals = []check{
	{pkg: "handles", kind: "model", tests: "AgreesWithAModel|AgreeWithAModel|AgreeWithTwoModels|AgreeWithPlainSlices|ARewoundSpaceDoesTheSame|RecyclesAreAFIFO|ARestoredSpaceGoesOn"},
	{pkg: "handles", kind: "seeds", tests: "^Fuzz"},
	{pkg: "handles", kind: "crowd", tests: "ALongWalkNeverAliases|ExactlyOneKillerWins|UnissueAndKillExclude|ReserversAndTheOwner|NetLookUpsNeverMix"},
	{pkg: "archetype", kind: "model", tests: "AgreeWithAModel|AgreeWithPlainSlots|AgreeWithAMapOfNumbers|RunsAreManySingleSteps|ClosedFramesStay|ChunksComeAndGo|ARebuiltStore"},
	{pkg: "registry", kind: "model", tests: "LifecycleAgrees|PoolsAgree|ARestoredRegistryIsTheOne|SettledContentHasOneName"},
	{pkg: "registry", kind: "seeds", tests: "^Fuzz"},
	{pkg: "registry", kind: "crowd", tests: "SixteenGoroutinesAgree|ForkIsTheSameForAnyNumber|ReadersBesideTheOwner"},
	{pkg: "registry", kind: "race", tests: "SixteenGoroutinesAgree|ReadersBesideTheOwner", race: true},
	{pkg: "stress", kind: "model", tests: "ARegistryAgreesWithTheModel|AScriptIsTheSameOnEveryStage|SavedScriptsEndAsTheyDid|^Fuzz"},
	{pkg: "stress", kind: "mutation", tests: "TheHashCoversEveryKindOfField|AHashThatForgetsAField"},
	{pkg: "stress", kind: "load", tests: "EveryScenarioKeepsEveryInvariant|ManyRandomEndings"},
	{pkg: "stress", kind: "history", tests: "HistoriesOfEightGoroutines"},
	{pkg: "snapshot", kind: "model", tests: "ALoadedRegistryGoesOn|HashIsThatOfAWalkWithoutMemory|HashGoesBack|LogGivesBack|ContainerGivesBack"},
	{pkg: "snapshot", kind: "mutation", tests: "EveryBitShows|HashSeesStructure|LeafAtFindsEveryByte"},
	{pkg: "snapshot", kind: "seeds", tests: "^Fuzz"},
	{pkg: "logic", kind: "model", tests: "PeersThatMisbehave|AnInboxAgrees"},
	{pkg: "logic", kind: "simulation", tests: "^TestSimulation$", tags: "faults"},
	{pkg: "logic", kind: "crowd", tests: "OneDestroyerEach"},
	{pkg: "logic", kind: "race", tests: "HistoriesAreLinearizable|SixteenGoroutinesAndEveryOperation|PeersComeAndGoWhile", race: true},
	{pkg: "logic", kind: "history", tests: "HistoriesAreLinearizable"},
	{pkg: "logic", kind: "ledger", tests: "ALedgerSurvivesRollbacks|ALedgerOfPools|SixteenGoroutinesAndEveryOperation|RollbacksAmidOutsiders|NetNamesStayWithTheirEntities"},
	{pkg: "logic", kind: "comparison", tests: "PoolsWhereOneSideRollsBack|SyncTestOf|RollbackOnOneSideOnly|ReplayDoesItAgain|ReplayOfARace|ReplayOfPools|FramesAreAlikeForAnyNumberOfWorkers|ParallelEqualsRuns"},
	{pkg: "logic", kind: "seeds", tests: "^Fuzz"},
	{pkg: "pool", kind: "model", tests: "AgreesWithAPlainModel|AgreeWithPlainSlices|AgreeWithAPlainModel"},
	{pkg: "defrag", kind: "model", tests: "AgreesWithAMap"},
	{pkg: "views", kind: "model", tests: "AgreeWithAMap|AgreesWithSlotBySlot|NextLiveFinds|ParallelEqualsRuns"},
	{pkg: "declare", kind: "comparison", tests: "RandomProgramsAgree|Declare1TwoBackends|AWorldPassesASyncTest|AJournalOfAWorld|ASavedWorldGoesOn"},
}

// layers are the packages from the bottom up; those of a layer do not import each other.
var layers = [][]string{{"handles"}, {"archetype"}, {"registry"}, {"views", "defrag", "pool", "snapshot"}, {"logic"}, {"stress", "declare"}}

func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

// checksFor are the checks that a bug is put through, in order: the general ones of its package and of those above it, then
// all tests of the package. Those with the race detector come first if the bug is a race, and not at all if it is none: they
// are the slow ones, and show nothing more.
func checksFor(b planted.Bug) (list []check) {
	pkg := planted.Describe(b).Package
	add := func(race bool) {
		for _, c := range generals {
			if c.race == race && c.pkg == pkg {
				list = append(list, c)
			}
		}
		for _, c := range generals {
			if c.race == race && layerOf(c.pkg) > layerOf(pkg) {
				list = append(list, c)
			}
		}
	}
	if planted.Races(b) {
		add(true)
	}
	add(false)
	return append(list, check{pkg: pkg, kind: own})
}
