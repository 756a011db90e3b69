package snapshot

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"github.com/airlock-ecs/airlock/archetype"
)

// ErrNoCodec reports a component that holds pointers and has no methods to write and to read it with.
var ErrNoCodec = errors.New("snapshot: the type has no codec")

var (
	appenderType    = reflect.TypeFor[encoding.BinaryAppender]()
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// codec writes and reads the values of a component that holds pointers, by methods of its type.
type codec struct {
	comp  *archetype.Component
	value reflect.Value // a pointer to a value, which comes and goes
}

// codecOf finds the methods of a component's type, or says which ones it lacks.
func codecOf(comp *archetype.Component) (*codec, error) {
	p := reflect.PointerTo(comp.Type)
	if (p.Implements(appenderType) || p.Implements(marshalerType)) && p.Implements(unmarshalerType) {
		return &codec{comp: comp, value: reflect.New(comp.Type)}, nil
	}
	return nil, fmt.Errorf("component %s: %s holds pointers, and for that it needs AppendBinary or MarshalBinary, and UnmarshalBinary on its pointer: %w",
		comp.Name, comp.Type, ErrNoCodec)
}

// encode gives the bytes of a value that load copies, in scratch if that is large enough. The methods get the copy.
func (c *codec) encode(scratch []byte, load func(to reflect.Value)) (out []byte, err error) {
	defer c.value.Elem().SetZero()
	load(c.value)
	err = c.guarded("written", func() error {
		if a, ok := c.value.Interface().(encoding.BinaryAppender); ok {
			out, err = a.AppendBinary(scratch[:0])
			return err
		}
		out, err = c.value.Interface().(encoding.BinaryMarshaler).MarshalBinary()
		return err
	})
	return out, err
}

// decode makes a value of bytes, at p.
func (c *codec) decode(b []byte, p reflect.Value) error {
	return c.guarded("read", func() error {
		return p.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
	})
}

// guarded runs fn, and makes an error of a panic.
func (c *codec) guarded(what string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("snapshot: component %s cannot be %s: panic: %v", c.comp.Name, what, v)
		}
	}()
	if err := fn(); err != nil {
		return fmt.Errorf("snapshot: component %s cannot be %s: %w", c.comp.Name, what, err)
	}
	return nil
}
