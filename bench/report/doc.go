// Package report shows what package contest has measured: as a table, as a section of a Markdown
// document with the machine it was measured on, and as a chart.
package report
