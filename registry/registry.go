package registry

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/bitset"
	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/check"
)

// Registry holds entities. Make one with New; its zero value is not usable.
//
// Fields marked "owner" are touched by the goroutine that owns the registry only. The
// owner channel carries the happens-before edge from one owner to the next; inside an
// engine the baton of the handshake does, and inside a frame fork and join of the workers.
//
// Invariant: every alive word names a slot whose entity cell holds that handle, and every
// such slot has an alive word, or one that another goroutine has killed and that waits in
// the outside list. Verify walks it all.
type Registry struct {
	cfg   Config
	id    uintptr       // names this registry to package caller
	frame atomic.Uint64 // stored by the owner, loaded by any goroutine

	// Any goroutine, by atomics.
	locals       *handles.Locals // the inner space; what the words say goes for both
	outer        *handles.Locals // the outer one, see spaces.go
	globals      *handles.Globals
	nets         *handles.Nets
	records      *handles.LazyWords // by local index: its record index; 0 when that is the same and not parted
	netOf        *handles.LazyWords // by local index: its net handle
	nextDead     *handles.LazyWords // by local index: the next one in the outside list
	nextReserved *handles.LazyWords // by local index: the next one in the list of reservations
	reserved     atomic.Uint64      // head of that list, a local index; see pushReserved
	outside      atomic.Uint64      // head of the list of deaths from outside, a local index
	killed       atomic.Int64       // length of that list, for statistics
	netDeaths    atomic.Uint64      // deaths with a net handle, stored by the owner when they cannot be undone any more
	room         atomic.Int64       // entities that may still be born, less what the owner holds in stash
	freed        atomic.Int64       // with a temporal ring: room of those whom others have destroyed, until the owner sees to it
	fates        fates              // who is dead in the present, while frames are simulated again
	board        statBoard
	obits        obituaries

	// Ownership.
	owner   chan struct{} // one place: who puts a value in owns the registry
	running atomic.Bool   // an engine owns it for as long as it runs
	engine  atomic.Pointer[Core]

	mu        sync.Mutex // guards schema writes, classes and pending observers; leaf lock
	schema    *archetype.Schema
	classes   []classEntry // by class index; append-only, read by the owner under mu
	obsQueue  []*Observer  // observers that wait for the next window
	obsLeave  bool         // an observer was removed since the last window
	obsNumber int          // the number the last observer got

	// Owner only from here on.
	store       *archetype.Store
	issuer      *handles.Locals // the space that births take their handles from
	outerFirst  uint32          // index from which they are the outer space's; 0: there is one space; never changes
	stash       int64           // part of room that the owner holds, see takeRoom
	held        heldRoom        // how much of stash frames of the past need
	exact       bool            // few enough entities that the owner holds no stash, but for the ring's sake
	inactive    int             // living entities with a clear Active bit
	dying       []handles.Local // dead, not reclaimed
	graves      []grave         // of dying, one each
	placeless   int             // of them, those without a slot
	spareDying  []handles.Local // what sortByPlace sorts into
	spareGraves []grave
	ranks       []uint32 // by word of 64 cache indices: how many words of slots loops meet before it; sortByPlace's
	ranked      []uint32 // by such a number: the word
	obitMark    int      // dying[:obitMark] have their obituary
	deadBefore  int      // dying[:deadBefore] died before the present callback
	namedMark   int      // dying[:namedMark] are in namedDeaths
	namedDeaths uint64   // of dying, those with a net handle whose index will be pending
	causeNow    string
	causeAt     uint32     // place of causeNow in causes, plus one; 0 before a death needs it
	causes      []*string  // causes of the deaths in dying, see causeIndex
	recordsPart bool       // some record is parted: see nameRecord
	parted      bitset.Set // records that have served another local index than their own
	netsUsed    bool       // netOf has words: some entity had a net handle
	causeIntern map[string]*string
	family      []kin
	cascade     []handles.Local

	undo        []undoOp
	undoFrom    int // where the present callback's steps begin
	deaths      deathsByName
	burned      []handles.Local // inner handles whose birth the callback that fails has taken back
	netBurns    uint64          // net names that the callback which is recorded has issued and that were taken back
	rec         *recording      // of the callback from outside that runs; nil while nothing is recorded
	undoHandles []handles.Local
	run         logRun
	runOf       *Block // of runTakes and runLeaves
	shortIn     *token // of the window or frame that pools have a short way in for, nil for none; see poolquick.go
	shortOut    *token // and a short way out
	asked       lastComponent
	hop         hop              // forgotten when an archetype goes
	near        *archetype.Chunk // see chunkNear
	quick       *token           // of the window that Destroy, Add and Remove have a short way in, nil for none; see quick.go
	vacated     []vacancy
	vacatedRuns []vacantRun // likewise; none with history
	inCallback  bool
	inFrame     bool // systems or observers run: plane words may have several writers
	iterating   int  // loops open in this window
	bornChunks  []*archetype.Chunk
	values      [256]valueLog           // by component: typed values for undo and for wishes
	valuesUsed  []archetype.ComponentID // those with old values
	guard       check.Guard

	events      [kinds][]Event
	spareEvents [kinds][]Event
	delivering  delivery
	observers   [kinds][]*Observer
	movers      []*Observer
	moveBatch   []Move
	lastFresh   bool // whether the slot of the last move was fresh

	wishMu       sync.Mutex // guards wishes and owner structures against the workers of one frame; leaf lock
	wishes       []wish
	wishedBefore int // wishes[:wishedBefore] are older than the present callback
	granted      wishRun

	fork         fork     // the buffers of parallel loops, see there
	forks        uint64   // Forks in this frame; guarded by wishMu inside it
	lender       *Hooks   // of the engine that has entered, which lends workers
	windowBlock  []Window // fresh tokens from windowsCut on
	windowsCut   int
	frameBlock   []Frame // fresh tokens from framesCut on
	framesCut    int
	current      *Frame
	inputs       []Input // of the frame in progress; workers read them
	pcg          *rand.PCG
	rand         *rand.Rand
	randFrame    uint64
	reported     []error   // failures of observers and wishes, when no engine takes them
	boardVersion [2]uint64 // Store.Version that each buffer of the board was made for
	settled      uint64    // reservations that got their entity
	shown        statSum   // what the board shows
	relocation   Relocation
	moves        uint64 // slots that changed hands without a birth or a death

	// Large, and looked at once in a while: what every operation needs lies together above.
	pools     pools
	hist      history
	recorded  records
	frames    frames                        // any goroutine, by atomics; see there
	snapshots atomic.Pointer[snapshotBlock] // any goroutine
	lodgers   sync.Map                      // what packages above keep with the registry, see Lodger
}

