// Package defrag moves entities together: after many deaths what lives is spread over chunks that
// are nearly empty, and every loop pays for the holes.
//
// # What it owns
//
// The decision which entities and chunks go where. It is a pure function of occupancy: which
// slots of which chunks are in use, and who may move. Package registry carries it out.
//
// There are two kinds of moves:
//
//   - Slots: inside an archetype, entities from its end fill the holes at its front, until it has
//     the fewest chunks that hold them. Chunks that empty go back to the slab.
//   - Chunks: chunks at the end of the cache indices move into free ranges below, so that external
//     arrays can be short, and the chunks of a half-empty block move to the vacant places of
//     older ones, so that the block goes back to the slab.
//
// # A Compactor
//
// New makes one for a registry; it has no state of its own but buffers. Each Run works at most as
// much as Config.Moves says and reports what is left, so that a frame can afford a little of it. An
// engine does that by itself with logic.Config.Defrag.
//
// # Who hears of it
//
// Handles stay as they are. Cache indices change, and every subscriber to Registry.OnMove has been
// told when Run returns, in one batch whose order moves inside an array can follow: no move goes
// to a place that a later one leaves. Views rehydrate by themselves. Pointers and slices into
// storage that were taken before are no good any more.
//
// What has died and was not reclaimed stays where it is, and nobody hears of it.
//
// # Determinism
//
// A deterministic registry moves the entities of cosmetic classes only.
package defrag
