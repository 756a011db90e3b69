package inspect

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/airlock-ecs/airlock/registry"
)

// slotLetters are how the map writes a slot.
const slotLetters = "_.LIPTK"

// chunkMap is what the slots of an archetype hold: its head, and chunk by chunk as Logic has copied it.
type chunkMap struct {
	chunkMapHead
	taken []registry.ChunkSlots
}

type chunkMapHead struct {
	Archetype           int
	Class               string
	Frame               uint64
	First, Chunks       int               // the first chunk shown, and how many there are
	Allocated, Capacity int               // of all chunks
	Letters             map[string]string // what stands for what
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
	return h.views.find(fmt.Sprintf("chunks %d %d", number, first), &keptView{h: h, event: "chunks", onLogic: func(w *registry.Window) any {
		return mapChunks(w, number, first)
	}}), nil
}

// mapChunks runs on Logic: it copies, and what that is written as is found out elsewhere.
func mapChunks(w *registry.Window, number, first int) any {
	m := &chunkMap{chunkMapHead: chunkMapHead{Archetype: number, First: first, Frame: w.FrameNumber()}}
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

// appendJSON writes the map down, on the goroutine of whoever looks at it: of each chunk its place, the cache index of its first
// slot, and a letter for each slot.
func (m *chunkMap) appendJSON(buf []byte) []byte {
	m.Letters = letters()
	buf = append(appendHead(buf, &m.chunkMapHead), `,"Map":`...)
	buf = appendList(buf, len(m.taken), func(buf []byte, i int) []byte {
		t := &m.taken[i]
		buf = strconv.AppendInt(append(buf, `{"Index":`...), int64(t.Index), 10)
		buf = strconv.AppendUint(append(buf, `,"Base":`...), uint64(t.Base), 10)
		buf = append(buf, `,"Slots":"`...)
		for slot := range t.Slots {
			buf = append(buf, slotLetters[t.At(slot)])
		}
		return append(buf, `"}`...)
	})
	return append(buf, '}')
}
