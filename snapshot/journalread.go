package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// JournalReader reads the frames of a journal, as they were in the end: what a rollback has changed later is
// merged. It is for one goroutine.
type JournalReader struct {
	fsys   fs.FS
	log    *logReader
	schema *journalSchema
	terms  Terms
	depth  int  // of frames that may still be amended
	state  bool // it begins with one

	queue    []*JournalFrame // read and not given away, oldest first
	spare    *JournalFrame   // the one given away last
	part     []byte          // of a frame that goes on in the next record
	previous uint64          // number of the frame that was read last
	done     bool
	err      error // what is wrong with a record that is not damaged
}

// ReadJournal begins to read the journal in the root of fsys, for a registry that has the components, the classes and
// the Config of the one that was recorded.
//
// Errors: fs.ErrNotExist if there is none; ErrSchema, with both hashes; ErrConfig; ErrVersion; ErrNoCodec; ErrDamaged if
// nothing of it can be read; what the file system says.
// Concurrency: any goroutine, one at a time. Allocates: yes.
func ReadJournal(fsys fs.FS, r *registry.Registry) (*JournalReader, error) {
	s, err := newJournalSchema(r)
	if err != nil {
		return nil, err
	}
	log, err := readLog(fsys, s.hash)
	if err != nil {
		return nil, err
	}
	j := &JournalReader{fsys: fsys, log: log, schema: s}
	if err := j.start(r.Config()); err != nil {
		log.close()
		return nil, err
	}
	return j, nil
}

// start reads the first record.
func (j *JournalReader) start(c registry.Config) error {
	if len(j.log.numbers) == 0 {
		return fmt.Errorf("snapshot: there is no journal: %w", fs.ErrNotExist)
	}
	b, ok := j.log.next()
	if !ok {
		if _, reason := j.log.loss(); reason != nil {
			return reason
		}
		return fmt.Errorf("%w: the journal ends before it begins", ErrDamaged)
	}
	d := &decoder{data: b}
	if kind, format := d.u8(), d.u8(); d.err == nil && (kind != recordStart || format != journalFormat) {
		return fmt.Errorf("%w: a journal that begins with a record of kind %d and format %d", ErrVersion, kind, format)
	}
	var was registry.Config
	var owner int
	for _, n := range []*int{&j.terms.Rate, &j.terms.LocalWindow, &j.terms.NetWindow, &was.MaxEntities, &was.TemporalFrames, &owner} {
		*n = int(d.varint())
	}
	j.terms.Frame, j.terms.Hash, j.state = d.uvarint(), d.u64(), d.flag()
	if err := d.end(); err != nil {
		return err
	}
	j.previous = j.terms.Frame
	was.Owner, was.Deterministic = uint8(owner), true
	if was != c {
		return fmt.Errorf("%w: the journal is of a registry with %+v, and this one has %+v", ErrConfig, was, c)
	}
	j.depth = c.TemporalFrames
	return nil
}

