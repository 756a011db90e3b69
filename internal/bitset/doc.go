// Package bitset holds sets of small numbers that answer "which is the lowest" at once: free
// indices, chunks with holes. It is a bitmap with summaries above it: a bit of level n+1 says
// whether a word of level n has any bit, so that finding a member reads one word a level and
// never walks over the empty stretches.
//
// It leaves to others what the numbers mean and who may touch the set: a Set has no lock.
//
// Life of a Set: the zero value is empty; Add grows it to the highest number ever added, and
// it keeps that memory.
package bitset
