// Package cookbook is the programs of docs/COOKBOOK.md: examples with checked output, one for each recipe, which shows
// them whole. Nothing is exported. A test in the root compares the page with these files.
package cookbook