// varint takes the shortest form of a number with a sign.
func (d *decoder) varint() int64 {
	u := d.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// Terms is what the frames ran under; State is nil.
//
// Concurrency: as the reader. Allocates: no.
func (j *JournalReader) Terms() Terms { return j.terms }

// HasState says whether the journal begins with a state, for LoadState.
//
// Concurrency: as the reader. Allocates: no.
func (j *JournalReader) HasState() bool { return j.state }

// LoadState puts the state that the journal begins with into an empty registry.
//
// Errors: as Load, and what the file system says.
// Concurrency: window holder. Allocates: as Load.
func (j *JournalReader) LoadState(w *registry.Window) error {
	f, err := j.fsys.Open(startFile)
	if err != nil {
		return fmt.Errorf("snapshot: the state that the journal begins with: %w", err)
	}
	defer f.Close() // nothing was written
	if err := Load(f, w); err != nil {
		return fmt.Errorf("%s: %w", startFile, err)
	}
	return nil
}

// Last reads the whole journal once, beside this reading, and says which frame is its last, that of the Terms if it has none.
//
// Errors: what the file system says.
// Concurrency: as the reader. Allocates: yes.
func (j *JournalReader) Last() (uint64, error) {
	log, err := readLog(j.fsys, j.schema.hash)
	if err != nil {
		return 0, err
	}
	defer log.close()
	last, part := j.terms.Frame, []byte(nil)
	for b, ok := log.next(); ok; b, ok = log.next() {
		switch {
		case len(b) > 0 && b[0] == recordPart:
			if len(part) < binary.MaxVarintLen64+1 {
				part = append(part, b[1:min(len(b), 16)]...)
			}
			continue
		case len(b) > 0 && b[0] == recordRest:
			b = append(part, b[1:min(len(b), 16)]...)
		}
		if len(b) > 0 && b[0] == recordFrame {
			last, _ = binary.Uvarint(b[1:])
		}
		part = nil
	}
	if _, reason := log.loss(); reason != nil && !errors.Is(reason, ErrDamaged) && !errors.Is(reason, ErrVersion) && !errors.Is(reason, ErrSchema) {
		return 0, reason // there may be more
	}
	return last, nil
}

// Next gives the next frame, good until the call after; io.EOF when there is none.
//
// Errors: io.EOF; ErrDamaged for what is whole and makes no sense.
// Concurrency: as the reader. Allocates: yes.
func (j *JournalReader) Next() (*JournalFrame, error) {
	for !j.done && len(j.queue) <= j.depth {
		if err := j.read(); err != nil {
			j.done = true
			j.log.close()
			if err != io.EOF {
				j.err = err
			}
		}
	}
	if len(j.queue) == 0 {
		if j.err != nil {
			return nil, j.err
		}
		return nil, io.EOF
	}
	f := j.queue[0]
	j.queue = j.queue[1:]
	j.spare = f
	return f, nil
}

// Loss says, after the end, how many bytes could not be read, and why: nil if there was nothing behind the last
// frame. The journal is cut there: what came before is as it was written.
//
// Concurrency: as the reader. Allocates: no.
func (j *JournalReader) Loss() (bytes int64, reason error) {
	bytes, reason = j.log.loss()
	if n := int64(len(j.part)); n > 0 {
		bytes += n
		if reason == nil {
			reason = fmt.Errorf("%w: cut off in a frame", ErrDamaged)
		}
	}
	return bytes, reason
}

// Close ends reading early.
//
// Concurrency: as the reader. Allocates: no.
func (j *JournalReader) Close() {
	j.log.close()
	j.done, j.queue = true, nil
}

// read reads a record into the queue.
func (j *JournalReader) read() error {
	b, ok := j.log.next()
	if !ok {
		return io.EOF
	}
	if len(b) > 0 && b[0] == recordPart {
		j.part = append(j.part, b[1:]...)
		return nil
	}
	d := &decoder{data: b}
	if len(b) > 0 && b[0] == recordRest {
		d.data, j.part = append(j.part, b[1:]...), nil
	} else if j.part != nil {
		d.fail("a frame goes on with a record of another kind")
	}
	kind := d.u8()
	switch {
	case d.err != nil:
	case kind == recordFrame:
		return j.frame(d)
	case kind == recordAmend:
		return j.amend(d)
	default:
		d.fail("a record of kind %d", kind)
	}
	return fmt.Errorf("journal behind frame %d: %w", j.previous, d.err)
}

func (j *JournalReader) frame(d *decoder) error {
	f := j.spare
	if j.spare = nil; f == nil {
		f = new(JournalFrame)
	}
	*f = JournalFrame{sch: j.schema, body: f.body[:0]}
	f.Number, f.Hash = d.uvarint(), d.u64()
	f.Inputs, f.Lost = d.inputs(), d.lost()
	nets := d.uvarint()
	f.Nets = int(min(nets, handles.MaxNetIndex))
	if d.err == nil && f.Number != j.previous+1 {
		d.fail("frame %d follows frame %d", f.Number, j.previous)
	}
	if d.err != nil {
		return fmt.Errorf("journal behind frame %d: %w", j.previous, d.err)
	}
	f.body = append(f.body, d.bytes(d.left())...)
	j.previous = f.Number
	j.queue = append(j.queue, f)
	return nil
}

// inputs reads the inputs of a frame. They are copied.
func (d *decoder) inputs() (list []registry.Input) {
	n := d.uvarint()
	if n > maxInputs {
		d.fail("inputs of %d players", n)
	}
	for i := uint64(0); i < n && d.err == nil; i++ {
		player, size := d.u8(), d.uvarint()
		data := d.bytes(int(min(size, 1<<40)))
		list = append(list, registry.Input{Player: player, Data: append([]byte{}, data...)})
	}
	return list
}

// lost reads who was lost.
func (d *decoder) lost() (list []registry.Lost) {
	n := d.uvarint()
	if n > uint64(d.left()/9) {
		d.fail("%d that were lost", n)
	}
	for i := uint64(0); i < n && d.err == nil; i++ {
		list = append(list, registry.Lost{Entity: handles.Local(d.u64()), Born: d.flag()})
	}
	return list
}

// amend merges what frames came to later.
func (j *JournalReader) amend(d *decoder) error {
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		number, hash, inputs, lost := d.uvarint(), d.u64(), d.inputs(), d.lost()
		at := len(j.queue) - 1 - int(j.previous-number)
		if d.err == nil && (number > j.previous || at < 0 || at >= len(j.queue)) {
			d.fail("frame %d is amended, behind frame %d", number, j.previous)
		}
		if d.err == nil {
			f := j.queue[at]
			f.Hash, f.Inputs, f.Lost, f.again = hash, inputs, lost, true
		}
	}
	if err := d.end(); err != nil {
		return fmt.Errorf("journal behind frame %d: %w", j.previous, err)
	}
	return nil
}

