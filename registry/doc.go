// Package registry gives entities their identity and their life: it joins the handle
// spaces of package handles to the storage of package archetype, and decides when
// structure may change.
//
// # What it owns
//
// Records (the Global space), classes, windows with their undo log, deferred destruction,
// parents and children, net names, observers, obituaries and statistics. Storage belongs
// to package archetype, the loop and the handshake to package logic.
//
// # Life of an entity
//
// Reserve or Spawn gives a handle; Destroy ends it for good, at once and from any
// goroutine; ProcessDeferredDestructions reclaims its slot; ConfirmLocalRecycles lets its
// index serve again, with the next generation. A stale handle therefore never names a
// newer entity.
//
// # Who may call what
//
// One goroutine at a time owns the registry: the one inside Update, or Logic with
// everything it lends the window to. Ownership passes through a channel, which is the
// happens-before edge for every field marked "owner". Three tokens show that a caller may
// touch what is owned: a Window (structure), a Frame (fields, destruction) and a Snapshot
// (a published frame). What needs no token reads atomics only, and never waits for the
// owner.
package registry
