// Command browser serves a page of package inspect for its browser test: a harbour, with names that a page could take for
// markup. The test, page.mjs beside it, looks at this and at an arena with Chromium: make test-page. What the arena cannot
// show is here: its registry is deterministic, so nothing of it is compacted, and its players have tame names.
//
// It prints the address of the page, does what it reads line by line from its standard input, answers each line when that
// is done, and ends with its input:
//
//	churn  destroys seven of eight ships, here and there
//	hold   keeps Logic for two seconds
//	stop   stops the engine, while the page stays
//
// With -plain its names are ordinary ones, for pictures.
package main
