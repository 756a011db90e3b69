package inspect

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/airlock-ecs/airlock/registry"
)

// slotLetters are how the map writes a slot.
const slotLetters = "_.LIPTK"

// chunkMap is what the slots of an archetype hold, chunk by chunk.
type chunkMap struct {
	Archetype           int
	Class               string
	Frame               uint64
	First, Chunks       int               // the first chunk shown, and how many there are
	Allocated, Capacity int               // of all chunks
	Letters             map[string]string // what stands for what
	Map                 []chunkRow
}

type chunkRow struct {
	Index int
	Base  uint32 // cache index of the first slot
	Slots string // a letter for each
}

func letters() map[string]string {
	return map[string]string{
		"_": "never used", ".": "free", "L": "live", "I": "inactive", "P": "idle in a pool", "T": "tombstoned", "K": "kept for rollback",
	}
}

// chunksTopic is the map of one archetype, from a chunk on.
func chunksTopic(h *Handler, q url.Values) (*keptView, error) {
	number, err := strconv.Atoi(q.Get("archetype"))
	first := 0
	if err == nil && q.Has("first") {
		first, err = strconv.Atoi(q.Get("first"))
	}
	if err != nil || number < 0 || first < 0 {
		return nil, errNoNumber
	}
	return h.views.find(fmt.Sprintf("chunks %d %d", number, first), &keptView{h: h, onLogic: func(w *registry.Window) any {
		return mapChunks(w, number, first)
	}}), nil
}

// mapChunks runs on Logic: it copies, and what that is written as is found out elsewhere.
func mapChunks(w *registry.Window, number, first int) any {
	m := &takenMap{Archetype: number, First: first, Frame: w.FrameNumber()}
	all := w.Registry().Archetypes()
	if number >= len(all) {
		return m
	}
	a := all[number]
	m.Class, m.Chunks, m.Allocated = a.ClassName(), len(a.Chunks()), a.Allocated()
	for _, c := range a.Chunks() {
		m.Capacity += c.Slots()
	}
	m.taken = w.SlotMap(a, first, mostSlots)
	return m
}

// takenMap is a chunkMap that is not written down yet.
type takenMap struct {
	Archetype           int
	Class               string
	Frame               uint64
	First, Chunks       int
	Allocated, Capacity int
	taken               []registry.ChunkSlots
}

// MarshalJSON writes the map down, on the goroutine of whoever looks at it.
func (m *takenMap) MarshalJSON() ([]byte, error) {
	c := chunkMap{
		Archetype: m.Archetype, Class: m.Class, Frame: m.Frame, First: m.First, Chunks: m.Chunks,
		Allocated: m.Allocated, Capacity: m.Capacity, Letters: letters(), Map: []chunkRow{},
	}
	for _, t := range m.taken {
		text := make([]byte, t.Slots)
		for i := range text {
			text[i] = slotLetters[t.At(i)]
		}
		c.Map = append(c.Map, chunkRow{t.Index, t.Base, string(text)})
	}
	return encode(c), nil
}
