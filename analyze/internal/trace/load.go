package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/trace/kineto"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// loader builds a trace from the tables of events.
type loader struct {
	common
	tagging    sync.Mutex
	payloads   payload.Fields  // of ranges
	rangeRanks map[int64]int64 // by global pid, from names that MPI gives its threads
}

// common is what all who build a trace read from and write to.
type common struct {
	*scanner
	texts
	trace *Trace
}

// scanner reads the rows of tables.
type scanner struct {
	ctx     context.Context
	src     source.Source
	opt     *Options
	tables  map[Role]source.Table
	maxRows int64 // a row takes at least a byte: a view that yields more rows is endless
}

// texts are the strings of the capture, by id.
type texts map[int64]string

// load reads a capture. If the pages of the file cannot be read without SQLite, SQLite reads them; if they look
// damaged, SQLite reads them only if its own check finds no fault. Else the error names the page.
func load(ctx context.Context, src source.Source, in *source.Input, opt *Options) (*Trace, error) {
	t, err := loadFrom(ctx, src, in, opt)
	page, damaged := errors.AsType[*pages.PageError](err)
	fast, ok := src.(*source.Paged)
	if err == nil || !ok || ctx.Err() != nil || !damaged && !errors.Is(err, pages.ErrUnusual) {
		return t, err
	}
	slow := fast.SQL
	if damaged {
		if wrong := slow.Check(ctx); wrong != nil && ctx.Err() == nil {
			var table error // that the page is of, if the error says so
			if input, ok := errors.AsType[*InputError](err); ok {
				if name, ok := strings.CutSuffix(input.Err.Error(), ": "+page.Error()); ok {
					table = errors.New(name)
				}
			}
			return nil, in.Fail("is damaged: "+page.Error(), "export it again", table)
		}
	}
	t, sqlErr := loadFrom(ctx, slow, in, opt)
	if sqlErr == nil || ctx.Err() != nil || !damaged {
		return t, sqlErr
	}
	return nil, err
}

func loadFrom(ctx context.Context, src source.Source, in *source.Input, opt *Options) (*Trace, error) {
	tables, err := src.Tables()
	if err != nil {
		return nil, in.Damaged(err)
	}
	arena, err := columnsOf(in, opt)
	if err != nil {
		return nil, err
	}
	scan := &scanner{ctx: ctx, src: src, opt: opt, tables: probe(tables), maxRows: max(in.Size, 1)}
	names := texts{}
	l := &loader{common: common{scan, names, &Trace{File: in.File, arena: arena, texts: names}}, rangeRanks: map[int64]int64{}}
	l.trace.Meta.Source, l.trace.Has = "nsys", columnsIn(l.tables)
	if in.File.Kind == source.PyTorch { // which knows some of the driver's launches
		l.trace.Meta.Source, l.trace.Has.EveryLaunch = "pytorch", false
	}
	err = l.check(tables, in)
	if err == nil {
		l.trace.LeftOut = l.leftOut(tables)
		if err = l.run(); err != nil {
			err = cmp.Or(ctx.Err(), in.Fail("cannot be read to its end: it is damaged", "copy or export it again", err))
		}
	}
	if err != nil {
		return nil, errors.Join(err, arena.Close())
	}
	return l.trace, nil
}

// check refuses what is not a capture.
func (l *loader) check(tables []source.Table, in *source.Input) error {
	switch nsys, data := isNsys(tables, l.tables); {
	case !nsys && slices.ContainsFunc(tables, func(t source.Table) bool { return strings.HasPrefix(t.Name, "rocpd_") }):
		return in.Fail("is a database of ROCm's rocprofv3 (rocpd), which explain does not read",
			"profile with torch.profiler, which writes a trace.json on ROCm too, and name that", nil)
	case !nsys:
		return in.Fail("is a SQLite database, but not an Nsight Systems export",
			"run `nsys export --type sqlite --lazy=false` on the .nsys-rep and name the .sqlite it writes", nil)
	case !data:
		return in.Fail("is what a failed nsys export leaves behind: it holds no events",
			"run `nsys export --type sqlite --lazy=false --force-overwrite=true` again and look at what it prints", nil)
	}
	if table, column := unreadable(tables, l.tables); table != "" {
		return in.Fail("has a table "+table+" without a column "+column+
			", which no version of nsys that explain knows writes",
			"try a newer explain, or export it with another version of nsys", nil)
	}
	return nil
}

func (l *loader) run() error {
	if err := l.loadStrings(); err != nil {
		return err
	}
	t := l.trace
	var err error
	if l.payloads, err = l.loadPayloadFields(); err != nil {
		return err
	}
	var tables []*eventTable
	for role, e := range newEvents(l) {
		if info, ok := l.tables[role]; ok {
			e.Role, e.Name, e.info, e.found = role, info.Name, info, info.Known(e.names(info))
			tables = append(tables, e)
		}
	}
	lists.Sort(tables, func(a, b *eventTable) int { return strings.Compare(string(a.Role), string(b.Role)) })
	if err := l.read(tables); err != nil {
		return err
	}
	short := &shortTables{common: l.common}
	for _, load := range []func() error{
		short.loadAllocs, short.loadEvents, short.loadPower, short.loadGraphsMade, short.loadHostCalls} {
		if err := load(); err != nil {
			return err
		}
	}
	l.settle(tables)
	dropStray(tables)
	for _, e := range tables {
		t.Tables = append(t.Tables, e.TableStat)
	}
	l.settleIdents(tables, short)
	l.closeRanges(tables)
	d := &descriptions{l.common, l.rangeRanks}
	return errors.Join(d.loadMeta(), short.loadCounters(), d.loadNames(), d.loadGPUs(), d.separateDevices(), d.loadRanks(short))
}

