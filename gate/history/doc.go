// Package history is the store of past runs and what follows from them: how much runs differ when nothing changed, the
// baseline as a window and not one run, the commits at which a metric changed and why, what was spent of a budget since
// an anchor.
//
// A store is a SQLite file or a PostgreSQL database; which of the two makes no difference to any answer. What is kept
// of a run is its report, cut down to what a comparison reads, and its headline numbers as points of series.
//
// It knows reports, comparisons and the two databases. It knows neither GitHub nor git: who calls it says which commits
// lie between two, and who owns what they touch.
package history
