package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// frame has a system do some operations, in a frame of an engine.
func (k *herd) frame(t *rapid.T) {
	core, err := k.r.Attach(registry.Hooks{OnError: func(err error) { require.NoError(t, err) }})
	require.NoError(t, err)
	defer core.Detach()
	for range rapid.IntRange(1, 3).Draw(t, "frames") {
		require.NoError(t, core.Enter(false))
		core.Advance()
		core.DrainDestroys()
		k.drain()
		core.ProcessDestructions()
		clear(k.given)
		k.processed(t)
		core.ConfirmLocal(core.FrameNumber())
		core.ConfirmNet(core.FrameNumber())
		core.OpenWindow()
		core.RunWishes()
		if rapid.Bool().Draw(t, "window") {
			k.callback(t, core.CallbackRecover)
		}
		core.CloseWindow()
		f := core.NewFrame()
		core.Deliver()
		core.Boundary()
		if !k.late {
			k.drain()
		}
		clear(k.given)
		core.System("herd", func() {
			for range rapid.IntRange(1, 6).Draw(t, "ops") {
				k.inFrame(t, f)
			}
		})
		core.Deliver()
		core.Boundary()
		if !k.late {
			k.drain()
		}
		core.EndFrame()
		core.Leave()
	}
	if k.ringed { // the next Update is the end of history
		core.Detach()
		require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
		k.processed(t)
		k.drain()
	}
}

func (k *herd) inFrame(t *rapid.T, f *registry.Frame) {
	switch rapid.SampledFrom([]string{"take", "take", "take", "leave", "leave", "leave where", "destroy", "strike", "set", "active"}).Draw(t, "op") {
	case "take":
		k.take(t, f, k.penOr(t), rapid.IntRange(0, 2).Draw(t, "how"), false)
	case "leave":
		k.leave(t, f, k.penOr(t), k.pick(t))
	case "leave where":
		k.leaveWhere(t, f, k.penOr(t))
	case "destroy":
		h := k.pick(t)
		k.destroy(t, h, f.Destroy(h))
	case "strike":
		k.strike(t, k.pick(t))
	case "set":
		k.setAny(t, f)
	case "active":
		k.setActive(t, f)
	}
}

// settle has the owner see who was destroyed from outside.
func (k *herd) settle(t *rapid.T) {
	for h := range k.struck {
		require.False(t, k.r.Alive(h))
	}
	if len(k.struck) > 0 {
		require.NoError(t, k.r.Update(func(*registry.Window) error { return nil }))
		k.drain()
	}
}

// agree compares everything.
func (k *herd) agree(t *rapid.T) {
	k.settle(t)
	require.NoError(t, k.r.Verify())
	for h := range k.dead {
		require.False(t, k.r.Alive(h), "%v lives again", h)
	}
	k.agreeCounts(t)
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		active := map[handles.Local]bool{}
		for h, l := range k.m.living {
			if l.reserved {
				require.False(t, k.r.Alive(h))
				continue
			}
			k.compare(t, w, h, l.cells)
			require.Equal(t, !l.inactive, registry.Active(w, h))
			n, err := k.r.NetOf(h)
			require.NoError(t, err)
			require.Equal(t, l.net, n)
			if n != 0 {
				back, err := k.r.ResolveNet(n)
				require.NoError(t, err)
				require.Equal(t, h, back)
			}
			if !l.inactive {
				active[h] = true
			}
			at, ok := registry.CacheIndex(w, h)
			require.True(t, ok)
			if was, ok := k.places[h]; ok && k.events[0] != nil {
				require.Equal(t, was, at, "%v moved, and nobody was told", h)
			}
			k.places[h] = at
		}
		for n := range k.nets {
			require.False(t, n != 0 && k.r.AliveNet(n), "%v", n)
		}
		k.agreeSlots(t, w)
		for a := range registry.Iterate(w).Archetypes() {
			for _, ch := range registry.Iterate(w).Archetypes()[a].Chunks() {
				for slot, h := range ch.Entities() {
					require.Equal(t, h != 0 && active[h], ch.Bit(uint32(slot)), "%v in slot %d of %s", h, slot, ch.Archetype())
					delete(active, h)
				}
			}
		}
		require.Empty(t, active)
		return nil
	}))
	if k.events[0] != nil {
		k.agreeEvents(t)
	}
}

func (k *herd) agreeSlots(t *rapid.T, w *registry.Window) {
	for p, stalls := range k.m.pens {
		b := k.pens[p].block
		free := 0
		for i, s := range stalls {
			if s.state == retired { // with history that comes late
				require.False(t, k.r.Alive(b.Slot(i)))
				continue
			}
			require.Equal(t, s.h, b.Slot(i), "slot %d of pool %d", i, p)
			switch s.state {
			case idle:
				free++
				require.True(t, k.r.Alive(s.h))
				require.False(t, registry.Active(w, s.h))
				k.compare(t, w, s.h, s.cells)
				at, ok := registry.CacheIndex(w, s.h)
				require.True(t, ok)
				require.Equal(t, b.Base()+uint32(i), at)
				n, err := k.r.NetOf(s.h)
				require.NoError(t, err)
				require.Zero(t, n)
			case used:
				require.Contains(t, k.m.living, s.h)
			default:
				require.False(t, k.r.Alive(s.h))
			}
			at, ok := b.SlotOf(s.h)
			require.True(t, ok && at == i)
		}
		c := b.Counts()
		require.Equal(t, free, c.Free)
		require.Equal(t, b.Len(), c.InUse+c.Free+c.Retired)
		require.Equal(t, k.pens[p].refused, int(c.Refused))
		require.LessOrEqual(t, c.InUse, c.Peak)
		if c.Retired == 0 {
			require.Equal(t, max(k.pens[p].peak, c.InUse), c.Peak)
		}
	}
}

