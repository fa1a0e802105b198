// Package history stores past runs, and analyses them: how much runs differ when nothing changed, a baseline that is a
// window of runs instead of one run, the commits at which a metric changed and why, and how much of a budget was spent
// since an anchor.
//
// A store is a SQLite file or a PostgreSQL database; both give the same answers. For each run it keeps the report,
// reduced to what a comparison reads, and its headline numbers as points of series.
//
// The package knows reports, comparisons and the two databases. It knows neither GitHub nor git: the caller says which
// commits lie between two, and who owns the files that they change.
package history
