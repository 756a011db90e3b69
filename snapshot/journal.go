package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// ErrConfig reports a journal of a registry that was configured otherwise.
var ErrConfig = errors.New("snapshot: another configuration")

// startFile is the state that a journal begins with, as SaveFile writes it; none if that is an empty registry.
const startFile = "start.airlock"

// A journal is a log (see journalfile.go) whose records are, each with its kind in the first byte:
//
//	start  once, at first: what the frames ran under, the frame before the first and the hash of its state
//	frame  inputs, what came from outside, hash at the end
//	part   a piece of a frame or of amendments that are too long for a record, and
//	rest   the last piece
//	amend  inputs, hashes and the lost of frames that a rollback has had simulated again, all of them
//
// What came from outside is steps, as registry.Record has them: the kind, with stepSame for one about the same
// entity as the step before, then what that kind has. Components and classes are named by their places in
// the order of names, which the schema hash of the log vouches for.
const (
	recordStart = iota
	recordFrame
	recordPart
	recordAmend
	recordRest
)

const (
	journalFormat = 1
	stepSame      = 0x80 // in the kind of a step

	partBytes = maxRecordBytes / 2
	maxInputs = 256 // a player is a byte
)

// Terms is what a journal's frames run under beside the registry's Config: the numbers of logic.Config that
// decide what happens, and where it begins.
type Terms struct {
	Rate, LocalWindow, NetWindow int

	Frame uint64 // the one before the first
	Hash  uint64 // of the state at its end
	State *Image // that state, to write; nil if nothing has happened before. See JournalReader.LoadState
}

// JournalFrame is what a journal has of a frame.
type JournalFrame struct {
	Number uint64
	Hash   uint64           // of the state at its end
	Inputs []registry.Input // by player
	Nets   int              // net names that were confirmed when it began
	Lost   []registry.Lost  // who was dead for its systems before a window saw it, see registry.Core.TakeLost
	Record *registry.Record // to write; of what was read see Fill

	again bool   // it was amended
	body  []byte // the steps, and what they mean
	sch   *journalSchema
}

// JournalOption says how a journal is written.
type JournalOption func(*logOptions)

// SyncEvery has a journal brought to the disk after so many frames. Without it that is left to the system until Close: what
// is written outlives the process at once, and a loss of power only then. A sync takes milliseconds, of the goroutine
// that appends.
//
// Concurrency: any goroutine. Allocates: yes.
func SyncEvery(frames int) JournalOption { return func(o *logOptions) { o.syncEvery = frames } }

// SegmentBytes is the size at which a journal begins another file; 0 means 64 MiB.
//
// Concurrency: any goroutine. Allocates: yes.
func SegmentBytes(n int64) JournalOption { return func(o *logOptions) { o.segmentBytes = n } }

// Journal is an append-only log of what came from outside, frame by frame: with the systems, it is the run. It is
// for one goroutine at a time. After its first error it is of no more use, but to be closed.
type Journal struct {
	log    *logWriter
	schema *journalSchema
	buf    []byte
	steps  func(*registry.Step) error // j.step, made once
	last   uint64                     // the entity of the step before
	part   int                        // bytes of a piece, see recordPart
	err    error
}

// OpenJournal begins a journal in a directory, which is made if need be. Components and classes are registered
// before. The state it begins with is on the disk when it returns.
//
// Errors: fs.ErrExist if there is a journal in the directory; ErrNoCodec; what the file system says.
// Concurrency: the owner of the registry, between frames. Allocates: yes.
func OpenJournal(dir string, r *registry.Registry, t Terms, opts ...JournalOption) (*Journal, error) {
	return openJournalOn(osDisk{}, dir, r, t, opts...)
}

