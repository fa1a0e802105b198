package merge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// tableFold merges one table: rows with equal keys become one. Until it is finished, a cell that names a GPU holds its
// place in the list of the run, and one that is a mean the sum of values times weights.
type tableFold struct {
	devices *devices
	table   report.Table   // of the first capture, without rows
	rules   []report.Merge // of columns
	keys    []int          // columns that identify rows
	sums    []int
	device  int // column that names the GPU of a row; -1: rows cover all GPUs
	lead    int // column by which rows are sorted, largest first; -1: by the keys
	at      map[string]*rowFold
	rows    []*rowFold
	// Captures whose tables are cut: their number, their "(others)" rows, and the largest row total of one.
	cut   int
	rest  [][]report.Cell
	total int64
}

type rowFold struct {
	key     string
	cells   []report.Cell
	biggest int64 // largest first sum in one capture: text cells come from that capture
	seen    int   // number of cut tables that list it
}

func newTableFold(d *devices, columns map[string]report.Merge, t *report.Table) *tableFold {
	f := &tableFold{devices: d, table: *t, device: -1, lead: -1, at: map[string]*rowFold{}}
	f.table.Rows, f.table.TotalRows, f.table.Others = nil, 0, false
	for i, c := range t.Columns {
		rule := columns[c.ID]
		f.rules = append(f.rules, rule)
		switch rule.How {
		case report.HowKey:
			f.keys = append(f.keys, i)
		case report.HowDevice:
			f.keys, f.device = append(f.keys, i), i
		case report.HowSum:
			f.sums = append(f.sums, i)
		}
		if rule.Lead {
			f.lead = i
		}
	}
	return f
}

// add adds the rows of one capture; its columns may be in another order.
func (f *tableFold) add(capture int, t *report.Table) {
	from := lists.Map(f.table.Columns, func(c report.Column) int { return t.Column(c.ID) })
	listed, seen := t.Entries(), 0
	if listed < len(t.Rows) {
		seen = 1
		f.cut++
		if f.device >= 0 { // no two captures share a row
			f.total += t.TotalRows - int64(listed)
		} else {
			f.total = max(f.total, t.TotalRows)
		}
	}
	for n, cells := range t.Rows {
		row := make([]report.Cell, len(from))
		for i, at := range from {
			if at >= 0 {
				row[i] = cells[at]
			}
		}
		if n < listed {
			if f.device >= 0 {
				if device, ok := row[f.device].Int(); ok && f.devices.foreign(deviceKey{capture, device}) {
					continue
				}
			}
			f.row(capture, &rowFold{cells: row, seen: seen})
		} else {
			f.rest = append(f.rest, row)
		}
	}
}

func (f *tableFold) row(capture int, r *rowFold) {
	if len(f.sums) > 0 {
		r.biggest, _ = r.cells[f.sums[0]].Int()
	}
	for i, rule := range f.rules {
		switch rule.How {
		case report.HowMean:
			v, ok1 := r.cells[i].Num()
			w, ok2 := f.cell(r.cells, rule.Over).Num()
			if r.cells[i] = report.Null; ok1 && ok2 {
				r.cells[i] = report.F(v * w)
			}
		case report.HowDevice, report.HowOneDevice:
			device, ok := r.cells[i].Int()
			gpu := deviceKey{capture, device}
			if r.cells[i] = report.Null; ok && f.devices.places.Has(gpu) {
				r.cells[i] = report.I(int64(f.devices.places.Of(gpu)))
			}
		}
	}
	var key strings.Builder
	for _, i := range f.keys {
		if at, ok := r.cells[i].Int(); ok && i == f.device {
			key.WriteString(f.devices.places.Keys[at].String())
		}
		s, _ := r.cells[i].Str()
		key.WriteString(s)
		key.WriteByte(0)
	}
	r.key = key.String()
	x := f.at[r.key]
	if x == nil {
		f.at[r.key] = r
		f.rows = append(f.rows, r)
		return
	}
	x.seen += r.seen
	f.merge(x, r)
}