// Fill puts what came from outside into an empty record of the registry that the journal is read for.
//
// Errors: ErrDamaged for what makes no sense; what a codec says.
// Concurrency: the owner of the registry. Allocates: for growth.
func (f *JournalFrame) Fill(rec *registry.Record) error {
	for _, l := range f.Lost {
		if err := rec.Lose(l); err != nil {
			return fmt.Errorf("%w: journal: frame %d: %w", ErrDamaged, f.Number, err)
		}
	}
	d := &decoder{data: f.body}
	var last handles.Local
	for d.left() > 0 && d.err == nil {
		if err := f.sch.step(d, rec, &last, f.again); err != nil {
			if !errors.Is(err, ErrDamaged) {
				err = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return fmt.Errorf("journal: frame %d: %w", f.Number, err)
		}
	}
	return nil
}

// step reads a step and adds it to a record.
func (sch *journalSchema) step(d *decoder, rec *registry.Record, last *handles.Local, again bool) error {
	kind := d.u8()
	s := registry.Step{Kind: registry.StepKind(kind &^ stepSame)}
	has := partsOf(s.Kind)
	if has&hasEntity != 0 {
		if kind&stepSame == 0 {
			index, generation := d.uvarint(), d.uvarint()
			if index > 1<<32-1 || generation > 1<<32-1 {
				d.fail("no handle")
			}
			*last = handles.NewLocal(uint32(index), uint32(generation))
		}
		s.Entity = *last
	} else if kind&stepSame != 0 {
		d.fail("a step of kind %d", kind)
	}
	if has&hasOther != 0 {
		s.Other = d.uvarint()
	}
	if has&hasClass != 0 {
		rank := d.uvarint()
		if d.err == nil && rank >= uint64(len(sch.classes)) {
			d.fail("class %d", rank)
		}
		if d.err == nil {
			s.Class = sch.classes[rank].number
		}
	}
	rank := 0
	if has&hasComponent != 0 {
		rank = int(d.u8())
		if d.err == nil && rank >= len(sch.comps) {
			d.fail("component %d", rank)
		}
		if d.err == nil {
			s.Component = sch.comps[rank].ID
		}
	}
	if has&hasFlag != 0 {
		s.Flag = d.flag()
	}
	if has&hasName != 0 {
		s.Name = string(d.bytes(int(min(d.uvarint(), maxRecordBytes))))
	}
	if has&hasValue != 0 {
		s.Field = int(min(d.uvarint(), 1<<16))
	}
	if d.err != nil {
		return d.err
	}
	if s.Kind == registry.StepLost && again {
		return nil // who died was brought back, and died in its time
	}
	if err := rec.Add(&s); err != nil {
		return err
	}
	if has&hasValue != 0 {
		return sch.fields[rank][s.Field].read(d, &s)
	}
	return nil
}
