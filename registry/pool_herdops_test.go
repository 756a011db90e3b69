package registry_test

import (
	"errors"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// makePen makes a pool in a window.
func (k *herd) makePen(t *rapid.T, w *registry.Window) {
	p := &pen{class: rapid.IntRange(fighters, shards).Draw(t, "class")}
	n := rapid.SampledFrom([]int{1, 2, 3, 5, 63, 64, 65, 130}).Draw(t, "slots")
	if len(k.pens) > 4 {
		return
	}
	p.initial = herdCells[p.class](k.value(t))
	var err error
	switch p.class {
	case fighters:
		p.block, err = registry.NewBlock(w, k.fighters, "", n, p.initial.fighter())
	case darts:
		p.block, err = registry.NewBlock(w, k.darts, "", n, p.initial.dart())
	default:
		p.block, err = registry.NewBlock(w, k.shards, "", n, p.initial.shard())
	}
	if n > k.roomLeft() {
		require.ErrorIs(t, err, registry.ErrExhausted)
		return
	}
	require.NoError(t, err)
	require.Equal(t, n, p.block.Len())
	k.pens = append(k.pens, p)
	stalls := make([]stall, n)
	for i := range stalls {
		h := p.block.Slot(i)
		k.see(t, h)
		require.Equal(t, p.block.Slot(0).Index()+uint32(i), h.Index())
		stalls[i] = stall{h: h, cells: p.initial}
	}
	k.m.pens = append(k.m.pens, stalls)
}

// lowest is the lowest idle slot, -1 without one.
func (k *herd) lowest(p int) int {
	return slices.IndexFunc(k.m.pens[p], func(s stall) bool { return s.state == idle && (k.late || !k.struck[s.h]) })
}

func (k *herd) spawnIn(a registry.Access, p *pen, with *cells) (handles.Local, error) {
	switch {
	case p.class == fighters && with != nil:
		return registry.SpawnIn(a, k.fighters, p.block, with.fighter())
	case p.class == fighters:
		return registry.SpawnIn(a, k.fighters, p.block, nil)
	case p.class == darts && with != nil:
		return registry.SpawnIn(a, k.darts, p.block, with.dart())
	case p.class == darts:
		return registry.SpawnIn(a, k.darts, p.block, nil)
	case with != nil:
		return registry.SpawnIn(a, k.shards, p.block, with.shard())
	}
	return registry.SpawnIn(a, k.shards, p.block, nil)
}

// take spawns in a pool: how says with what. lodged: it may get a name from outside.
func (k *herd) take(t *rapid.T, a registry.Access, p, how int, lodged bool) {
	pen := k.pens[p]
	var (
		h    handles.Local
		err  error
		with cells
		from handles.Local
		want error
	)
	i := k.lowest(p)
	switch how {
	case 0: // values
		with = herdCells[pen.class](k.value(t))
		h, err = k.spawnIn(a, pen, &with)
	case 1: // initial
		if i >= 0 {
			with = k.m.pens[p][i].cells
		}
		h, err = k.spawnIn(a, pen, nil)
	default: // from a caller
		from = k.pick(t)
		ok, isIdle := k.found(from)
		if !ok {
			want = registry.ErrStale // or another
		} else if i >= 0 {
			with = k.m.pens[p][i].cells
			if isIdle {
				with.shareWith(k.stallOf(from).cells)
			} else {
				with.shareWith(k.m.living[from].cells)
			}
		}
		h, err = pen.block.SpawnFrom(a, from)
	}
	switch {
	case want != nil:
		require.Error(t, err)
		require.Zero(t, h)
		return
	case i < 0:
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.Zero(t, h)
		pen.refused++
		return
	}
	require.NoError(t, err)
	s := &k.m.pens[p][i]
	wasStruck := k.struck[s.h]
	if h != s.h {
		require.True(t, k.ringed && lodged, "slot %d of pool %d had %v, and spawning gave %v", i, p, s.h, h)
		k.see(t, h)
	} else if wasStruck {
		require.True(t, k.late)
	} else {
		require.True(t, k.r.Alive(h))
	}
	if wasStruck && h != s.h { // nobody hears of it any more
		delete(k.struck, s.h)
		k.die(s.h)
	}
	k.given[h] = true
	k.all = append(k.all, h)
	s.h, s.state = h, used
	require.Equal(t, h, pen.block.Slot(i))
	at, ok := pen.block.SlotOf(h)
	require.True(t, ok && at == i)
	k.m.living[h] = one{class: pen.class, cells: with, pen: p, slot: i}
	pen.peak = max(pen.peak, pen.block.Len()-k.free(p))
}

// free counts the idle slots.
func (k *herd) free(p int) (free int) {
	for _, s := range k.m.pens[p] {
		if s.state == idle {
			free++
		}
	}
	return free
}

// leave despawns.
func (k *herd) leave(t *rapid.T, a registry.Access, p int, h handles.Local) {
	err := k.pens[p].block.Despawn(a, h)
	l, living := k.m.living[h]
	s := k.stallOf(h)
	switch {
	case living && !l.reserved && l.pen != p && !k.struck[h], s != nil && !k.struck[h] && !slices.ContainsFunc(k.m.pens[p], func(s stall) bool { return s.h == h }):
		require.ErrorIs(t, err, registry.ErrInvalidHandle)
	case s != nil && !k.struck[h]:
		require.ErrorIs(t, err, registry.ErrIdle)
	case living && !l.reserved && !k.struck[h]:
		require.NoError(t, err)
		k.kill(h)
		k.home(t, p, l.slot, false)
	case living && !k.struck[h]:
		require.ErrorIs(t, err, registry.ErrNotSpawned)
	case k.stale(h):
		require.ErrorIs(t, err, registry.ErrStale)
	default:
		require.Error(t, err)
	}
	if err == nil {
		require.False(t, k.r.Alive(h))
	}
}

// leaveWhere despawns those that a condition says yes to.
func (k *herd) leaveWhere(t *rapid.T, a registry.Access, p int) {
	rest := handles.Local(rapid.IntRange(0, 2).Draw(t, "rest"))
	var want []handles.Local
	for _, s := range k.m.pens[p] {
		if s.state == used && !k.m.living[s.h].inactive {
			want = append(want, s.h)
		}
	}
	asked, left := 0, 0
	ask := func(h handles.Local, got cells) bool {
		for asked < len(want) { // a child may have gone with its parent, and who has been struck is not there, or dies of that
			next := want[asked]
			asked++
			if next == h {
				break
			}
			_, ok := k.m.living[next]
			require.True(t, !ok || k.struck[next], "%v is asked about before %v", h, next)
		}
		l, ok := k.m.living[h]
		require.True(t, ok, "%v is asked about", h)
		want := l.cells
		want.Medal = nil
		require.Equal(t, classOnly(l.class, want), got)
		if h.Index()%3 != uint32(rest) {
			return false
		}
		if !k.struck[h] {
			k.kill(h)
			left++
		}
		return true
	}
	var n int
	var err error
	switch k.pens[p].class {
	case fighters:
		n, err = registry.DespawnWhere(a, k.fighters, k.pens[p].block, func(h handles.Local, e *fighter) bool {
			return ask(h, cells{Wide: &e.Wide, Title: &e.Title, Bag: &e.Bag, Spot: &e.Spot})
		})
	case darts:
		n, err = registry.DespawnWhere(a, k.darts, k.pens[p].block, func(h handles.Local, e *dart) bool {
			return ask(h, cells{Health: &e.Health, Wide: &e.Wide})
		})
	default:
		n, err = registry.DespawnWhere(a, k.shards, k.pens[p].block, func(h handles.Local, e *shard) bool {
			return ask(h, cells{Wide: &e.Wide, Twin: &e.Twin})
		})
	}
	require.NoError(t, err)
	require.Equal(t, left, n)
	for i := range k.m.pens[p] { // children of theirs in the same pool wait
		if s := &k.m.pens[p][i]; s.state == waiting && k.pens[p].block.Slot(i) != s.h {
			k.home(t, p, i, false)
		}
	}
}

// classOnly gives what a copy of the components of a class shows: zeros for those that were removed.
func classOnly(class int, c cells) cells {
	full := herdCells[class](0)
	full.Frozen = false
	if full.Spot != nil {
		full.Spot = &spot{}
	}
	full.shareWith(c)
	return full
}

// change adds or removes a component.
func change[C any](t *rapid.T, k *herd, w *registry.Window, h handles.Local, at func(*cells) **C, v *C) {
	ok, isIdle := k.found(h)
	add := rapid.Bool().Draw(t, "add")
	var err error
	if add {
		err = registry.Add(w, h, *v)
	} else {
		err = registry.Remove[C](w, h)
	}
	if !ok {
		require.Error(t, err)
		return
	}
	if isIdle {
		s := k.stallOf(h)
		switch field := at(&s.cells); {
		case add && *field != nil:
			require.NoError(t, err)
			*field = v
		case !add && *field == nil:
			require.ErrorIs(t, err, registry.ErrNoComponent)
		default:
			require.ErrorIs(t, err, registry.ErrIdle)
		}
		return
	}
	l := k.m.living[h]
	if field := at(&l.cells); !add && *field == nil {
		require.ErrorIs(t, err, registry.ErrNoComponent)
		return
	} else if add {
		*field = v
	} else {
		*field = nil
	}
	require.NoError(t, err)
	k.m.living[h] = l
}

// set writes a component of whoever has it.
func set[C any](t *rapid.T, k *herd, a registry.Access, h handles.Local, at func(*cells) **C, v *C) {
	err := registry.Set(a, h, *v)
	ok, isIdle := k.found(h)
	if !ok {
		require.Error(t, err)
		return
	}
	l := k.m.living[h]
	c := &l.cells
	if isIdle {
		c = &k.stallOf(h).cells
	}
	if field := at(c); *field == nil {
		require.ErrorIs(t, err, registry.ErrNoComponent)
		return
	} else {
		require.NoError(t, err)
		*field = v
	}
	if !isIdle {
		k.m.living[h] = l
	}
}

func cellWide(c *cells) **wide     { return &c.Wide }
func cellHealth(c *cells) **health { return &c.Health }
func cellTitle(c *cells) **title   { return &c.Title }
func cellBag(c *cells) **bag       { return &c.Bag }
func cellSpot(c *cells) **spot     { return &c.Spot }
func cellMedal(c *cells) **medal   { return &c.Medal }

// under says whether h is ancestor, or stands below it.
func (k *herd) under(h, ancestor handles.Local) bool {
	for h != 0 {
		if h == ancestor {
			return true
		}
		h = k.m.living[h].parent
	}
	return false
}

func (k *herd) destroy(t *rapid.T, h handles.Local, err error) {
	_, living := k.m.living[h]
	s := k.stallOf(h)
	switch {
	case k.struck[h]:
		require.ErrorIs(t, err, registry.ErrStale)
	case living:
		require.NoError(t, err)
		k.kill(h)
	case s != nil:
		require.NoError(t, err)
		k.killIdle(s)
	case k.stale(h):
		require.ErrorIs(t, err, registry.ErrStale)
	default:
		require.Error(t, err)
	}
}

// stale says whether h is known to have died. Where a callback that failed had given a slot's next name to somebody, and
// the slot has the one before again, nobody knows any more.
func (k *herd) stale(h handles.Local) bool {
	return (k.dead[h] || k.struck[h]) && k.r.Word(h.Index()).Generation() >= h.Generation()
}

// strike destroys from outside.
func (k *herd) strike(t *rapid.T, h handles.Local) {
	err := k.r.Destroy(h)
	_, living := k.m.living[h]
	if (living || k.stallOf(h) != nil) && !k.struck[h] {
		require.NoError(t, err)
		require.False(t, k.r.Alive(h))
		k.struck[h], k.hit[h] = true, true
		return
	}
	require.Error(t, err)
}

// save is where a failing callback goes back to from now on.
func (k *herd) save() {
	k.saved, k.made, k.died = k.m.clone(), len(k.pens), k.died[:0]
	k.hit = maps.Clone(k.struck)
	clear(k.given)
}

// inWindow does one operation in a window, on both sides.
func (k *herd) inWindow(t *rapid.T, w *registry.Window) {
	switch op := rapid.SampledFrom([]string{
		"take", "take", "take", "take", "take", "leave", "leave", "leave", "leave where", "destroy", "destroy", "strike", "batch", "plain", "plain", "reserved",
		"medal", "health", "title", "bag", "spot", "set", "set", "active", "parent", "parent", "net", "bind", "pen", "loop", "loop", "process", "confirm", "reset",
	}).Draw(t, "op"); op {
	case "take":
		k.take(t, w, k.penOr(t), rapid.IntRange(0, 2).Draw(t, "how"), true)
	case "leave":
		k.leave(t, w, k.penOr(t), k.pick(t))
	case "leave where":
		k.leaveWhere(t, w, k.penOr(t))
	case "destroy":
		h := k.pick(t)
		k.destroy(t, h, w.Destroy(h))
	case "strike":
		k.strike(t, k.pick(t))
	case "batch":
		hs := []handles.Local{k.pick(t), k.pick(t), k.pick(t)}
		want := 0
		for _, h := range hs {
			_, living := k.m.living[h]
			s := k.stallOf(h)
			if k.struck[h] || !living && s == nil {
				continue
			}
			want++
			if living {
				k.kill(h)
			} else {
				k.killIdle(s)
			}
		}
		require.Equal(t, want, w.DestroyBatch(hs))
	case "plain":
		c := herdCells[rocks](k.value(t))
		h, err := k.rocks.Spawn(w, rock{Health: *c.Health, Title: *c.Title, Bag: *c.Bag})
		if k.roomLeft() < 1 {
			require.ErrorIs(t, err, registry.ErrExhausted)
			return
		}
		require.NoError(t, err)
		k.see(t, h)
		k.m.living[h] = one{class: rocks, cells: c, pen: -1}
	case "reserved":
		h := k.pick(t)
		err := k.rocks.SpawnReserved(w, h, rock{})
		if l, ok := k.m.living[h]; !ok || !l.reserved || k.struck[h] {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		k.m.living[h] = one{class: rocks, cells: herdCells[rocks](0), pen: -1}
	case "medal":
		change(t, k, w, k.pick(t), cellMedal, medalOf(k.value(t)))
	case "health":
		change(t, k, w, k.pick(t), cellHealth, healthOf(k.value(t)))
	case "title":
		change(t, k, w, k.pick(t), cellTitle, titleOf(k.value(t)))
	case "bag":
		change(t, k, w, k.pick(t), cellBag, bagOf(k.value(t)))
	case "spot":
		change(t, k, w, k.pick(t), cellSpot, spotOf(k.value(t)))
	case "set":
		k.setAny(t, w)
	case "active":
		k.setActive(t, w)
	case "parent":
		child, parent := k.pick(t), k.pick(t)
		err := registry.SetParent(w, child, parent)
		ok, isIdle := k.found(child)
		parentOK, parentIdle := k.found(parent)
		switch {
		case !ok || parent != 0 && !parentOK && !isIdle:
			require.Error(t, err)
		case isIdle || parentIdle:
			require.ErrorIs(t, err, registry.ErrIdle)
		case parent != 0 && k.under(parent, child):
			require.ErrorIs(t, err, registry.ErrCycle)
		default:
			require.NoError(t, err)
			l := k.m.living[child]
			l.parent = parent
			k.m.living[child] = l
		}
	case "net", "bind":
		h := k.pick(t)
		var n handles.Net
		var err error
		if op == "net" {
			n, err = w.AssignNet(h)
		} else {
			k.bound++
			n = handles.NewNet(9, k.bound, 1)
			err = w.BindNet(h, n)
		}
		ok, isIdle := k.found(h)
		l := k.m.living[h]
		switch {
		case !ok:
			require.Error(t, err)
		case isIdle:
			require.ErrorIs(t, err, registry.ErrIdle)
		case l.net != 0 && op == "bind":
			require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
		case l.net != 0:
			require.Equal(t, l.net, n)
		default:
			require.NoError(t, err)
			require.False(t, k.nets[n], "%v was another's", n)
			l.net = n
			k.m.living[h] = l
		}
	case "pen":
		if rapid.IntRange(0, 2).Draw(t, "seldom") == 0 {
			k.makePen(t, w)
		}
	case "loop":
		if k.looped > 0 {
			return
		}
		registry.Iterate(w)
		if !k.late {
			k.drain()
		}
		k.looped++
		for range rapid.IntRange(1, 4).Draw(t, "ops") {
			k.inWindow(t, w)
		}
		k.looped--
		if rapid.IntRange(0, 4).Draw(t, "finish") > 0 {
			registry.Finish(w)
		}
	case "process":
		if rapid.IntRange(0, 2).Draw(t, "seldom") > 0 {
			return
		}
		w.ProcessDeferredDestructions()
		if !k.late {
			k.drain()
		}
		k.processed(t)
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	case "confirm":
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	case "reset":
		if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 {
			return
		}
		require.NoError(t, w.Reset())
		k.drain()
		for h := range k.m.living {
			k.kill(h)
		}
		for p := range k.m.pens {
			for i := range k.m.pens[p] {
				if s := &k.m.pens[p][i]; s.state == idle {
					k.killIdle(s)
				}
			}
		}
		k.processed(t)
		w.ConfirmLocalRecycles()
		w.ConfirmNetRecycles()
		k.save()
	}
}

// penOr is a pool, or 0 where there is none.
func (k *herd) penOr(t *rapid.T) int { return rapid.IntRange(0, len(k.pens)-1).Draw(t, "pool") }

func (k *herd) setAny(t *rapid.T, a registry.Access) {
	h := k.pick(t)
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		set(t, k, a, h, cellWide, wideOf(k.value(t)))
	case 1:
		set(t, k, a, h, cellTitle, titleOf(k.value(t)))
	case 2:
		set(t, k, a, h, cellBag, bagOf(k.value(t)))
	case 3:
		set(t, k, a, h, cellSpot, spotOf(k.value(t)))
	default:
		set(t, k, a, h, cellHealth, healthOf(k.value(t)))
	}
}

func (k *herd) setActive(t *rapid.T, a registry.Access) {
	h, on := k.pick(t), rapid.Bool().Draw(t, "on")
	err := registry.SetActive(a, h, on)
	ok, isIdle := k.found(h)
	switch {
	case !ok:
		require.Error(t, err)
	case isIdle && on:
		require.ErrorIs(t, err, registry.ErrIdle)
	default:
		require.NoError(t, err)
		if !isIdle {
			l := k.m.living[h]
			l.inactive = !on
			k.m.living[h] = l
		}
	}
}

// callback runs some operations in a window, which ends well, or with an error or a panic.
func (k *herd) callback(t *rapid.T, run func(fn func(w *registry.Window) error) error) {
	ending := rapid.SampledFrom([]string{"well", "well", "well", "error", "panic"}).Draw(t, "ending")
	k.save()
	nets := map[handles.Net]bool{}
	var failed error
	func() {
		defer func() {
			if v := recover(); v == "planned" {
				failed = errPlanned
			} else if v != nil {
				panic(v)
			}
		}()
		failed = run(func(w *registry.Window) error {
			for range rapid.IntRange(1, 7).Draw(t, "ops") {
				k.inWindow(t, w)
			}
			for _, l := range k.m.living {
				nets[l.net] = true
			}
			switch ending {
			case "error":
				return errPlanned
			case "panic":
				panic("planned")
			}
			return nil
		})
	}()
	var p *registry.PanicError
	if errors.As(failed, &p) && p.Value != "planned" {
		panic(p.Value) // of the test itself
	}
	if ending == "well" {
		require.NoError(t, failed)
	} else {
		require.True(t, errors.Is(failed, errPlanned) || p != nil, "%v", failed)
		k.undone(t, nets)
	}
	if !k.late {
		k.drain()
	}
}

// undone takes the callback back in the model. Idle slots whose names were given out have others.
func (k *herd) undone(t *rapid.T, nets map[handles.Net]bool) {
	k.m, k.pens = k.saved, k.pens[:k.made]
	for _, h := range k.died {
		if _, ok := k.m.living[h]; ok || k.stallOf(h) != nil {
			delete(k.dead, h)
		}
	}
	for n := range nets {
		k.nets[n] = true
	}
	for _, l := range k.m.living {
		delete(k.nets, l.net)
	}
	k.struck = k.hit
	taken := map[handles.Local]bool{}
	for h := range k.given {
		if _, living := k.m.living[h]; !living {
			taken[h] = true
			k.newest[h.Index()] = max(k.newest[h.Index()], h.Generation())
		}
	}
	for p := range k.m.pens {
		for i := range k.m.pens[p] {
			if k.m.pens[p][i].state == idle {
				k.undoneIdle(t, p, i, taken)
			}
		}
	}
	for h := range taken {
		k.die(h)
		delete(k.struck, h)
	}
	if !k.late {
		k.drain()
	}
}

// undoneIdle looks who is in an idle slot after a callback that failed.
func (k *herd) undoneIdle(t *rapid.T, p, i int, taken map[handles.Local]bool) {
	s := &k.m.pens[p][i]
	h, was := k.pens[p].block.Slot(i), s.h
	switch {
	case h != was: // its name was given to somebody, or to nobody any more
		require.Equal(t, k.own(p, i), h.Index())
		require.Greater(t, h.Generation(), was.Generation())
		require.True(t, taken[was], "slot %d of pool %d had %v, has %v, and nobody was told the first", i, p, was, h)
		require.True(t, k.r.Alive(h))
		require.False(t, k.dead[h])
		delete(taken, h)
		k.all = append(k.all, h)
		s.h = h
	case taken[h] && k.r.Alive(h):
		require.False(t, taken[h], "slot %d of pool %d still has %v, which was given to somebody", i, p, h)
	case taken[h]: // others have destroyed it, or it has no name left
		require.True(t, k.struck[h] || max(k.newest[h.Index()], h.Generation()) >= k.last)
		k.killIdle(s)
	}
}
