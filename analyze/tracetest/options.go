package tracetest

import "slices"

// Option says how the file deviates from a plain export of the default schema.
type Option func(*options)

type options struct {
	schema      string
	withoutCols []tableColumn
	withoutTabs []string
	empty       []string
	renames     []rename
	extra       []extraColumn
	views       []string
	dangling    []string
	inline      bool
	wal         bool
	utf16       bool
	pageSize    int
	autoVacuum  int
	shuffle     bool
	seed        uint64
}

type tableColumn struct{ table, column string }

type rename struct{ from, to string }

type extraColumn struct{ table, column, decl string }

func (o *options) dropped(table, col string) bool {
	return slices.Contains(o.withoutTabs, table) || slices.Contains(o.withoutCols, tableColumn{table, col})
}

// Schema sets the schema version. It is "oldest" or one of 3.0.0, 3.6.0, 3.7.2, 3.11.1, 3.16.1, 3.17.2, 3.23.3,
// 3.24.14 and 3.25.0; another makes Write fail.
func Schema(version string) Option { return func(o *options) { o.schema = version } }

// WithoutTable leaves a table out though it has rows.
func WithoutTable(table string) Option {
	return func(o *options) { o.withoutTabs = append(o.withoutTabs, table) }
}

// WithoutColumn leaves a column out of a table, e.g. globalPid or correlationId of CUPTI_ACTIVITY_KIND_KERNEL.
func WithoutColumn(table, column string) Option {
	return func(o *options) { o.withoutCols = append(o.withoutCols, tableColumn{table, column}) }
}

// WithColumn appends a column to a table, as tools that post-process exports do. decl is its SQL type, e.g. "TEXT".
// Rows fill it through their Set field; it is NULL elsewhere.
func WithColumn(table, column, decl string) Option {
	return func(o *options) { o.extra = append(o.extra, extraColumn{table, column, decl}) }
}

// RenameTable writes a table under another name.
func RenameTable(from, to string) Option {
	return func(o *options) { o.renames = append(o.renames, rename{from, to}) }
}

// EmptyTable creates a table though it has no rows. Exports without --lazy, and cut-down ones, have such tables.
func EmptyTable(table string) Option {
	return func(o *options) { o.empty = append(o.empty, table) }
}

// AsView makes a table a view over one named with the suffix _data.
func AsView(table string) Option { return func(o *options) { o.views = append(o.views, table) } }

// InlineNames writes every text where its StringIds id would stand, in columns of type TEXT.
func InlineNames() Option { return func(o *options) { o.inline = true } }

// DanglingID leaves a text out of StringIds: rows keep its id, which then leads nowhere.
func DanglingID(text string) Option {
	return func(o *options) { o.dangling = append(o.dangling, text) }
}

// WAL leaves the file in write-ahead-log mode with the later half of the rows only in the -wal file beside it, as a
// program that was killed leaves it. The log carries random salts, so such a file is not byte-identical between writes.
func WAL() Option { return func(o *options) { o.wal = true } }

// UTF16 stores texts as UTF-16 (little endian).
func UTF16() Option { return func(o *options) { o.utf16 = true } }

// PageSize sets the page size in bytes: a power of two from 512 to 65536. Real exports have 4096.
func PageSize(bytes int) Option { return func(o *options) { o.pageSize = bytes } }

// AutoVacuum sets SQLite's auto_vacuum mode: 0 none, 1 full, 2 incremental. Real exports have none.
func AutoVacuum(mode int) Option { return func(o *options) { o.autoVacuum = mode } }

// Shuffle writes the rows in an order drawn from seed instead of by start time.
func Shuffle(seed uint64) Option {
	return func(o *options) { o.shuffle, o.seed = true, seed }
}
