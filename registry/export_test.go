package registry

import "github.com/airlock-ecs/airlock/handles"

// NewNarrow makes a registry whose generations have only some bits, so that they end within
// a few lives.
func NewNarrow(c Config, generationBits uint8) *Registry {
	c, err := c.checked()
	if err != nil {
		panic(err)
	}
	return build(c, generationBits)
}

// Preset says where the index spaces of a test begin; 0 means where they always do.
type Preset struct {
	LocalIndex, LocalGeneration uint32
	NetIndex, NetGeneration     uint32
}

// LastLocalIndex is the highest local index of a registry.
func LastLocalIndex(c Config) uint32 {
	c, _ = c.checked()
	return uint32(2*c.MaxEntities + indexSlack)
}

// NewPreset makes a registry whose spaces begin near their ends.
func NewPreset(c Config, p Preset) *Registry {
	r := NewNarrow(c, 0)
	r.locals = handles.NewLocals(handles.LocalsConfig{
		Limit:           LastLocalIndex(c),
		FirstIndex:      p.LocalIndex,
		FirstGeneration: p.LocalGeneration,
	})
	r.outer, r.issuer, r.outerFirst = r.locals, r.locals, 0
	r.nets = handles.NewNets(c.Owner, handles.NetsConfig{FirstIndex: p.NetIndex, FirstGeneration: p.NetGeneration})
	return r
}

// ObituariesKept is how many deaths are remembered.
const ObituariesKept = obitsKept

// DestroyInTwo is Destroy by a goroutine that is put off in its middle: until end is called
// the handle is dead and the owner cannot know it.
func (r *Registry) DestroyInTwo(h handles.Local) (end func()) {
	old, won := r.locals.Kill(h)
	if !won {
		panic("not alive")
	}
	return func() {
		r.giveRoomOutside()
		if old.State() == handles.Alive {
			r.killed.Add(1)
		}
		r.pushOutside(h.Index())
	}
}

// Word is what is known of a local index.
func (r *Registry) Word(index uint32) handles.Word { return r.locals.Word(index) }

// Own is the local index of a slot.
func (b *Block) Own(i int) uint32 { return b.first + uint32(i) }