// cell is that of a column by its id; null if there is none.
func (f *tableFold) cell(cells []report.Cell, id string) report.Cell {
	if at := f.table.Column(id); at >= 0 {
		return cells[at]
	}
	return report.Null
}

// merge adds another row of the same keys.
func (f *tableFold) merge(r, x *rowFold) {
	larger := x.biggest > r.biggest
	r.biggest = max(r.biggest, x.biggest)
	for i, rule := range f.rules {
		switch rule.How {
		case report.HowSum:
			r.cells[i] = r.cells[i].Plus(x.cells[i])
		case report.HowMean: // of all: unknown if it is in one capture
			if r.cells[i].IsNull() || x.cells[i].IsNull() {
				r.cells[i] = report.Null
			} else {
				r.cells[i] = r.cells[i].Plus(x.cells[i])
			}
		case report.HowMax:
			r.cells[i] = pick(r.cells[i], x.cells[i], 1)
		case report.HowMin:
			r.cells[i] = pick(r.cells[i], x.cells[i], -1)
		case report.HowMost:
			if larger {
				r.cells[i] = x.cells[i]
			}
		default: // other values, unless derived in finish, are known only if all captures agree
			if !r.cells[i].Equal(x.cells[i]) {
				r.cells[i] = report.Null
			}
		}
	}
}

func pick(a, b report.Cell, sign int) report.Cell {
	v, ok1 := a.Num()
	w, ok2 := b.Num()
	if !ok1 || ok2 && cmp.Compare(w, v) == sign {
		return b
	}
	return a
}

// finish computes derived columns, sorts the rows, and keeps the first rows of a ranked table. The "(others)" of one
// capture go into those of the run, because nobody knows which rows they hold.
func (f *tableFold) finish(run *fold) report.Table {
	f.shares()
	for _, row := range f.rows {
		for i, rule := range f.rules {
			if rule.How == report.HowLeave && len(run.captures) > 1 {
				row.cells[i] = report.Null
			}
			row.cells[i] = f.derived(row.cells, i, run.counts)
		}
	}
	number := func(row *rowFold) int64 {
		if f.device < 0 {
			return 0
		}
		n, _ := row.cells[f.device].Int()
		return n
	}
	f.rows = slices.DeleteFunc(f.rows, func(row *rowFold) bool { return number(row) >= maxDevices })
	most := func(row *rowFold) (v float64) {
		if f.lead >= 0 {
			v, _ = row.cells[f.lead].Num()
		}
		return v
	}
	lists.Sort(f.rows, func(a, b *rowFold) int {
		return cmp.Or(cmp.Compare(most(b), most(a)), cmp.Compare(number(a), number(b)), cmp.Compare(a.key, b.key))
	})
	t := f.table
	var rows [][]report.Cell
	rest := f.rest
	for _, row := range f.rows {
		if f.device < 0 && row.seen < f.cut {
			rest = append(rest, row.cells)
		} else {
			rows = append(rows, row.cells)
		}
	}
	t.TotalRows = max(int64(len(f.rows)), f.total)
	if f.device >= 0 {
		rest, t.TotalRows = nil, int64(len(f.rows))+f.total
	}
	top := min(run.opt.Top, len(rows))
	if len(rest) == 0 && len(rows) <= run.opt.Top+1 || len(f.sums) == 0 {
		top = len(rows)
	}
	t.Rows = append([][]report.Cell{}, rows[:top]...)
	if rest = append(rest, rows[top:]...); len(rest) > 0 {
		t.Others = true
		t.Rows = append(t.Rows, f.othersOf(rest))
	}
	return t
}

