package views

import "reflect"

// Internals for the tests in views_test.
var (
	NextRun   = nextRun
	CountLive = countLive
)

const SpareCount = spareCount

// Kept is how many view structs the query holds. No loop may run.
func (q *Query[T]) Kept() int {
	n := 0
	for i := range q.spares {
		if q.spares[i].view != nil {
			n++
		}
	}
	return n
}

// SpreadFrom says from how many entities on Parallel uses the workers.
func (q *Query[T]) SpreadFrom(entities int) { q.spreadFrom = entities }

// Reads are the names of the fields declared as read only.
func (q *Query[T]) Reads() []string {
	var names []string
	for _, c := range q.plan.columns {
		if c.read {
			names = append(names, c.name)
		}
	}
	return names
}

// Offsets checks the claim that fills go by the offset of their field.
func (q *Query[T]) Offsets() bool {
	for _, c := range q.plan.columns {
		f, ok := reflect.TypeFor[T]().FieldByName(c.name)
		if !ok || f.Offset != c.offset || f.Type.Elem().Size() != c.size {
			return false
		}
	}
	return true
}
