// Package arena is a small authoritative game server that shows how a program embeds the
// engine: people and bots connect over TCP, and each connection's goroutine spawns what it
// needs itself, through the handshake, while Logic waits.
//
// What goes through which door:
//
//   - join and fire change structure: Engine.Spawn with a deadline (session.go).
//   - move is an operation of the next window: Engine.Defer, without a wait (world.go).
//   - a disconnect is Registry.Destroy, which any goroutine may call and which never waits.
//   - look reads what Logic owns: Logic copies it at the end of a frame, once for all that
//     asked in that frame and not at all when nobody did, so that a steady frame pays one
//     atomic load for it (look.go).
//   - arrows and sparks come from pools, which a file declares: arrows in the window, sparks
//     from a system (pools.go).
//   - totals are counted by observers, so on whatever path something was spawned or died,
//     and compared with the registry's own figures at the end (tally.go).
//
// Logic never touches a socket: a client that reads slowly holds up its own goroutine until
// its write deadline, and nobody else.
//
// With Config.Journal everything that comes from outside is recorded, and Replay does it again, frame by frame
// with the same hash: the registry is deterministic, systems take what they decide by from components and from
// Frame.Rand, and clients change the world in windows only.
//
// Life of a Server: New validates and listens; Run serves until its context ends, then stops
// listener, bots, connections (each destroys its player) and engine, in this order.
// A Server runs once. It owns its registry and engine; nothing in this package is global.
package arena