// derived is the final value of a cell.
func (f *tableFold) derived(cells []report.Cell, column int, counts *countsFold) report.Cell {
	rule, cell := f.rules[column], cells[column]
	over, weighed := f.cell(cells, rule.Over).Num()
	switch rule.How {
	case report.HowRatio:
		v, ok := f.cell(cells, rule.Of).Num()
		if !ok || !weighed || over <= 0 {
			return cell
		}
		v /= over
		if u := f.table.Columns[column].Unit; u == report.PerSecond || u == report.BytesPerSec {
			v *= 1e9
		}
		return report.F(v)
	case report.HowMean:
		if v, ok := cell.Num(); ok && weighed && over > 0 {
			return report.F(v / over)
		}
		return report.Null
	case report.HowPercentile:
		return f.percentile(cells, column, counts)
	case report.HowDevice, report.HowOneDevice:
		if at, ok := cell.Int(); ok {
			return report.I(f.devices.numbers[at])
		}
	}
	return cell
}

// percentile returns a percentile over the counted events whose name is the first key of the row.
func (f *tableFold) percentile(cells []report.Cell, column int, counts *countsFold) report.Cell {
	if counts.missing {
		return report.Null
	}
	if len(f.keys) == 0 {
		return cells[column]
	}
	name, ok := cells[f.keys[0]].Str()
	rule := f.rules[column]
	event := [2]string{rule.Events, name}
	if !ok || !counts.events.Has(event) {
		return cells[column]
	}
	switch s := counts.list[counts.events.Of(event)].Of.Summary(); {
	case s == nil:
		return cells[column]
	case rule.At < 0.9:
		return report.F(s.P50)
	case rule.At < 0.99:
		return report.F(s.P90)
	default:
		return report.F(s.P99)
	}
}

// shares sets each row's share of the sum of a column, those of "(others)" included.
func (f *tableFold) shares() {
	all := lists.Map(f.rows, func(row *rowFold) []report.Cell { return row.cells })
	all = append(all, f.rest...)
	for i, rule := range f.rules {
		if rule.How != report.HowPart {
			continue
		}
		sum, whole := 0.0, true
		for n, cells := range all {
			v, ok := f.cell(cells, rule.Over).Num()
			sum, whole = sum+v, whole && (ok || n < len(f.rows))
		}
		for _, cells := range all {
			switch v, ok := f.cell(cells, rule.Over).Num(); {
			case !whole:
				cells[i] = report.Null
			case ok && sum > 0:
				cells[i] = report.F(v / sum)
			}
		}
	}
}

// othersOf sums up rows in one row. If captures cut their tables, a sum that one capture lacks is unknown.
func (f *tableFold) othersOf(rest [][]report.Cell) []report.Cell {
	last := make([]report.Cell, len(f.table.Columns))
	if len(f.keys) > 0 {
		last[f.keys[0]] = report.S(others)
	}
	for n, cells := range rest {
		for i, rule := range f.rules {
			switch {
			case rule.How != report.HowSum && rule.How != report.HowPart:
			case n > 0 && f.cut > 0 && (last[i].IsNull() || cells[i].IsNull()):
				last[i] = report.Null
			default:
				last[i] = last[i].Plus(cells[i])
			}
		}
	}
	return last
}

// others is the name of the row that sums up what a table leaves out.
const others = "(others)"

// countsFold merges the counts of events.
type countsFold struct {
	events lists.Numbering[[2]string] // family and key, in the order in which they came
	list   []Counts                   // by the number of the event
	// missing: a capture has no counts, so nothing is known of all events together.
	missing bool
}

// maxMerged is how many distinct values of merged counts are kept; beyond that, counts use log-spaced bins.
const maxMerged = 1 << 16

func (f *countsFold) add(list []Counts) {
	for _, c := range list {
		x := lists.At(&f.list, f.events.Of([2]string{c.Family, c.Key}))
		x.Family, x.Key = c.Family, c.Key
		x.merge(&c)
		if len(x.Of.Values) > maxMerged {
			x.Of, x.Coarse = x.Of.Coarse(), true
		}
	}
}

// together are the events of a family whose keys keep accepts.
func (f *countsFold) together(family string, keep func(string) bool) (all Counts) {
	for i := range f.list {
		if x := &f.list[i]; !f.missing && x.Family == family && keep(x.Key) {
			all.merge(x)
		}
	}
	return all
}
