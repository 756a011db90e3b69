package snapshot

import (
	"fmt"
	"math"
	"reflect"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// Pools in a saved state: which archetypes are pools, who is whose in them, and the initial values of their slots, column
// by column, as the cells of entities are written. Of cosmetic pools, initial values with pointers are not saved: those
// slots have zero values until somebody gives the pool others.

// putPools writes the pools.
func putPools(e *encoder, s *registry.State, blocks []*registry.Block) error {
	e.count(len(s.Pools))
	for i := range s.Pools {
		p := &s.Pools[i]
		e.string(p.Name)
		e.u32(p.First)
		putNumbers(e, p.Idle)
		putNumbers(e, p.Empty)
		e.count(len(p.Tenants))
		for _, t := range p.Tenants {
			e.u32(t.Slot)
			e.u32(t.Index)
		}
		if err := putInitial(e, blocks[i]); err != nil {
			return err
		}
	}
	e.count(len(s.Burnt))
	for _, b := range s.Burnt {
		e.u32(b.Index)
		e.u32(b.Generation)
	}
	return nil
}

// initialColumns are what is saved of initial values.
func initialColumns(comps []*archetype.Component, cosmetic bool) ([]savedColumn, error) {
	if cosmetic {
		return columnsOf(comps, 0)
	}
	return columnsOf(comps, 1)
}

func putInitial(e *encoder, b *registry.Block) error {
	columns, err := initialColumns(b.Components(), b.Cosmetic())
	if err != nil {
		return err
	}
	for i := range columns {
		col := &columns[i]
		if col.codec == nil {
			e.bytes(col.leaves.append(nil, b.InitialBytes(b.Column(col.comp.ID)+col.field)))
			continue
		}
		bytes, err := col.codec.encode(nil, func(to reflect.Value) { b.LoadInitial(col.comp, to) })
		if err != nil {
			return err
		}
		e.count(len(bytes))
		e.bytes(bytes)
	}
	return nil
}

// initialValues is what the slots of pools are to be reset to.
type initialValues []initialValue

type initialValue struct {
	pool  int // its place among the pools
	col   savedColumn
	bytes []byte        // without a codec
	value reflect.Value // with one: a pointer
}

// getPools reads the pools of the archetypes that were read.
func getPools(d *decoder, r *registry.Registry, s *registry.State) (initial initialValues, err error) {
	var stores []*registry.ArchetypeState
	for i := range s.Stores {
		if s.Stores[i].Pooled != 0 {
			stores = append(stores, &s.Stores[i])
		}
	}
	n := d.count(math.MaxInt, 20)
	if d.err == nil && n != len(stores) {
		return nil, fmt.Errorf("%w: %d pools, and %d archetypes of them", ErrDamaged, n, len(stores))
	}
	for i := range n {
		p := registry.PoolState{Name: d.string(), First: d.u32()}
		p.Idle, p.Empty = getNumbers[uint64](d), getNumbers[uint64](d)
		p.Tenants = make([]registry.Tenant, d.count(math.MaxInt, 8))
		for k := range p.Tenants {
			p.Tenants[k] = registry.Tenant{Slot: d.u32(), Index: d.u32()}
		}
		s.Pools = append(s.Pools, p)
		values, err := getInitial(d, r, stores[i])
		if err != nil {
			return nil, err
		}
		for k := range values {
			values[k].pool = i
		}
		initial = append(initial, values...)
	}
	s.Burnt = make([]registry.IndexGeneration, d.count(math.MaxInt, 8))
	for i := range s.Burnt {
		s.Burnt[i] = registry.IndexGeneration{Index: d.u32(), Generation: d.u32()}
	}
	return initial, nil
}

func getInitial(d *decoder, r *registry.Registry, st *registry.ArchetypeState) (values initialValues, err error) {
	var comps []*archetype.Component
	for id := range st.Components.All() {
		comp, _ := r.Schema().ByID(id)
		comps = append(comps, comp)
	}
	columns, err := initialColumns(comps, r.CosmeticClass(st.Class))
	if err != nil {
		return nil, err
	}
	for _, col := range columns {
		v := initialValue{col: col}
		if col.codec == nil {
			if v.bytes = d.bytes(col.leaves.size); d.err != nil {
				return nil, d.err
			}
			if err := col.checkBools(v.bytes); err != nil {
				return nil, err
			}
		} else {
			b := d.bytes(d.count(math.MaxInt, 1))
			if d.err != nil {
				return nil, d.err
			}
			v.value = reflect.New(col.comp.Type)
			if err := col.codec.decode(b, v.value); err != nil {
				return nil, err
			}
		}
		values = append(values, v)
	}
	return values, nil
}

// fill gives the values to the pools.
func (list initialValues) fill(blocks []*registry.Block) {
	for i := range list {
		v := &list[i]
		b := blocks[v.pool]
		if v.col.codec != nil {
			b.StoreInitial(v.col.comp, v.value)
			continue
		}
		v.col.leaves.put(b.InitialBytes(b.Column(v.col.comp.ID)+v.col.field), v.bytes)
	}
}
