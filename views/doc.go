// Package views reads and writes entities by the column instead of one by one: a query
// names the components a loop needs, and the loop gets plain slices of them. For single entities
// it has cursors, which follow theirs wherever it moves.
//
// # What it owns
//
// The description of a query (which columns, which filters), the list of archetypes that
// match it, the structs that its loops yield, and the lists of live slots that masks show. It owns no
// entity memory: the slices it hands out are windows on the chunks of package archetype, and package
// registry says when they may be looked at. What changes structure is not here either, but for
// SpawnColumns, DestroyAll and Construct; a loop that wants more calls the methods of its Window or
// Frame.
//
// # A query
//
// A query is described by a struct of slices. Each exported field is a column:
//
//	type movers struct {
//		Pos  []Position                      // a component
//		Vel  []Velocity `ecs:"read"`         // a component this loop only reads
//		Mass []Mass     `ecs:"optional"`     // nil where entities have none
//		Y    []float64  `ecs:"Altitude.Y"`   // a field of a component registered with Split
//		ID   []handles.Local                 // the entities themselves, to read
//		At   []uint32   `ecs:"index"`        // their cache indices, to read
//	}
//
// NewQuery checks that description once and reports what is wrong with it, by field; from
// then on a loop can fail in one way only, by misuse of its token. Filters (With, Without, InClass,
// Changed) select archetypes and chunks by what the loop doesn't look at; Published has NewQuery
// refuse what snapshots could not show.
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
// panic, runtime.Goexit) it gives back what it held. The others differ in what they yield:
//
//   - RunsSince leaves out chunks in which nothing has changed after a frame; a Follower those in which nothing has since its
//     last loop.
//   - Spans yields whole chunks with a Mask of the live slots, for kernels that may compute dead
//     lanes (package wide has some) and for loops over what is sparse.
//   - Parallel calls a function for every run, on the engine's workers, with the same outcome for any
//     number of them.
//
// # What counts as a change
//
// Chunks remember for each column the frame in which it may last have been written. A loop that
// shows a column without `read` counts as a writer of every chunk it yields, whether it writes or
// not: what is declared is cheap to keep, what is written would have to be compared.
//
// # Single entities
//
// Entity and Construct are structs of pointers, Field is one value. Their Get finds the cells again
// when the entity has moved or the token is another one, and answers registry.ErrStale once it is
// dead, for ever.
//
// # Who may call it
//
// A query has no state of its own that a loop could disturb: any number of goroutines may
// share one, each with its own token or, inside a frame, with the same one. Two loops that
// write the same column of the same entities at the same time are a data race, as they are
// over any slice. Cursors are for one goroutine at a time.
package views
