package archetype_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
)

// twins are two stores of the same archetypes: in the first slots come and go in runs, in the
// second one by one, and they are to be equal after every step.
type twins struct {
	runs, single *storeModel
	cases        []*twin
}

// twin is an archetype in both stores, and what is known of its slots.
type twin struct {
	s, one *shelf
	taken  []bool
}

func newTwins(t require.TestingT) *twins {
	tw := &twins{runs: newStoreModel(t), single: newStoreModel(t)}
	for i, s := range tw.runs.shelves {
		tw.cases = append(tw.cases, &twin{s: s, one: tw.single.shelves[i]})
	}
	return tw
}

// birth is a slot that was taken, and whether it was fresh.
type birth struct {
	i     int
	fresh bool
}

// take takes up to n slots in a run, checks them against as many single takes, and fills them.
func (tw *twins) take(t require.TestingT, p *twin, n int) (births []birth) {
	if len(p.s.a.Chunks()) == 0 {
		n = min(n, 64) // a large first run makes a large first chunk, which single steps do not
	}
	c, slot, count, fresh := p.s.a.TakeRun(n)
	require.True(t, count >= 1 && int(count) <= n, "%d slots of %d", count, n)
	for k := range count {
		tc, tslot, tfresh := p.one.a.Take()
		require.Equal(t, []any{c.Index(), c.Base(), slot + k, fresh}, []any{tc.Index(), tc.Base(), tslot, tfresh})
		tw.runs.expect(t, p.s, c, slot+k, 0)
		require.False(t, c.Bit(slot+k) || c.Born(slot+k))
		i := int(slot + k)
		for _, before := range p.s.a.Chunks()[:c.Index()] {
			i += before.Slots()
		}
		births = append(births, birth{i, fresh})
		for len(p.taken) <= i {
			p.taken = append(p.taken, false)
		}
		require.False(t, p.taken[i])
		p.taken[i] = true
		tw.write(p, i, i%3)
	}
	return births
}

// write fills slot i of both stores: active, born or neither.
func (tw *twins) write(p *twin, i, how int) {
	for _, m := range []struct {
		m *storeModel
		s *shelf
	}{{tw.runs, p.s}, {tw.single, p.one}} {
		c, slot := m.s.at(i)
		m.m.write(m.s, c, slot, i+1)
		switch how {
		case 1:
			c.SetBit(slot)
		case 2:
			c.MarkBorn(slot)
		}
	}
}

// untake takes births back, the last one first.
func (tw *twins) untake(p *twin, births []birth) {
	for _, b := range slices.Backward(births) {
		c, slot := p.s.at(b.i)
		p.s.a.Untake(c, slot, b.fresh)
		c, slot = p.one.at(b.i)
		p.one.a.Untake(c, slot, b.fresh)
		p.taken[b.i] = false
	}
}

// equal compares the stores to the last bit.
func (tw *twins) equal(t require.TestingT) {
	require.NoError(t, tw.runs.store.Verify())
	require.NoError(t, tw.single.store.Verify())
	require.Equal(t, tw.single.store.CacheCap(), tw.runs.store.CacheCap())
	for _, p := range tw.cases {
		a, b := p.s.a, p.one.a
		require.Equal(t, []int{b.Allocated(), len(b.Chunks())}, []int{a.Allocated(), len(a.Chunks())})
		first := 0
		for i, c := range a.Chunks() {
			d := b.Chunks()[i]
			require.Equal(t, d.Allocated(), c.Allocated())
			require.Equal(t, d.Active(), c.Active())
			holes, born := c.Corrupt()
			wantHoles, wantBorn := d.Corrupt()
			require.Equal(t, wantHoles, holes)
			require.Equal(t, wantBorn, born)
			for slot := range uint32(c.Slots()) {
				n := 0
				if i := first + int(slot); i < len(p.taken) && p.taken[i] {
					n = i + 1
				}
				tw.runs.expect(t, p.s, c, slot, n)
				tw.single.expect(t, p.one, d, slot, n)
			}
			first += c.Slots()
		}
	}
}

// runAt is the run of taken slots that begins at i, within its chunk and at most n long.
func (p *twin) runAt(i, n int) int {
	c, slot := p.s.at(i)
	n = min(n, c.Slots()-int(slot), len(p.taken)-i)
	for k := range n {
		if !p.taken[i+k] {
			return k
		}
	}
	return n
}

func (p *twin) reclaim(i, n int) {
	c, slot := p.s.at(i)
	p.s.a.ReclaimRun(c, slot, uint32(n))
	c, slot = p.one.at(i)
	for k := range uint32(n) {
		p.one.a.Reclaim(c, slot+k)
	}
	for k := range n {
		p.taken[i+k] = false
	}
}

func TestRunsAreManySingleSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tw := newTwins(t)
		pick := func(t *rapid.T) *twin { return rapid.SampledFrom(tw.cases).Draw(t, "archetype") }
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				p := pick(t)
				for range rapid.IntRange(1, 4).Draw(t, "runs") {
					tw.take(t, p, rapid.IntRange(1, 300).Draw(t, "n"))
				}
			},
			"take and undo": func(t *rapid.T) {
				p := pick(t)
				var births []birth
				for range rapid.IntRange(1, 4).Draw(t, "runs") {
					births = append(births, tw.take(t, p, rapid.IntRange(1, 300).Draw(t, "n"))...)
				}
				tw.untake(p, births)
				p.taken = p.taken[:p.s.a.Allocated()]
			},
			"reclaim": func(t *rapid.T) {
				p := pick(t)
				if len(p.taken) == 0 {
					t.Skip("nobody lives there")
				}
				for range rapid.IntRange(1, 8).Draw(t, "runs") {
					i := rapid.IntRange(0, len(p.taken)-1).Draw(t, "from")
					p.reclaim(i, p.runAt(i, rapid.IntRange(0, 300).Draw(t, "n")))
				}
			},
			"empty": func(t *rapid.T) {
				p := pick(t)
				for i := 0; i < len(p.taken); {
					n := p.runAt(i, math.MaxInt)
					p.reclaim(i, n)
					i += max(n, 1)
				}
			},
			"": func(t *rapid.T) { tw.equal(t) },
		})
	})
}

