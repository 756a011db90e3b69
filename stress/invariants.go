package stress

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// SameAnswer says whether a registry answered as the model did. A handle that nobody was ever given may be stale to
// the registry: it may have been the name of somebody who was taken back.
//
// Errors: both answers.
// Concurrency: any goroutine. Allocates: for an error.
func SameAnswer(want, got error) error {
	switch {
	case want == nil && got == nil:
		return nil
	case want != nil && errors.Is(got, want), want == registry.ErrInvalidHandle && errors.Is(got, registry.ErrStale):
		return nil
	}
	return fmt.Errorf("stress: the answer was %v, and should be %v", got, want)
}

// Living lists the entities, by handle.
//
// Concurrency: as the Model. Allocates: the list.
func (m *Model) Living() []handles.Local {
	var hs []handles.Local
	for h, l := range m.lives {
		if !l.reserved {
			hs = append(hs, h)
		}
	}
	slices.Sort(hs)
	return hs
}

// Value is the component of C's type that h has.
//
// Concurrency: as the Model. Allocates: no.
func Value[C any](m *Model, h handles.Local) (v C, ok bool) {
	v, ok = m.lives[h].cells[reflect.TypeFor[C]()].(C)
	return v, ok
}

// NetOf is the net handle of h, zero if it has none.
//
// Errors: those of Answer.
// Concurrency: as the Model. Allocates: no.
func (m *Model) NetOf(h handles.Local) (handles.Net, error) { return m.lives[h].net, m.Answer(h) }

// ResolveNet is whom n names.
//
// Errors: ErrStale, ErrInvalidHandle.
// Concurrency: as the Model. Allocates: no.
func (m *Model) ResolveNet(n handles.Net) (handles.Local, error) {
	if m.nets.dead[n] {
		return 0, registry.ErrStale
	}
	for h, l := range m.lives {
		if n != 0 && l.net == n {
			return h, nil
		}
	}
	return 0, registry.ErrInvalidHandle
}

// Counts is what a model counts.
type Counts struct {
	Live, Reserved, Inactive, Dying int
	LocalPending, LocalFree         int
	NetIssued, NetPending, NetFree  int
}

// Counts counts everything.
//
// Concurrency: as the Model. Allocates: no.
func (m *Model) Counts() Counts {
	c := Counts{Dying: len(m.dying)}
	for _, l := range m.lives {
		switch {
		case l.reserved:
			c.Reserved++
		default:
			c.Live++
		}
		if l.inactive {
			c.Inactive++
		}
	}
	locals, nets := m.locals.counts(), m.nets.counts()
	c.LocalPending, c.LocalFree = locals[pending], locals[free]
	c.NetIssued, c.NetPending, c.NetFree = nets[inUse]+nets[dying], nets[pending], nets[free]
	return c
}

// CompareStats says where the counters of a registry are not those of the model. They have to be those of a moment
// when nobody was inside.
//
// Errors: each counter that differs.
// Concurrency: as the Model. Allocates: for an error.
func (m *Model) CompareStats(s registry.Stats) error {
	c := m.Counts()
	var errs []error
	for _, n := range []struct {
		what      string
		got, want int
	}{
		{"Live", s.Live, c.Live},
		{"Inactive", s.Inactive, c.Inactive},
		{"PendingDestructions", s.PendingDestructions, c.Dying},
		{"Local.Issued", s.Local.Issued, c.Live + c.Reserved + c.Dying},
		{"Local.Pending", s.Local.Pending, c.LocalPending},
		{"Local.Free", s.Local.Free, c.LocalFree},
		{"Net.Issued", s.Net.Issued, c.NetIssued},
		{"Net.Pending", s.Net.Pending, c.NetPending},
		{"Net.Free", s.Net.Free, c.NetFree},
	} {
		if n.got != n.want {
			errs = append(errs, fmt.Errorf("stress: Stats.%s is %d, and should be %d", n.what, n.got, n.want))
		}
	}
	return errors.Join(errs...)
}

