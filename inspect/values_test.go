package inspect_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

func nan() float32 { return float32(math.NaN()) }

// Of what is large the beginning is shown, and no more is walked for it.
func TestLargeValuesAreCutShort(t *testing.T) {
	const large = 1 << 16
	type texts struct {
		Whole, Long, Cut, Binary, Short [large]byte
		Small                           [4]byte
	}
	type block struct {
		Cells [large]struct{ A, B int32 }
		After int
	}
	type barge struct {
		Texts texts
		Block block
	}
	k := newWorld(t, registry.Config{}, inspect.Config{})
	barges, err := registry.RegisterClass[barge](k.r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	var b barge
	copy(b.Texts.Whole[:], "tea")
	copy(b.Texts.Long[:], strings.Repeat("t", 2000))
	copy(b.Texts.Cut[:], strings.Repeat("t", 1022)+"€")
	copy(b.Texts.Binary[:], strings.Repeat("\xff", 2000))
	b.Texts.Small = [4]byte{0, 0xff}
	b.Block.Cells[1].B = 7
	var h handles.Local
	k.step(func(w *registry.Window) {
		h, err = barges.Spawn(w, b)
		require.NoError(t, err)
	})
	var p struct {
		Source     string
		Components []struct {
			Fields []struct{ Name, Value string }
		}
	}
	answered(k, "/entity.json?handle="+h.String(), &p, func() bool { return p.Source == "window" })
	require.Len(t, p.Components, 2)
	assert.Equal(t, []struct{ Name, Value string }{
		{"Whole", `"tea", of 65536 bytes`},
		{"Long", `"` + strings.Repeat("t", 256) + `…", of 65536 bytes`},
		{"Cut", `"` + strings.Repeat("t", 256) + `…", of 65536 bytes`},
		{"Binary", strings.Repeat("ff", 256) + "…, of 65536 bytes"},
		{"Short", `"", of 65536 bytes`},
		{"Small", "00ff0000"},
	}, p.Components[0].Fields)
	fields := p.Components[1].Fields
	require.Len(t, fields, 129)
	assert.Equal(t, struct{ Name, Value string }{"…", "only the first 128 are shown"}, fields[128])
	assert.Equal(t, struct{ Name, Value string }{"Cells[1].B", "7"}, fields[3])
}
