package archetype

import "errors"

// Errors of registration. They come wrapped, with the name of the type that was refused.
var (
	// ErrNotRegistered reports a component type that the schema does not know.
	ErrNotRegistered = errors.New("archetype: component not registered")

	// ErrAlreadyRegistered reports a type or a name that is taken.
	ErrAlreadyRegistered = errors.New("archetype: component already registered")

	// ErrPointerInTemporal reports a Temporal component that holds a pointer: the ring of a
	// Temporal column is copied and compared as bytes.
	ErrPointerInTemporal = errors.New("archetype: pointer in a temporal component")

	// ErrTooManyComponents reports the component after the last one that fits.
	ErrTooManyComponents = errors.New("archetype: the limit is 256 components")
)
