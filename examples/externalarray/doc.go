// Command externalarray keeps an array outside of the registry in step with it: the bodies of a physics
// library, say, or a render buffer. The array is indexed by cache index. One subscription to moves is
// all that it takes to follow compaction and components that are added; who is drawn is read from the
// mask of a span, which no longer has an entity in the phase after it was destroyed.
package main
