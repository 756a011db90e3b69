package views_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type unknown struct{ A int }

type unknownTag struct{}

// refuse is one view struct that NewQuery must not accept.
type refuse struct {
	name  string
	build func(*registry.Registry, ...views.Filter) error
	with  []views.Filter
	is    error    // what errors.Is must find, if anything
	says  []string // what the message must contain
}

func building[T any](r *registry.Registry, f ...views.Filter) error {
	_, err := views.NewQuery[T](r, f...)
	return err
}

func TestNewQueryRefusesWhatNoLoopCouldShow(t *testing.T) {
	w := newWorld(t)
	class[Mover](w)
	type positions struct{ Pos []Position }
	for _, c := range []refuse{
		{name: "not a struct", build: building[int], says: []string{"int", "struct of slices"}},
		{name: "pointer to a struct", build: building[*movers], says: []string{"struct of slices"}},
		{name: "slice", build: building[[]Position], says: []string{"struct of slices"}},
		{name: "unregistered", build: building[struct{ Foe []unknown }],
			is: registry.ErrNotRegistered, says: []string{"Foe", "views_test.unknown"}},
		{name: "unregistered tag", build: building[struct{ Foe []unknownTag }],
			is: registry.ErrNotRegistered, says: []string{"Foe", "unknownTag", "filter"}},
		{name: "value", build: building[struct{ Pos Position }], says: []string{"field Pos", "slice"}},
		{name: "pointer", build: building[struct{ Pos *Position }], says: []string{"field Pos", "slice"}},
		{name: "array", build: building[struct{ Pos [64]Position }], says: []string{"field Pos", "slice"}},
		{name: "pointer to a slice", build: building[struct{ Pos *[]Position }], says: []string{"field Pos", "slice"}},
		{name: "slice of pointers", build: building[struct{ Pos []*Position }],
			is: registry.ErrNotRegistered, says: []string{"field Pos", "by value"}},
		{name: "slice of any", build: building[struct{ Pos []any }], is: registry.ErrNotRegistered, says: []string{"field Pos"}},
		{name: "map", build: building[struct{ Pos map[int]Position }], says: []string{"field Pos"}},
		{name: "embedded struct", build: building[struct{ Embedded }], says: []string{"Embedded", "slice"}},
		{name: "unexported", build: building[struct{ pos []Position }], says: []string{"field pos", "not exported"}},
		{name: "blank", build: building[struct{ _ []Position }], says: []string{"field _", "not exported"}},
		{name: "twice", build: building[struct{ A, B []Position }], says: []string{"field B", "same column as field A"}},
		{name: "twice, once read", build: building[struct {
			A []Position
			B []Position `ecs:"read"`
		}], says: []string{"field B", "field A"}},
		{name: "two entity columns", build: building[struct{ A, B []handles.Local }], says: []string{"field B", "field A"}},
		{name: "global handles", build: building[struct{ G []handles.Global }], is: registry.ErrNotRegistered, says: []string{"field G"}},
		{name: "tag component", build: building[struct{ Frozen []Frozen }], says: []string{"field Frozen", "With[views_test.Frozen]"}},
		{name: "whole split", build: building[struct{ A []Altitude }],
			is: registry.ErrSplit, says: []string{"field A", `ecs:"Altitude.X"`}},
		{name: "no such split field", build: building[struct {
			W []float32 `ecs:"Altitude.W"`
		}], is: registry.ErrNotRegistered, says: []string{"field W", "Altitude.W"}},
		{name: "no such component", build: building[struct {
			W []float32 `ecs:"Longitude.X"`
		}], is: registry.ErrNotRegistered, says: []string{"field W", "Longitude.X"}},
		{name: "field of an unsplit component", build: building[struct {
			X []float64 `ecs:"Position.X"`
		}], says: []string{"field X", "not split"}},
		{name: "split field of another type", build: building[struct {
			X []float64 `ecs:"Altitude.X"`
		}], says: []string{"field X", "[]float32"}},
		{name: "split field twice", build: building[struct {
			A []float32 `ecs:"Altitude.X"`
			B []float32 `ecs:"Altitude.X,read"`
		}], says: []string{"field B", "field A"}},
		{name: "unknown option", build: building[struct {
			Pos []Position `ecs:"readonly"`
		}], says: []string{"field Pos", "readonly"}},
		{name: "two paths", build: building[struct {
			X []float32 `ecs:"Altitude.X,Altitude.Y"`
		}], says: []string{"field X", "Altitude.Y"}},
		{name: "index", build: building[struct {
			At []uint64 `ecs:"index"`
		}], says: []string{"field At", "[]uint32"}},
		{name: "optional index", build: building[struct {
			At []uint32 `ecs:"index,optional"`
		}], says: []string{"field At", "every entity"}},
		{name: "two indices", build: building[struct {
			At  []uint32 `ecs:"index"`
			Too []uint32 `ecs:"index"`
		}], says: []string{"field Too", "field At"}},
		{name: "optional handle", build: building[struct {
			ID []handles.Local `ecs:"optional"`
		}], says: []string{"field ID", "every entity"}},
		{name: "indices without a tag", build: building[struct{ At []uint32 }],
			is: registry.ErrNotRegistered, says: []string{"field At", `ecs:"index"`}},
		{name: "index with a path", build: building[struct {
			At []uint32 `ecs:"index,Altitude.X"`
		}], says: []string{"field At", "every entity"}},
		{name: "optional, but excluded", build: building[struct {
			ID  []handles.Local
			Pos []Position `ecs:"optional"`
		}], with: []views.Filter{views.Without[Position]()}, says: []string{"field Pos", "always be nil", "Without[views_test.Position]"}},
		{name: "no class", build: building[positions], with: []views.Filter{views.InClass[unknown]()},
			is: registry.ErrNotRegistered, says: []string{"InClass[views_test.unknown]"}},
		{name: "cold", build: building[positions], with: []views.Filter{views.Published()},
			is: registry.ErrNotPublished, says: []string{"field Pos", "Position", "InTier(Volatile)"}},
		{name: "changed and excluded", build: building[positions],
			with: []views.Filter{views.Without[Frozen](), views.Changed[Frozen](3)}, says: []string{"Changed[views_test.Frozen](3)", "Frozen"}},
		{name: "filter unregistered", build: building[positions], with: []views.Filter{views.Without[unknown]()},
			is: registry.ErrNotRegistered, says: []string{"Without[views_test.unknown]"}},
		{name: "filter zero", build: building[positions], with: []views.Filter{{}}, says: []string{"zero Filter"}},
		{name: "filter against column", build: building[positions], with: []views.Filter{views.Without[Position]()},
			says: []string{"Without[views_test.Position]", "nothing can match"}},
		{name: "filter against filter", build: building[positions],
			with: []views.Filter{views.Without[Frozen](), views.With[Frozen]()}, says: []string{"nothing can match"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.build(w.Registry, c.with...)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, part := range c.says {
				assert.Contains(t, err.Error(), part)
			}
		})
	}
	require.Error(t, building[positions](nil), "no registry")
}

