package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// entity is the page of one handle.
type entity struct {
	Handle     handles.Local
	State      string    // alive, reserved, dead, or never issued
	Net        string    `json:",omitempty"`
	Global     string    `json:",omitempty"`
	CacheIndex *uint32   `json:",omitempty"`
	Obituary   *obituary `json:",omitempty"` // of a dead one that is remembered

	Frame      uint64      // that the rest is of
	Source     string      // "window" or "published"
	Class      string      `json:",omitempty"`
	Active     bool        //
	Parent     string      `json:",omitempty"` // only Logic knows it
	Components []component `json:",omitempty"`
}

type obituary struct {
	Frame uint64
	Cause string
}

type component struct {
	Name, Tier string
	Fields     []field
	Error      string `json:",omitempty"` // why it cannot be read

	value reflect.Value // a copy, of which Fields are made
}

// appendJSON writes values down, which may be large, on the goroutine of whoever looks at them: in a window they are copied only.
func (e *entity) appendJSON(buf []byte) []byte {
	for i := range e.Components {
		if c := &e.Components[i]; c.value.IsValid() {
			c.Fields = fieldsOf(c.value)
		}
	}
	data, _ := json.Marshal(e) // there are only texts and whole numbers
	return append(buf, data...)
}

// entityTopic is the page of one handle. Logic knows all its components and its parent; while it does not answer, a published
// frame shows some of them.
func entityTopic(h *Handler, q url.Values) (*keptView, error) {
	var local handles.Local
	if err := local.UnmarshalText([]byte(q.Get("handle"))); err != nil {
		return nil, err
	}
	return h.views.find("entity "+local.String(), &keptView{
		h: h, event: "entity",
		onLogic: func(w *registry.Window) any { return entityOf(w, local, "window") },
		published: func() any {
			var e *entity
			err := h.read(func(s *registry.Snapshot) { e = entityOf(s, local, "published") })
			if err != nil {
				e = &entity{Source: "none"}
				e.name(h.engine.Registry(), local)
			}
			return e
		},
	}), nil
}

// name fills in what any goroutine may ask.
func (e *entity) name(r *registry.Registry, h handles.Local) {
	e.Handle = h
	_, err := r.Resolve(h)
	switch {
	case r.Alive(h):
		e.State = "alive"
	case errors.Is(err, registry.ErrNotSpawned):
		e.State = "reserved"
	case errors.Is(err, registry.ErrInvalidHandle):
		e.State = "never issued"
	default:
		e.State = "dead"
	}
	if g, err := r.Resolve(h); err == nil {
		e.Global = g.String()
	}
	if n, err := r.NetOf(h); err == nil && !n.IsZero() {
		e.Net = n.String()
	}
	if o, ok := r.Obituary(h); ok {
		e.Obituary = &obituary{o.Frame, o.Cause}
	}
}

// entityOf is the page as a window or a published frame shows it.
func entityOf(a registry.Access, h handles.Local, source string) *entity {
	e := &entity{Frame: a.FrameNumber(), Source: source}
	e.name(a.Registry(), h)
	arch, err := registry.ArchetypeOf(a, h)
	if err != nil {
		return e
	}
	e.Class, e.Active = arch.ClassName(), registry.Active(a, h)
	if i, ok := registry.CacheIndex(a, h); ok {
		e.CacheIndex = &i
	}
	if w, ok := a.(*registry.Window); ok {
		if p, err := registry.Parent(w, h); err == nil && !p.IsZero() {
			e.Parent = p.String()
		}
	}
	for _, comp := range arch.Components() {
		c := component{Name: comp.Name, Tier: comp.Tier.String(), Fields: []field{}}
		if v, err := registry.ValueOf(a, h, comp); err == nil {
			c.value = v
		} else {
			c.Error = fmt.Sprint(err)
		}
		e.Components = append(e.Components, c)
	}
	return e
}
