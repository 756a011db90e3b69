package registry

import (
	"fmt"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Get, Peek and Has of a snapshot.

// getPublished gives a pointer into the published frame. Sound as pointer is: comp was found by the
// type C, and a frame of its column has a cell of it for each slot.
func getPublished[C any](s *Snapshot, h handles.Local) (*C, error) {
	comp, ref, slot, err := findPublished[C](s, h)
	if err != nil {
		return nil, err
	}
	col, err := s.column(comp, ref)
	switch {
	case err != nil:
		return nil, err
	case len(comp.Fields) == 0:
		return new(C), nil
	case comp.Split:
		return nil, fmt.Errorf("component %s: %w", comp.Name, ErrSplit)
	}
	return (*C)(ref.Cell(col, slot, comp.Size, s.storage)), nil
}

// peekPublished copies a component out, as load does.
func peekPublished[C any](s *Snapshot, h handles.Local) (v C, err error) {
	comp, ref, slot, err := findPublished[C](s, h)
	if err != nil {
		return v, err
	}
	col, err := s.column(comp, ref)
	if err != nil {
		return v, err
	}
	for i := range comp.Fields {
		f := &comp.Fields[i]
		f.Cell.Copy(unsafe.Add(unsafe.Pointer(&v), f.Offset), ref.Cell(col+i, slot, f.Size, s.storage))
	}
	return v, nil
}

func hasPublished[C any](s *Snapshot, h handles.Local) bool {
	comp, ref, _, err := findPublished[C](s, h)
	return err == nil && ref.Archetype().Has(comp.ID)
}

func findPublished[C any](s *Snapshot, h handles.Local) (*archetype.Component, *archetype.Ref, uint32, error) {
	comp, err := componentOf[C](s.r)
	if err != nil {
		return nil, nil, 0, err
	}
	ref, slot, err := s.find(h)
	return comp, ref, slot, err
}