func TestATakenRunEndsWithItsHolesOrChunk(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "run", 128)
	take := func(n int) []any {
		c, slot, count, fresh := a.TakeRun(n)
		return []any{c.Index(), slot, count, fresh}
	}
	require.Equal(t, []any{0, uint32(0), uint32(100), true}, take(100))
	require.Equal(t, []any{0, uint32(100), uint32(28), true}, take(100))
	require.Equal(t, []any{1, uint32(0), uint32(128), true}, take(math.MaxInt))
	c := a.Chunks()[0]
	a.ReclaimRun(c, 60, 10)
	a.ReclaimRun(c, 127, 1)
	a.ReclaimRun(a.Chunks()[1], 0, 0)
	require.NoError(t, store.Verify())
	require.Equal(t, []any{0, uint32(60), uint32(6), false}, take(6))
	require.Equal(t, []any{0, uint32(66), uint32(4), false}, take(100))
	require.Equal(t, []any{0, uint32(127), uint32(1), false}, take(100))
	a.ReclaimRun(c, 0, 128)
	c.Soil() // whoever takes a slot zeroes it
	c.Bytes(0)[100*8] = 1
	require.Equal(t, []any{0, uint32(0), uint32(128), false}, take(math.MaxInt))
	require.Zero(t, c.Bytes(0)[100*8])
	require.Equal(t, []any{2, uint32(0), uint32(1), true}, take(1))
	require.Panics(t, func() { take(0) })
	require.NoError(t, store.Verify())

	store.LimitCacheIndices(0)
	require.Equal(t, []any{2, uint32(1), uint32(127), true}, take(1000))
	none, _, count, _ := a.TakeRun(1)
	require.Nil(t, none)
	require.Zero(t, count)
}

func TestARunBeyondItsChunkChangesNothing(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "run", 64)
	c, _, _, _ := a.TakeRun(64)
	c.Entities()[63] = 7
	for _, r := range [][2]uint32{{60, 5}, {64, 2}, {63, math.MaxUint32}, {math.MaxUint32, 2}} {
		require.Panics(t, func() { a.ReclaimRun(c, r[0], r[1]) })
	}
	require.Equal(t, handles.Local(7), c.Entities()[63])
	require.NoError(t, store.Verify())
	if check.Enabled {
		a.Reclaim(c, 5)
		require.Panics(t, func() { a.ReclaimRun(c, 4, 3) }, "a hole among them")
	}
}

func TestRunsCostNoAllocation(t *testing.T) {
	store, p, l := pair(t, 8)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "steady", 64)
	c, _, _, _ := a.TakeRun(64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		a.ReclaimRun(c, 3, 50)
		a.TakeRun(64)
	}))
}

// BenchmarkReclaimRun gives runs back, in one call and slot by slot, by turns.
func BenchmarkReclaimRun(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 16, 64, 1024} {
		b.Run(fmt.Sprintf("run=%d", n), func(b *testing.B) {
			_, a := benchStore(b, 16<<10)
			chunks := a.Chunks()[1:9]
			const slots = 8 << 10
			refill := func() {
				for taken := uint32(0); taken < slots; {
					_, _, count, _ := a.TakeRun(slots)
					taken += count
				}
			}
			var singly, runs []float64
			for b.Loop() {
				for range 15 {
					singly = append(singly, timed(slots, func() { reclaimRuns(a, chunks, 0) }))
					refill()
					runs = append(runs, timed(slots, func() { reclaimRuns(a, chunks, uint32(n)) }))
					refill()
				}
			}
			slices.Sort(singly)
			slices.Sort(runs)
			b.ReportMetric(singly[len(singly)/2], "ns/single")
			b.ReportMetric(runs[len(runs)/2], "ns/slot")
			b.ReportMetric(0, "ns/op") // one operation is an arbitrary number of turns
		})
	}
}

// timed is the time of fn per slot.
func timed(slots int, fn func()) float64 {
	start := time.Now()
	fn()
	return float64(time.Since(start).Nanoseconds()) / float64(slots)
}

// reclaimRuns gives all slots of the chunks back, in runs of n; 0 means one by one.
//
//go:noinline
func reclaimRuns(a *archetype.Archetype, chunks []*archetype.Chunk, n uint32) {
	for _, c := range chunks {
		slots := uint32(c.Slots())
		if n == 0 {
			for slot := range slots {
				a.Reclaim(c, slot)
			}
		}
		for slot := uint32(0); n != 0 && slot < slots; slot += n {
			a.ReclaimRun(c, slot, n)
		}
	}
}

func TestALargeFirstRunGetsOneChunk(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "run", 0)
	for range 2 {
		c, slot, count, fresh := a.TakeRun(1000)
		require.Equal(t, []any{0, uint32(0), uint32(1000), true}, []any{c.Index(), slot, count, fresh})
		require.Equal(t, archetype.DefaultSlots, c.Slots())
		require.NoError(t, store.Verify())
		a.Clear()
		c, _, _ = a.Take()
		require.Less(t, c.Slots(), archetype.DefaultSlots, "who comes alone gets a small one")
		_, _, count, _ = a.TakeRun(1000)
		require.EqualValues(t, c.Slots()-1, count)
		require.NoError(t, store.Verify())
		a.Clear()
	}
}
