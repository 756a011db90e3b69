// Command bench compares airlock with Ark, with what the standard library and xsync offer, and with
// plain loops: in one process, by turns, with checksums that say that all did the same work.
//
//	go run . -run 'query' -size 262144
//	go run . -write
//
// It prints one table. With -write the table also goes into docs/PERFORMANCE.md, with the machine it
// was measured on, and a chart of the ratios to docs/bench.svg. What the workloads are, and the rules
// of the comparison, is told by package work; how figures come about, by package contest.
//
// A figure is the median over all passes of what one operation took, a ratio the median of the ratios
// of neighbouring passes, and the spread the distance between that ratio's quartiles over the median. From
// 15 % of spread on a row is noisy, and its target not said to be met.
package main
