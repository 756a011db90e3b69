package planted

import "fmt"

// Variable is the environment variable that names the bug of a process.
const Variable = "AIRLOCK_PLANTED"

// Bug is one of the bugs; the zero Bug is none.
type Bug uint8

// The bugs, by package.
const (
	None Bug = iota

	GenerationNotBumped
	EarlyRecycle
	StaleKill
	WrapNotRetired
	RewindKeepsHint
	NetGenerationNotBumped
	UnbindRemembers
	RecordGenerationKept

	SlotGivenTwice
	ColumnNotZeroed
	ChangeNotStamped
	TierNotPublished
	RingOffByOne
	RestoreSkipsColumn
	GhostReapedEarly
	RunPlaneNotCleared
	MovedColumnLost

	TombstoneDropped
	EventsOutOfOrder
	ObserverToldTwice
	ObituaryLost
	ParentNotRestored
	UndoOutOfOrder
	ValueNotRestored
	RevivedActive
	GrandchildSurvives
	MoveNotTold
	WishLost
	PlaneWordBorder
	DeadInFrame
	PinLost
	WishesNotRewound
	PastForgetsTheDead
	MoveActivates
	NetNameKeptByUndo
	ObituaryShownEarly
	FrameReadPlainly

	LostWakeUp
	BatonPassedTwice
	CancelledCallerRuns
	LineReversed
	DoubleReply
	WrongReply
	BatchStopsAtError
	StoppedTicketForgotten
	WrongPeerAcknowledged
	NetNameBeforeAllAcks
	WindowFrameEarly
	LaneStarved
	LaneOvertaken
	InputMissed
	SyncTestSkipsLast
	InboxOneTooMany
	TicketUnlocked
	CrowdUnlocked

	RunOneTooLong
	MatchesNotRenewed
	MaskCountKept
	LoopDoesNotMark
	CursorStopsAtWord
	ParallelLosesPart

	FieldNotHashed
	HashRemembered
	JournalDropsStep
	DiffMissesField

	InstanceNotReset
	PrefabChildLeaked
	PoolGrowsPastMax
	PoolCountsTwice

	CompactionMovesTheDead

	BatchEndsTooMany
	BatchMinIsMax
	InterpreterSkipsSlot

	Bugs int = iota // how many there are, None among them
)

// Description is what is known of a bug.
type Description struct {
	Name    string // for Variable
	Package string // where it is
	Wrong   string // what goes wrong
}

