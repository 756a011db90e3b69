// Package work defines what is compared: each file is a group of workloads for package contest.
//
// The other library is Ark, used in the best way that its documentation names: iteration by tables,
// batch operations, mappers made once. Where several ways could be meant they all take part, and
// the best one counts. Where Ark has nothing of the kind, the peer is what one would take from the
// standard library or from xsync. The raw side is the same work without any library.
//
// Rules of the game: components are of equal size on all sides, random orders are the same, and a
// world is warm on all sides (it has held as many entities before) or cold on all sides (made for the
// pass). What airlock needs to make a change final is inside the time: windows are opened and
// closed, the dead reclaimed, their indices confirmed.
package work