// Compare says where the entities that a token shows, and the answers to any goroutine, are not those of the model:
// who lives and who does not, activity, components that the model was taught, parents' work, net handles and
// records. It looks at every handle that was ever issued.
//
// Errors: the first differences.
// Concurrency: as the Model and the token. Allocates: yes.
func (m *Model) Compare(a registry.Access) error {
	f, r := findings{}, a.Registry()
	exist := 0
	f.add(registry.EachChunk(a, func(l *registry.Look) bool {
		for w := range (l.Chunk.Allocated() + 63) / 64 {
			exist += bits.OnesCount64(l.Exists(w))
		}
		return true
	}))
	if n := m.Counts().Live; exist != n {
		f.addf("%d entities are stored, and %d live", exist, n)
	}
	for h := range m.locals.dead {
		f.addf2(h, "Alive", r.Alive(h), false)
		_, err := r.Resolve(h)
		f.add2(h, "Resolve", SameAnswer(registry.ErrStale, err))
	}
	for n := range m.nets.dead {
		_, err := r.ResolveNet(n)
		f.add2(n, "ResolveNet", SameAnswer(registry.ErrStale, err))
	}
	for h, l := range m.lives {
		f.addf2(h, "Alive", r.Alive(h), !l.reserved)
		if g, err := r.Resolve(h); err != nil || l.reserved {
			f.add2(h, "Resolve", SameAnswer(m.Answer(h), err))
		} else {
			f.add2(h, "Resolve", m.Resolved(h, g))
		}
		if l.reserved {
			continue
		}
		n, err := r.NetOf(h)
		f.add2(h, "NetOf", err)
		f.addf2(h, "NetOf", n, l.net)
		if l.net != 0 {
			back, err := r.ResolveNet(l.net)
			f.add2(l.net, "ResolveNet", err)
			f.addf2(l.net, "ResolveNet", back, h)
		}
		f.addf2(h, "Active", registry.Active(a, h), !l.inactive)
		m.compareCells(&f, a, h, l)
	}
	return f.err()
}

func (m *Model) compareCells(f *findings, a registry.Access, h handles.Local, l life) {
	for t, k := range m.kinds {
		got, err := k.peek(a, h)
		want, has := l.cells[t]
		if !has {
			f.add2(h, k.name, SameAnswer(registry.ErrNoComponent, err))
			continue
		}
		f.add2(h, k.name, err)
		if err == nil && !reflect.DeepEqual(got, want) {
			f.addf("%v: %s is %v, and should be %v", h, k.name, got, want)
		}
	}
}

// findings are the first few things that are wrong.
type findings struct {
	errs []error
	more int
}

const mostFindings = 8

func (f *findings) add(err error) {
	switch {
	case err == nil:
	case len(f.errs) < mostFindings:
		f.errs = append(f.errs, err)
	default:
		f.more++
	}
}

func (f *findings) addf(format string, args ...any) { f.add(fmt.Errorf("stress: "+format, args...)) }

func (f *findings) add2(who any, what string, err error) {
	if err != nil {
		f.addf("%v: %s: %w", who, what, err)
	}
}

func (f *findings) addf2(who any, what string, got, want any) {
	if got != want {
		f.addf("%v: %s is %v, and should be %v", who, what, got, want)
	}
}

func (f *findings) err() error {
	if f.more > 0 {
		f.errs, f.more = append(f.errs, fmt.Errorf("stress: and %d more", f.more)), 0
	}
	return errors.Join(f.errs...)
}

// Distinct walks all entities that a token shows and says which two of them share a handle of any space, or a cache
// index, and which answers do not lead back to the entity. It needs no model.
//
// Errors: the first aliases.
// Concurrency: as the token; nobody may destroy meanwhile. Allocates: in proportion to the entities.
func Distinct(a registry.Access) error {
	f, r := findings{}, a.Registry()
	locals, places := map[handles.Local]bool{}, map[uint32]handles.Local{}
	records, nets := map[handles.Global]handles.Local{}, map[handles.Net]handles.Local{}
	err := registry.EachChunk(a, func(l *registry.Look) bool {
		for w := range (l.Chunk.Allocated() + 63) / 64 {
			for rest := l.Exists(w); rest != 0; rest &= rest - 1 {
				slot := uint32(w<<6 + bits.TrailingZeros64(rest))
				h, place := l.Chunk.Entities()[slot], l.Chunk.Base()+slot
				if locals[h] {
					f.addf("two entities are called %v", h)
				}
				locals[h] = true
				if other := places[place]; other != 0 {
					f.addf("%v and %v have cache index %d", other, h, place)
				}
				places[place] = h
				if at, ok := registry.CacheIndex(a, h); !ok || at != place {
					f.addf("%v lies at cache index %d, and is looked for at %d, %v", h, place, at, ok)
				}
				g, err := r.Resolve(h)
				f.add2(h, "Resolve", err)
				if other := records[g]; other != 0 {
					f.addf("%v and %v have the record %v", other, h, g)
				}
				records[g] = h
				n, err := r.NetOf(h)
				f.add2(h, "NetOf", err)
				if n == 0 {
					continue
				}
				if other := nets[n]; other != 0 {
					f.addf("%v and %v have the name %v", other, h, n)
				}
				nets[n] = h
				back, err := r.ResolveNet(n)
				f.add2(n, "ResolveNet", err)
				f.addf2(n, "ResolveNet", back, h)
			}
		}
		return true
	})
	f.add(err)
	return f.err()
}

