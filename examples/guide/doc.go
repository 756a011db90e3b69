// Package guide is the programs of docs/GUIDE.md: examples with checked output, one for each chapter, which shows
// them in parts. Nothing is exported. A test in the root compares the page with these files.
package guide