func (k *herd) agreeCounts(t *rapid.T) {
	s := k.r.Stats()
	var live, inactive, free, sum int
	for _, l := range k.m.living {
		if !l.reserved {
			live++
		}
		if l.inactive {
			inactive++
		}
	}
	for p := range k.m.pens {
		free += k.free(p)
	}
	require.Equal(t, live, s.Live)
	require.Equal(t, inactive, s.Inactive)
	require.Equal(t, free, s.Idle)
	require.LessOrEqual(t, s.Live+s.Idle+s.Tombstoned, s.Allocated)
	for _, a := range s.Archetypes {
		sum += a.Live
	}
	require.Equal(t, live, sum)
}

// agreeEvents checks that each life was told once, and each death of one.
func (k *herd) agreeEvents(t *rapid.T) {
	for h, n := range k.events[0] {
		require.Equal(t, 1, n, "births of %v", h)
		l, living := k.m.living[h]
		require.True(t, living && !l.reserved || k.events[1][h] == 1, "%v, alive: %v, died %d times", h, living, k.events[1][h])
	}
	for h, n := range k.events[1] {
		require.Equal(t, 1, n, "deaths of %v", h)
		require.Equal(t, 1, k.events[0][h], "births of %v", h)
		require.True(t, k.dead[h], "%v was said to be dead", h)
	}
	for h, l := range k.m.living {
		require.Equal(t, !l.reserved, k.events[0][h] == 1, "birth of %v", h)
	}
}

// compare compares the components of somebody.
func (k *herd) compare(t *rapid.T, w *registry.Window, h handles.Local, want cells) {
	require.True(t, k.r.Alive(h), "%v", h)
	g, err := k.r.Resolve(h)
	require.NoError(t, err)
	require.NotZero(t, g)
	var got cells
	peek(t, w, h, &got.Wide)
	peek(t, w, h, &got.Twin)
	peek(t, w, h, &got.Health)
	peek(t, w, h, &got.Title)
	peek(t, w, h, &got.Bag)
	peek(t, w, h, &got.Spot)
	peek(t, w, h, &got.Medal)
	got.Frozen = registry.Has[frozen](w, h)
	require.Equal(t, want, got, "%v", h)
}

func peek[C any](t *rapid.T, w *registry.Window, h handles.Local, to **C) {
	if !registry.Has[C](w, h) {
		return
	}
	v, err := registry.Peek[C](w, h)
	require.NoError(t, err)
	*to = &v
}

func TestPoolsAgreeWithPlainMaps(t *testing.T) {
	type config struct {
		registry.Config
		bits uint8 // of a generation
	}
	configs := []config{
		{registry.Config{}, 0},
		{registry.Config{MaxEntities: 200}, 3},
		{registry.Config{MaxEntities: 140, Deterministic: true}, 0},
		{registry.Config{MaxEntities: 140, Deterministic: true}, 2},
		{registry.Config{TemporalFrames: 8}, 0},
		{registry.Config{MaxEntities: 200, TemporalFrames: 8, Deterministic: true}, 3},
	}
	rapid.Check(t, func(t *rapid.T) {
		if c := rapid.SampledFrom(configs).Draw(t, "config"); !racing || rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
			stepHerd(t, c.Config, c.bits)
		}
	})
}

func stepHerd(t *rapid.T, c registry.Config, bits uint8) {
	k := newHerd(t, c, bits)
	if rapid.Bool().Draw(t, "observed") {
		k.listen(t)
	} else {
		k.events[0] = nil
	}
	require.NoError(t, k.r.Update(func(w *registry.Window) error {
		for len(k.pens) == 0 {
			k.makePen(t, w)
		}
		return nil
	}))
	update := func(t *rapid.T) { k.callback(t, k.r.Update) }
	t.Repeat(map[string]func(*rapid.T){
		"update": update, "update2": update, "update3": update,
		"frame": k.frame,
		"reserve": func(t *rapid.T) {
			h, err := k.r.Reserve()
			if k.roomLeft() < 1 {
				require.ErrorIs(t, err, registry.ErrExhausted)
				return
			}
			require.NoError(t, err)
			require.False(t, k.dead[h], "%v is reserved, and was dead", h)
			k.all = append(k.all, h)
			k.m.living[h] = one{class: rocks, pen: -1, reserved: true}
		},
		"strike": func(t *rapid.T) {
			h := k.pick(t)
			k.strike(t, h)
		},
		"": k.agree,
	})
}
