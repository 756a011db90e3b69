// Package views reads and writes entities by the column instead of one by one: a query
// names the components a loop needs, and the loop gets plain slices of them.
//
// # What it owns
//
// The description of a query (which columns, which filters), the list of archetypes that
// match it, and the structs that its loops yield. It owns no entity memory: the slices it
// hands out are windows on the chunks of package archetype, and package registry says when
// they may be looked at. What changes structure is not here either; a loop that wants that
// calls the methods of its Window or Frame.
//
// # A query
//
// A query is described by a struct of slices. Each exported field is a column:
//
//	type movers struct {
//		Pos []Position                      // a component
//		Vel []Velocity `ecs:"read"`         // a component this loop only reads
//		Y   []float64  `ecs:"Altitude.Y"`   // a field of a component registered with Split
//		ID  []handles.Local                 // the entities themselves, to read
//	}
//
// NewQuery checks that description once and reports what is wrong with it, by field; from
// then on a loop can fail in one way only, by misuse of its token. Filters (With, Without)
// select archetypes by components that the loop doesn't look at.
//
// # A loop
//
//	for m := range q.Runs(f) {
//		pos, vel := m.Pos, m.Vel // hoisted: the loop then costs what it costs over plain slices
//		for i := range pos {
//			pos[i].X += vel[i].X
//		}
//	}
//
// Runs yields every maximal run of live slots. It looks at the Active plane when it is about
// to yield, so what died before its run is not in it, and what is born while the loop runs is
// seen by the next loop. A loop allocates nothing, and however it is left (break, return,
// panic, runtime.Goexit) it gives back what it held.
//
// # Who may call it
//
// A query has no state of its own that a loop could disturb: any number of goroutines may
// share one, each with its own token or, inside a frame, with the same one. Two loops that
// write the same column of the same entities at the same time are a data race, as they are
// over any slice.
package views
