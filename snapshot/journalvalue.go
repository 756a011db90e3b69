package snapshot

import (
	"encoding"
	"encoding/binary"
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// fieldCodec turns the values of a field into bytes and back: leaf by leaf if its type has no pointers, else by the
// methods of the component.
type fieldCodec struct {
	leaves leaves
	codec  *codec // nil without pointers
}

// newFieldCodec refuses a type with pointers that cannot write and read itself.
func newFieldCodec(c *archetype.Component, f *archetype.Field) (fieldCodec, error) {
	if !f.Pointers {
		return fieldCodec{leaves: leavesOf(f.Type)}, nil
	}
	codec, err := codecOf(c)
	if err == nil && c.Split {
		err = fmt.Errorf("component %s: it is split, and a journal writes fields one by one, of which %s holds pointers: %w", c.Name, f.Name, ErrNoCodec)
	}
	return fieldCodec{codec: codec}, err
}

// append appends a value.
func (c *fieldCodec) append(dst []byte, s *registry.Step) ([]byte, error) {
	if c.codec == nil {
		return c.leaves.append(dst, s.Bytes), nil
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	err := c.codec.guarded("written", func() (err error) {
		if v, ok := s.Value.Addr().Interface().(encoding.BinaryAppender); ok {
			dst, err = v.AppendBinary(dst)
			return err
		}
		b, err := s.Value.Addr().Interface().(encoding.BinaryMarshaler).MarshalBinary()
		dst = append(dst, b...)
		return err
	})
	if size := len(dst) - at - 4; err == nil && (size < 0 || size > maxRecordBytes) {
		err = fmt.Errorf("%w: component %s: a value of %d bytes", ErrTooLarge, c.codec.comp.Name, size)
	}
	if err == nil {
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst, err
}

// read reads a value into where a step has its place.
func (c *fieldCodec) read(d *decoder, s *registry.Step) error {
	if c.codec == nil {
		if b := d.bytes(c.leaves.size); b != nil {
			c.leaves.put(s.Bytes, b)
		}
		return d.err
	}
	b := d.bytes(d.count(maxRecordBytes, 1))
	if d.err != nil {
		return d.err
	}
	return c.codec.decode(b, s.Value.Addr())
}
