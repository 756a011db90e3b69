// Package airlock is the root of the module and has no code of its own. The module is an
// embeddable, multithreaded ECS registry engine for game loops and real-time servers.
//
// One goroutine, Logic, owns the storage of all entities and runs frames over it. Every other
// goroutine enters through an airlock: it queues, and at the top of a frame, while Logic
// waits, it changes structure itself, on its own stack, and hands the window on. What need
// not be in step with a frame (is this handle alive, end that entity) any goroutine asks
// or does at any time, through atomics and without waiting.
//
// The packages, from the bottom:
//
//   - handles: what an entity is called, and when a name may be used again.
//   - archetype: the memory that components lie in.
//   - registry: entities, their life, and who may change what when.
//   - views: queries, loops over columns.
//   - views/wide: kernels over whole columns.
//   - pool: pools of objects, of entities and of prefabs.
//   - defrag: compaction of what deaths have left.
//   - snapshot: hashes and differences of states, saved states, journals.
//   - logic: the engine, with frames, systems and the handshake.
//   - declare: worlds as data.
//   - stress: a model of the registry, and loads.
//
// The example below is a whole program. docs/GUIDE.md goes from a first entity to rollback, docs/COOKBOOK.md has
// programs for what comes up again and again. README.md says how to run what comes with the module,
// docs/ARCHITECTURE.md why it is built as it is, docs/CONCURRENCY.md who may touch what.
package airlock