// HashCovers says which fields of a class the hash of the state does not cover. build makes an empty registry with
// the class, and e is any value of it. Each leaf field in turn gets another value than e's, in a registry of its
// own: no two of the hashes may be equal. Activity, parents' handles and the like are the registry's own and not
// looked at.
//
// Errors: each field that is not covered; those of build.
// Concurrency: any goroutine. Allocates: a registry for each field.
func HashCovers[E any](build func() (*registry.Registry, *registry.Class[E], error), e E) error {
	hash := func(e E) (sum uint64, err error) {
		r, class, err := build()
		if err != nil {
			return 0, err
		}
		return sum, r.Update(func(w *registry.Window) error {
			if _, err := class.Spawn(w, e); err != nil {
				return err
			}
			sum, err = snapshot.Hash(w)
			return err
		})
	}
	first, err := hash(e)
	if err != nil {
		return err
	}
	f, seen := findings{}, map[uint64]string{first: "the state itself"}
	eachLeaf(reflect.TypeFor[E](), reflect.TypeFor[E]().Name(), nil, func(name string, path []int) {
		changed := reflect.New(reflect.TypeFor[E]()).Elem()
		changed.Set(reflect.ValueOf(e))
		leaf := changed
		for _, i := range path {
			if leaf.Kind() == reflect.Array {
				leaf = leaf.Index(i)
			} else {
				leaf = leaf.Field(i)
			}
		}
		if !alter(leaf) {
			f.addf("%s is of a type that no value is known for: %v", name, leaf.Type())
			return
		}
		sum, err := hash(changed.Interface().(E))
		if other, same := seen[sum]; err == nil && same {
			f.addf("another %s hashes as %s does", name, other)
		}
		f.add(err)
		seen[sum] = name
	})
	return f.err()
}

// eachLeaf calls fn with every field that has no fields.
func eachLeaf(t reflect.Type, name string, path []int, fn func(name string, path []int)) {
	below := func(i int) []int { return append(slices.Clone(path), i) }
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			eachLeaf(t.Field(i).Type, name+"."+t.Field(i).Name, below(i), fn)
		}
	case reflect.Array:
		for i := range t.Len() {
			eachLeaf(t.Elem(), fmt.Sprintf("%s[%d]", name, i), below(i), fn)
		}
	default:
		fn(name, path)
	}
}

// alter gives a value that can be set another one.
func alter(v reflect.Value) bool {
	switch {
	case !v.CanSet():
		return false
	case v.CanInt():
		v.SetInt(v.Int() ^ 1)
	case v.CanUint():
		v.SetUint(v.Uint() ^ 1)
	case v.CanFloat() && v.Kind() == reflect.Float32: // the lowest bit
		v.SetFloat(float64(math.Float32frombits(math.Float32bits(float32(v.Float())) ^ 1)))
	case v.CanFloat():
		v.SetFloat(math.Float64frombits(math.Float64bits(v.Float()) ^ 1))
	case v.CanComplex():
		v.SetComplex(v.Complex() + 1)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "'")
	default:
		return false
	}
	return true
}

// NothingLeft says what an engine left behind that has been stopped: waiting callers, queued operations, frames that
// somebody holds, and goroutines beyond the number there were before it was made, which get 20 seconds to end.
//
// Errors: each thing that is left; goroutines by their stacks.
// Concurrency: any goroutine, when the engine has been stopped. Allocates: for an error.
func NothingLeft(e *logic.Engine, goroutines int) error {
	return nothingLeft(e, goroutines, stopLimit)
}

func nothingLeft(e *logic.Engine, goroutines int, within time.Duration) error {
	f, s := findings{}, e.Stats()
	if s.Waiting != 0 || s.Queued != 0 {
		f.addf("after Stop %d callers wait, and %d operations are queued", s.Waiting, s.Queued)
	}
	if n := e.Registry().Stats().Pinned; n != 0 {
		f.addf("after Stop %d frames are held", n)
	}
	limit := time.Now().Add(within)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(limit) {
		<-time.After(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		f.addf("%d goroutines are left, of %d before:\n%s", n-goroutines, goroutines, foremost(string(stacks)))
	}
	return f.err()
}

// foremost is the beginning of many stacks.
func foremost(stacks string) string {
	parts := strings.Split(stacks, "\n\n")
	return strings.Join(parts[:min(len(parts), 8)], "\n\n")
}