// New makes an empty registry.
//
// Errors: a config value out of its range, named.
// Concurrency: any goroutine. Allocates: yes.
func New(c Config) (*Registry, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	return build(c, 0), nil
}

// build makes a registry from a checked config. A generationBits other than 0 narrows the
// generations of all three spaces, so that tests can see them end.
func build(c Config, generationBits uint8) *Registry {
	limit := uint32(2*c.MaxEntities + indexSlack)
	schema := archetype.NewSchema()
	pcg := rand.NewPCG(randSeed, 0)
	r := &Registry{
		cfg:    c,
		nets:   handles.NewNets(c.Owner, handles.NetsConfig{GenerationBits: generationBits}),
		owner:  make(chan struct{}, 1),
		schema: schema,
		store:  archetype.NewStore(schema, c.TemporalFrames),
		exact:  c.MaxEntities <= exactRoom,
		pcg:    pcg,
		rand:   rand.New(pcg),
	}
	r.initSpaces(limit, generationBits)
	if r.late() {
		limit *= 2
	}
	r.globals = handles.NewGlobals(limit, generationBits)
	r.records, r.netOf, r.nextDead = handles.NewLazyWords(limit), handles.NewLazyWords(limit), handles.NewLazyWords(limit)
	r.fates.noted = handles.NewLazyWords(limit)
	r.nextReserved = handles.NewLazyWords(limit)
	r.initPools(limit)
	r.room.Store(int64(c.MaxEntities))
	r.initHistory()
	r.initFrames()
	r.id = caller.ID(r)
	return r
}

// Config is what the registry was made with, defaults filled in.
//
// Concurrency: any goroutine. Allocates: no.
func (r *Registry) Config() Config { return r.cfg }

// late says that a death from outside is an operation of the next window: until then
// systems see the entity, so that what they do does not depend on when it died.
func (r *Registry) late() bool { return r.cfg.Deterministic || r.cfg.TemporalFrames > 0 }

// CacheCap is one past the largest cache index in use: the length that external arrays
// (physics bodies, render buffers) need. It may rise in a window.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) CacheCap() uint32 { return r.store.CacheCap() }
