// Command views shows the ways to look at entities: runs, spans with a mask, parallel loops, and cursors
// that follow one entity. It runs ten frames and prints what it finds.
package main