func openJournalOn(d disk, dir string, r *registry.Registry, t Terms, opts ...JournalOption) (*Journal, error) {
	s, err := newJournalSchema(r)
	if err != nil {
		return nil, err
	}
	var o logOptions
	for _, opt := range opts {
		opt(&o)
	}
	j := &Journal{schema: s, part: partBytes}
	j.steps = j.step
	if dir != "" {
		if err := makeDir(d, dir); err != nil {
			return nil, fmt.Errorf("snapshot: journal: %w", err)
		}
	}
	if j.log, err = openLogOn(d, dir, s.hash, o); err != nil { // from here on the directory is ours
		return nil, err
	}
	if t.State != nil {
		if err := writeFileOn(d, filepath.Join(dir, startFile), t.State); err != nil {
			j.log.close() // nothing is in it
			d.remove(j.log.path(1))
			return nil, err
		}
	}
	c := r.Config()
	b := []byte{recordStart, journalFormat}
	for _, n := range []int{t.Rate, t.LocalWindow, t.NetWindow, c.MaxEntities, c.TemporalFrames, int(c.Owner)} {
		b = binary.AppendVarint(b, int64(n))
	}
	b = binary.AppendUvarint(b, t.Frame)
	b = binary.LittleEndian.AppendUint64(b, t.Hash)
	b = appendFlag(b, t.State != nil)
	if j.log.append(b) == nil {
		_ = j.log.sync() // its error is kept, as that of append is
	}
	if j.log.err != nil {
		j.log.close() // its error is the same
		d.remove(j.log.path(1))
		return nil, j.log.err
	}
	return j, nil
}

// Append appends a frame that has ended, and hands it to the system.
//
// Errors: what cannot be written down; what the file system says. Then the journal ends before this frame.
// Concurrency: the owner of the registry. Allocates: a few bytes.
func (j *Journal) Append(f *JournalFrame) error {
	if j.err != nil {
		return j.err
	}
	b := append(j.buf[:0], recordFrame)
	b = binary.AppendUvarint(b, f.Number)
	b = binary.LittleEndian.AppendUint64(b, f.Hash)
	b = appendInputs(b, f.Inputs)
	b = appendLost(b, f.Lost)
	b = binary.AppendUvarint(b, uint64(f.Nets))
	j.buf, j.last = b, 0
	if f.Record != nil {
		if err := f.Record.Each(j.steps); err != nil {
			return j.fail(err)
		}
	}
	return j.write(j.buf)
}

// Amend replaces the inputs, the hashes and who was lost of frames that were appended before, and have been simulated again since. All
// of them are replaced or none, wherever a crash cuts the journal off.
//
// Errors: as Append.
// Concurrency: the owner of the registry. Allocates: for growth.
func (j *Journal) Amend(frames []JournalFrame) error {
	if j.err != nil {
		return j.err
	}
	b := append(j.buf[:0], recordAmend)
	b = binary.AppendUvarint(b, uint64(len(frames)))
	for i := range frames {
		b = binary.AppendUvarint(b, frames[i].Number)
		b = binary.LittleEndian.AppendUint64(b, frames[i].Hash)
		b = appendInputs(b, frames[i].Inputs)
		b = appendLost(b, frames[i].Lost)
	}
	j.buf = b
	return j.write(b)
}

// Close brings everything to the disk. A second call does nothing.
//
// Errors: the one that has ended the journal, or what the file system says.
// Concurrency: the owner of the registry. Allocates: no.
func (j *Journal) Close() error {
	err := j.log.close()
	if j.err != nil && !errors.Is(j.err, fs.ErrClosed) {
		return j.err
	}
	j.err = errLogClosed
	return err
}

func (j *Journal) fail(err error) error {
	j.err = err
	return err
}

// write appends a record, in parts if it is long, and flushes.
func (j *Journal) write(b []byte) error {
	var err error
	pieces := len(b) > j.part
	for ; len(b) > j.part && err == nil; b = b[j.part:] {
		err = j.log.append(append([]byte{recordPart}, b[:j.part]...))
	}
	if pieces {
		b = append([]byte{recordRest}, b...)
	}
	if err == nil {
		err = j.log.append(b)
	}
	if err == nil {
		err = j.log.flush()
	}
	if cap(j.buf) > keptBytes {
		j.buf = nil
	}
	if err != nil {
		return j.fail(err)
	}
	return nil
}