// read reads the event tables: those that can be read by pages together, in the order of the file, the others through
// SQLite.
func (l *loader) read(list []*eventTable) error {
	tasks := make([]func() error, 1) // the pages first: they take longest, and their error says where a file is damaged
	var plain []*eventTable
	src, ok := l.src.(*source.Paged)
	for _, e := range list {
		if ok && e.info.Plain != nil {
			plain = append(plain, e)
			continue
		}
		tasks = append(tasks, func() error { return l.readSQL(e) })
	}
	tasks[0] = func() error { return l.readPages(src, plain) }
	if len(plain) == 0 {
		tasks = tasks[1:]
	}
	failed := make([]error, len(tasks))
	parallel.Each(len(tasks), func(i int) { failed[i] = tasks[i]() })
	return cmp.Or(failed...)
}

// readRows is how many rows SQLite reads into one piece.
const readRows = 256

func (l *loader) readSQL(e *eventTable) error {
	sink := e.sink()
	piece := func(int) (leaf, slot int) { return e.grow(readRows) }
	held, known := l.src.(*kineto.Source)
	if known {
		leaves := (held.Rows(e.info.Name) + readRows - 1) / readRows
		e.reserve(leaves, leaves*readRows)
		piece = func(n int) (leaf, slot int) { return n / readRows, n }
	}
	n := 0
	err := l.scan(e.info, e.found, func(row []cell) error {
		if n%readRows == 0 {
			sink.Leaf(piece(n))
		}
		n++
		return sink.Row(row)
	})
	if known && e.Role != RoleNVTX { // the names of some ranges are read again
		held.Release(e.info.Name)
	}
	return err
}

func (l *loader) readPages(src *source.Paged, list []*eventTable) error {
	parts := lists.Map(list, func(e *eventTable) *pages.Part { return &pages.Part{Table: e.info.Plain, Columns: e.found} })
	scan, err := src.Pages.Prepare(parts)
	if err != nil {
		return err
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), maxWorkers, int(scan.Bytes()>>20)))
	sinks := make([][]pages.Sink, len(list))
	for i, e := range list {
		e.reserve(parts[i].Leaves(), parts[i].Slots())
		for range workers {
			sinks[i] = append(sinks[i], e.sink())
		}
	}
	l.opt.Report("read", 0)
	err = scan.Run(l.ctx, workers, func(part, worker int) pages.Sink { return sinks[part][worker] },
		func(bytes int64) { l.opt.Report("read", bytes) })
	if err == nil {
		l.opt.Report("read: done", scan.Bytes())
	}
	return err
}

// maxWorkers bounds how many goroutines decode pages: beyond that the file cannot be read faster.
const maxWorkers = 8

// settle makes the final columns, the tables side by side, the longest first.
func (l *loader) settle(list []*eventTable) {
	order := slices.Clone(list)
	lists.Sort(order, func(a, b *eventTable) int { return cmp.Compare(len(b.off), len(a.off)) })
	parallel.Each(len(order), func(i int) { order[i].settle() })
}

// scan reads a table's columns by name; a column without a name reads as NULL. It watches the context and reports
// progress.
func (l *scanner) scan(table source.Table, names []string, each func(row []cell) error) error {
	if strings.Join(names, "") == "" {
		return nil
	}
	var rows int64
	err := l.src.Scan(table, names, func(row []cell) error {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if rows&0xffff == 0 {
			l.opt.Report("read "+table.Name, rows)
		}
		if rows++; rows > l.maxRows {
			return fmt.Errorf("more rows than a file of %d bytes can hold", l.maxRows)
		}
		return each(row)
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", table.Name, err)
	}
	return nil
}

// scanRole is scan for the table with that role, if there is one; columns it lacks read as NULL.
func (l *scanner) scanRole(role Role, names []string, each func(row []cell) error) error {
	table, ok := l.tables[role]
	if !ok {
		return nil
	}
	return l.scan(table, table.Known(names), each)
}

func (l *loader) loadStrings() error {
	return l.scanRole(RoleStrings, []string{"id", "value"}, func(row []cell) error {
		if id, ok := row[0].Whole(); ok && row[1].Kind != pages.Null {
			l.texts[id] = public(textOf(&row[1]))
		}
		return nil
	})
}

// textOf is a text or the bytes of a blob; for anything else it is empty.
func textOf(c *cell) string {
	if c.Kind == pages.Text || c.Kind == pages.Blob {
		return c.S
	}
	return ""
}

// text resolves a name cell: text as it is, an id through the string table. It is valid as long as the row is.
func (l texts) text(c *cell) (string, bool) {
	switch c.Kind {
	case pages.Text, pages.Blob:
		return public(c.S), true
	case pages.Int:
		s, ok := l[c.Bits]
		return s, ok
	}
	return "", false
}

// name resolves a cell that is an id or a name: text, and an id that was rewritten as text. It is valid as long as the
// row is.
func (l texts) name(c *cell) (string, bool) {
	if c.Kind == pages.Text {
		if id, ok := c.Whole(); ok {
			if s, ok := l[id]; ok {
				return s, true
			}
		}
	}
	return l.text(c)
}

// closeRanges ends the ranges that were open when the capture stopped at the last moment of any event.
func (l *loader) closeRanges(tables []*eventTable) {
	last := int64(minTime)
	for _, e := range tables {
		if e.Role != RoleSync && e.Role != RoleHostFunc && !e.beside && e.span.Len() > 0 {
			last = max(last, e.facts.last)
		}
	}
	span.CloseOpen(&l.trace.Ranges.Span, last)
}

const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
	openEnd = 1<<63 - 1
)