// Embedded has a column, but an embedded struct is no column.
type Embedded struct{ Pos []Position }

// Positions shows that the slice type may have a name.
type Positions []Position

func TestNewQueryAcceptsEveryKindOfColumn(t *testing.T) {
	w := newWorld(t)
	class[Mover](w)
	type wide struct {
		Named Positions
		Vel   []Velocity `ecs:"read"`
		Name  []Name
		Odd   []Odd
		Mark  []Mark          `ecs:" read "`
		Y     []float32       `ecs:"Altitude.Y,read"`
		X     []float32       `ecs:"read,views_test.Altitude.X"`
		ID    []handles.Local `ecs:"read"`
	}
	q := query[wide](w, views.With[Frozen](), views.With[Position](), views.With[Frozen]())
	require.Equal(t, []string{"Vel", "Mark", "Y", "X", "ID"}, q.Reads())
	require.True(t, q.Offsets())
}

func TestPublishedAcceptsWhatSnapshotsCanShow(t *testing.T) {
	type Heat struct{ Degrees float64 }
	w := newWorld(t)
	registered[Heat](t, w.Registry, registry.InTier(archetype.Volatile))
	query[struct {
		Heat []Heat
		ID   []handles.Local
		At   []uint32 `ecs:"index"`
	}](w, views.Published(), views.Without[Frozen]())
}

func TestFiltersPrintAsWritten(t *testing.T) {
	assert.Equal(t, "With[views_test.Frozen]", views.With[Frozen]().String())
	assert.Equal(t, "Without[views_test.Frozen]", views.Without[Frozen]().String())
	assert.Equal(t, "InClass[views_test.Mover]", views.InClass[Mover]().String())
	assert.Equal(t, "Changed[views_test.Frozen](7)", views.Changed[Frozen](7).String())
	assert.Equal(t, "Published", views.Published().String())
	assert.Equal(t, "Filter{}", views.Filter{}.String())
}