var descriptions = [Bugs]Description{
	None: {"none", "", "nothing"},

	GenerationNotBumped:    {"generation-not-bumped", "handles", "an index is issued again with the generation that died"},
	EarlyRecycle:           {"early-recycle", "handles", "a confirm reaches one frame too far"},
	StaleKill:              {"stale-kill", "handles", "a stale handle kills who has its index now"},
	WrapNotRetired:         {"wrap-not-retired", "handles", "an index goes on behind its last generation"},
	RewindKeepsHint:        {"rewind-keeps-hint", "handles", "a rewound space goes on from where reservers were"},
	NetGenerationNotBumped: {"net-generation-not-bumped", "handles", "a net name is issued again as it was"},
	UnbindRemembers:        {"unbind-remembers", "handles", "a bind that is undone leaves the generation it learned"},
	RecordGenerationKept:   {"record-generation-kept", "handles", "a record is issued again with its old generation"},

	SlotGivenTwice:     {"slot-given-twice", "archetype", "slot 63 of a word stays a hole when it is taken"},
	ColumnNotZeroed:    {"column-not-zeroed", "archetype", "a reclaimed slot keeps some of its cells"},
	ChangeNotStamped:   {"change-not-stamped", "archetype", "a write does not count as a change of its chunk"},
	TierNotPublished:   {"tier-not-published", "archetype", "Volatile columns do not come to the next frame"},
	RingOffByOne:       {"ring-off-by-one", "archetype", "a frame is copied from the buffer beside the last one"},
	RestoreSkipsColumn: {"restore-skips-column", "archetype", "going back restores the first column only"},
	GhostReapedEarly:   {"ghost-reaped-early", "archetype", "memory that a held frame shows is used again"},
	RunPlaneNotCleared: {"run-plane-not-cleared", "archetype", "a reclaimed run leaves the last slot of a word Active"},
	MovedColumnLost:    {"moved-column-lost", "archetype", "compaction moves odd columns of the first slot only"},

	TombstoneDropped:   {"tombstone-dropped", "registry", "the last of several deaths from outside is lost"},
	EventsOutOfOrder:   {"events-out-of-order", "registry", "events of a kind come newest first"},
	ObserverToldTwice:  {"observer-told-twice", "registry", "an observer hears of everything twice"},
	ObituaryLost:       {"obituary-lost", "registry", "the first of several deaths has no obituary"},
	ParentNotRestored:  {"parent-not-restored", "registry", "undo leaves a child where it was put"},
	UndoOutOfOrder:     {"undo-out-of-order", "registry", "undo takes steps back pairwise exchanged"},
	ValueNotRestored:   {"value-not-restored", "registry", "undo leaves what was set"},
	RevivedActive:      {"revived-active", "registry", "who is revived by undo is active"},
	GrandchildSurvives: {"grandchild-survives", "registry", "death goes down one level only"},
	MoveNotTold:        {"move-not-told", "registry", "subscribers are not told of what compaction moves"},
	WishLost:           {"wish-lost", "registry", "the third of the things put off is not done"},
	PlaneWordBorder:    {"plane-word-border", "registry", "a batch that crosses a word leaves the slot before the border inactive"},
	DeadInFrame:        {"dead-in-frame", "registry", "a published frame shows who died in it"},
	PinLost:            {"pin-lost", "registry", "an older frame that is acquired is not held"},
	WishesNotRewound:   {"wishes-not-rewound", "registry", "going back forgets what was put off"},
	PastForgetsTheDead: {"past-forgets-the-dead", "registry", "who is dead can be destroyed once more while the past is simulated"},
	MoveActivates:      {"move-activates", "registry", "who gets a component becomes active"},
	NetNameKeptByUndo:  {"net-name-kept-by-undo", "registry", "a net name that undo takes away is never free again"},
	ObituaryShownEarly: {"obituary-shown-early", "registry", "an obituary may be read before it is written"},
	FrameReadPlainly:   {"frame-read-plainly", "registry", "the number of the frame is read without an atomic load"},

	LostWakeUp:             {"lost-wake-up", "logic", "now and then a caller that sleeps is not woken"},
	BatonPassedTwice:       {"baton-passed-twice", "logic", "two callers have the window at once"},
	CancelledCallerRuns:    {"cancelled-caller-runs", "logic", "a caller runs whose context ended before it was given the window"},
	LineReversed:           {"line-reversed", "logic", "callers that wait are served newest first"},
	DoubleReply:            {"double-reply", "logic", "a ticket is answered twice"},
	WrongReply:             {"wrong-reply", "logic", "callbacks of a batch get each other's answers"},
	BatchStopsAtError:      {"batch-stops-at-error", "logic", "behind an error nothing of a batch runs"},
	StoppedTicketForgotten: {"stopped-ticket-forgotten", "logic", "tickets that are open at the end are never done"},
	WrongPeerAcknowledged:  {"wrong-peer-acknowledged", "logic", "an acknowledgement counts for every peer"},
	NetNameBeforeAllAcks:   {"net-name-before-all-acks", "logic", "one peer's acknowledgement frees a net name"},
	WindowFrameEarly:       {"window-frame-early", "logic", "local names are confirmed a frame early"},
	LaneStarved:            {"lane-starved", "logic", "the last of several lanes is never served"},
	LaneOvertaken:          {"lane-overtaken", "logic", "operations of a lane overtake each other"},
	InputMissed:            {"input-missed", "logic", "frames that are simulated again miss older inputs"},
	SyncTestSkipsLast:      {"synctest-skips-last", "logic", "a SyncTest leaves the last frame out"},
	InboxOneTooMany:        {"inbox-one-too-many", "logic", "an inbox takes one more than its capacity"},
	TicketUnlocked:         {"ticket-unlocked", "logic", "a ticket is answered without its lock"},
	CrowdUnlocked:          {"crowd-unlocked", "logic", "a new place in line is noted without the lock"},

	RunOneTooLong:     {"run-one-too-long", "views", "a run that ends with a word shows one slot more"},
	MatchesNotRenewed: {"matches-not-renewed", "views", "queries do not see archetypes that came later"},
	MaskCountKept:     {"mask-count-kept", "views", "a mask counts what it counted the first time"},
	LoopDoesNotMark:   {"loop-does-not-mark", "views", "what a loop writes does not count as changed"},
	CursorStopsAtWord: {"cursor-stops-at-word", "views", "a cursor does not go on behind a word of the plane"},
	ParallelLosesPart: {"parallel-loses-part", "views", "a parallel loop leaves out the last quarter"},

	FieldNotHashed:   {"field-not-hashed", "snapshot", "of a split component the first field is hashed only"},
	HashRemembered:   {"hash-remembered", "snapshot", "a changed column keeps the hash of its chunk"},
	JournalDropsStep: {"journal-drops-step", "snapshot", "a journal does not have who was made active"},
	DiffMissesField:  {"diff-misses-field", "snapshot", "Diff compares the first column only"},

	InstanceNotReset:  {"instance-not-reset", "pool", "an instance goes back as it was left"},
	PrefabChildLeaked: {"prefab-child-leaked", "pool", "children behind the first are linked to nobody"},
	PoolGrowsPastMax:  {"pool-grows-past-max", "pool", "a pool grows by whole steps, whatever its limit"},
	PoolCountsTwice:   {"pool-counts-twice", "pool", "a prefab counts some of its entities twice"},

	CompactionMovesTheDead: {"compaction-moves-the-dead", "defrag", "compaction moves who was just destroyed"},

	BatchEndsTooMany:     {"batch-ends-too-many", "declare", "the batch backend ends the neighbour, too"},
	BatchMinIsMax:        {"batch-min-is-max", "declare", "min with a number is max in the batch backend"},
	InterpreterSkipsSlot: {"interpreter-skips-slot", "declare", "the interpreter spawns behind the first slot"},
}

// Describe says what is known of b.
func Describe(b Bug) Description {
	if int(b) < Bugs {
		return descriptions[b]
	}
	return Description{Name: b.String()}
}

// Races says whether b is a missing happens-before edge: without the race detector tests see one by luck only.
func Races(b Bug) bool {
	switch b {
	case ObituaryShownEarly, FrameReadPlainly, TicketUnlocked, CrowdUnlocked:
		return true
	}
	return false
}

// Find finds a bug by its name.
func Find(name string) (Bug, bool) {
	for b := range descriptions {
		if descriptions[b].Name == name {
			return Bug(b), true
		}
	}
	return None, false
}

// String is the bug's name.
func (b Bug) String() string {
	if int(b) < Bugs {
		return descriptions[b].Name
	}
	return fmt.Sprintf("Bug(%d)", uint8(b))
}