func appendInputs(b []byte, inputs []registry.Input) []byte {
	b = binary.AppendUvarint(b, uint64(len(inputs)))
	for _, in := range inputs {
		b = append(b, in.Player)
		b = binary.AppendUvarint(b, uint64(len(in.Data)))
		b = append(b, in.Data...)
	}
	return b
}

func appendLost(b []byte, list []registry.Lost) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, l := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(l.Entity))
		b = appendFlag(b, l.Born)
	}
	return b
}

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}

// parts of a step, by kind.
type stepParts uint8

const (
	hasEntity stepParts = 1 << iota
	hasOther
	hasClass
	hasComponent
	hasFlag
	hasName
	hasValue
)

// partsOf says what there is to say of a step of a kind.
func partsOf(k registry.StepKind) stepParts {
	switch k {
	case registry.StepSpawn:
		return hasEntity | hasClass | hasOther
	case registry.StepHome:
		return hasClass
	case registry.StepSpawnReserved:
		return hasEntity | hasClass
	case registry.StepDestroy, registry.StepDestroyed, registry.StepReserve, registry.StepLost:
		return hasEntity
	case registry.StepChange:
		return hasEntity | hasComponent | hasFlag
	case registry.StepActive:
		return hasEntity | hasFlag
	case registry.StepParent, registry.StepAssign, registry.StepBind:
		return hasEntity | hasOther
	case registry.StepNamed:
		return hasName
	case registry.StepConfirm, registry.StepConfirmNet, registry.StepBurnNet:
		return hasOther
	case registry.StepWrite:
		return hasEntity | hasComponent | hasValue
	case registry.StepBlock:
		return hasEntity | hasOther | hasClass | hasName
	case registry.StepInitial:
		return hasOther | hasComponent | hasValue
	case registry.StepTake:
		return hasEntity | hasOther
	case registry.StepDespawn:
		return hasEntity
	case registry.StepBurnt:
		return hasEntity | hasFlag
	}
	return 0
}

// step appends a step to buf.
func (j *Journal) step(s *registry.Step) error {
	if planted.Enabled && planted.Is(planted.JournalDropsStep) {
		if s.Kind == registry.StepActive {
			return nil
		}
	}
	b, has := j.buf, partsOf(s.Kind)
	kind := byte(s.Kind)
	if has&hasEntity != 0 && uint64(s.Entity) == j.last {
		kind |= stepSame
	}
	b = append(b, kind)
	if has&hasEntity != 0 && kind&stepSame == 0 {
		b = binary.AppendUvarint(b, uint64(s.Entity.Index()))
		b = binary.AppendUvarint(b, uint64(s.Entity.Generation()))
		j.last = uint64(s.Entity)
	}
	if has&hasOther != 0 {
		b = binary.AppendUvarint(b, s.Other)
	}
	if has&hasClass != 0 {
		rank, ok := j.schema.classRank[s.Class]
		if !ok {
			return fmt.Errorf("%w: an entity of class number %d, which was registered after the journal was opened", ErrSchema, s.Class)
		}
		b = binary.AppendUvarint(b, uint64(rank))
	}
	rank := 0
	if has&hasComponent != 0 {
		var ok bool
		if rank, ok = j.schema.compRank[s.Component]; !ok {
			return fmt.Errorf("%w: component number %d was registered after the journal was opened", ErrSchema, s.Component)
		}
		b = append(b, byte(rank))
	}
	if has&hasFlag != 0 {
		b = appendFlag(b, s.Flag)
	}
	if has&hasName != 0 {
		b = binary.AppendUvarint(b, uint64(len(s.Name)))
		b = append(b, s.Name...)
	}
	var err error
	if has&hasValue != 0 {
		b = binary.AppendUvarint(b, uint64(s.Field))
		b, err = j.schema.fields[rank][s.Field].append(b, s)
	}
	j.buf = b
	return err
}
