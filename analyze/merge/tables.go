package merge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// tableFold merges one table.
type tableFold struct {
	rule  *tableRule
	table report.Table // of the first capture, without rows
	at    map[string]int
	rows  []*rowFold
	rules []report.Merge // of columns
	place map[string]int
	// Captures whose tables are cut: their number, their "(others)" rows, and the largest row total of one.
	cut   int
	rest  []*rowFold
	total int64
}

type rowFold struct {
	device  deviceKey
	one     map[int]deviceKey // by column that describes one GPU
	key     string
	cells   []report.Cell
	biggest int64 // largest first sum in one capture: text cells come from that capture
	weights map[int]float64
	seen    int // number of cut tables that list it
}

func newTableFold(rule *tableRule, t *report.Table) *tableFold {
	f := &tableFold{rule: rule, table: *t, at: map[string]int{}, place: map[string]int{}}
	f.table.Rows, f.table.TotalRows, f.table.Others = nil, 0, false
	for i, c := range t.Columns {
		f.place[c.ID] = i
		f.rules = append(f.rules, rule.columns[c.ID])
	}
	return f
}

// add adds the rows of one capture; its columns may be in another order.
func (f *tableFold) add(capture int, t *report.Table) {
	from := make([]int, len(f.table.Columns))
	for i, c := range f.table.Columns {
		from[i] = slices.IndexFunc(t.Columns, func(x report.Column) bool { return x.ID == c.ID })
	}
	listed, seen := len(t.Rows), 0
	if t.Others && listed > 0 {
		listed, seen = listed-1, 1
		f.cut++
		if f.rule.device != "" { // no two captures share a row
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
			f.row(capture, row, seen)
		} else {
			f.rest = append(f.rest, &rowFold{cells: row})
		}
	}
}

func (f *tableFold) row(capture int, cells []report.Cell, seen int) {
	r := &rowFold{cells: cells, seen: seen}
	var key strings.Builder
	for _, id := range f.rule.keys {
		c := f.cell(cells, id)
		if id == f.rule.device {
			device, _ := c.Int()
			r.device = deviceKey{capture, device}
			key.WriteString(r.device.String())
		}
		s, _ := c.Str()
		key.WriteString(s)
		key.WriteByte(0)
	}
	r.key = key.String()
	if len(f.rule.sums) > 0 {
		r.biggest, _ = f.cell(cells, f.rule.sums[0]).Int()
	}
	for i := range cells {
		switch rule := f.rules[i]; rule.How {
		case report.HowMean: // weighted by its weight
			v, ok1 := cells[i].Num()
			w, ok2 := f.cell(cells, rule.Over).Num()
			if ok1 && ok2 {
				r.weigh(i, v*w)
			}
		case report.HowOneDevice:
			if device, ok := cells[i].Int(); ok {
				if r.one == nil {
					r.one = map[int]deviceKey{}
				}
				r.one[i] = deviceKey{capture, device}
			}
		}
	}
	at, ok := f.at[r.key]
	if !ok {
		f.at[r.key] = len(f.rows)
		f.rows = append(f.rows, r)
		return
	}
	f.rows[at].seen += seen
	f.rows[at].merge(f, r)
}

func (r *rowFold) weigh(column int, v float64) {
	if r.weights == nil {
		r.weights = map[int]float64{}
	}
	r.weights[column] += v
}

func (f *tableFold) cell(cells []report.Cell, id string) report.Cell {
	at, ok := f.place[id]
	if !ok {
		return report.Null
	}
	return cells[at]
}

func (r *rowFold) merge(f *tableFold, x *rowFold) {
	for i, v := range x.weights {
		r.weigh(i, v)
	}
	larger := x.biggest > r.biggest
	r.biggest = max(r.biggest, x.biggest)
	for i, rule := range f.rules {
		switch rule.How {
		case report.HowSum:
			r.cells[i] = addCells(r.cells[i], x.cells[i])
		case report.HowMax:
			r.cells[i] = pick(r.cells[i], x.cells[i], 1)
		case report.HowMin:
			r.cells[i] = pick(r.cells[i], x.cells[i], -1)
		case report.HowMost:
			if larger {
				r.cells[i] = x.cells[i]
			}
		case report.HowOneDevice:
			if of, ok := x.one[i]; !ok || r.one[i] != of {
				delete(r.one, i)
			}
		case report.HowKey, report.HowDevice:
		default: // other values, unless derived in finish, are known only if all captures agree
			if !r.cells[i].Equal(x.cells[i]) {
				r.cells[i] = report.Null
			}
		}
	}
}

func addCells(a, b report.Cell) report.Cell {
	x, ok1 := a.Int()
	y, ok2 := b.Int()
	if ok1 && ok2 {
		return report.I(x + y)
	}
	v, ok1 := a.Num()
	w, ok2 := b.Num()
	switch {
	case ok1 && ok2:
		return report.F(v + w)
	case ok1:
		return a
	}
	return b
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
	t := f.table
	r := f.rule
	if len(run.captures) > 1 {
		for i, rule := range f.rules {
			if rule.How == report.HowLeave {
				for _, row := range f.rows {
					row.cells[i] = report.Null
				}
			}
		}
	}
	f.shares()
	for _, row := range f.rows {
		for i, rule := range f.rules {
			switch rule.How {
			case report.HowRatio:
				row.cells[i] = f.ratio(row, i)
			case report.HowMean:
				if w, ok := f.cell(row.cells, rule.Over).Num(); ok && w > 0 && row.weights != nil {
					row.cells[i] = report.F(row.weights[i] / w)
				}
			case report.HowPercentile:
				row.cells[i] = f.percentile(row, i, run.counts)
			case report.HowDevice:
				row.cells[i] = report.I(run.devices.number(row.device))
			case report.HowOneDevice:
				row.cells[i] = report.Null
				if of, ok := row.one[i]; ok {
					row.cells[i] = report.I(run.devices.number(of))
				}
			}
		}
	}
	f.rows = slices.DeleteFunc(f.rows, func(row *rowFold) bool {
		return r.device != "" && run.devices.number(row.device) >= maxDevices
	})
	slices.SortStableFunc(f.rows, func(a, b *rowFold) int {
		v, _ := f.cell(a.cells, r.lead).Num()
		w, _ := f.cell(b.cells, r.lead).Num()
		x, _ := f.cell(a.cells, r.device).Int()
		y, _ := f.cell(b.cells, r.device).Int()
		return cmp.Or(cmp.Compare(w, v), cmp.Compare(x, y), cmp.Compare(a.key, b.key))
	})
	rows, rest := f.rows, f.rest
	t.Rows, t.TotalRows = [][]report.Cell{}, max(int64(len(rows)), f.total)
	if r.device != "" {
		rest, t.TotalRows = nil, int64(len(rows))+f.total
	} else if f.cut > 0 {
		rows = nil
		for _, row := range f.rows {
			if row.seen == f.cut {
				rows = append(rows, row)
			} else {
				rest = append(rest, row)
			}
		}
	}
	top := min(run.opt.Top, len(rows))
	if len(rest) == 0 && len(rows) <= run.opt.Top+1 || len(r.sums) == 0 {
		top = len(rows)
	}
	for _, row := range rows[:top] {
		t.Rows = append(t.Rows, row.cells)
	}
	if rest = append(rest, rows[top:]...); len(rest) > 0 {
		t.Others = true
		t.Rows = append(t.Rows, f.othersOf(rest))
	}
	for i, c := range t.Columns { // JSON does not distinguish 24 from 24.0
		if c.Kind == report.Float {
			for _, row := range t.Rows {
				if v, ok := row[i].Int(); ok {
					row[i] = report.F(float64(v))
				}
			}
		}
	}
	return t
}

// ratio divides one column by another; rates are per second.
func (f *tableFold) ratio(row *rowFold, column int) report.Cell {
	a, ok1 := f.cell(row.cells, f.rules[column].Of).Num()
	b, ok2 := f.cell(row.cells, f.rules[column].Over).Num()
	switch unit := f.table.Columns[column].Unit; {
	case !ok1 || !ok2 || b <= 0:
		return row.cells[column]
	case unit == report.PerSecond || unit == report.BytesPerSec:
		return report.F(a / b * 1e9)
	}
	return report.F(a / b)
}

// percentile returns a percentile over the counted events whose name is the first key of the row.
func (f *tableFold) percentile(row *rowFold, column int, counts *countsFold) report.Cell {
	if counts.missing {
		return report.Null
	}
	name, ok := f.cell(row.cells, firstOf(f.rule.keys)).Str()
	rule := f.rules[column]
	s := counts.summary(rule.Events, func(string) bool { return ok }, []string{name})
	switch {
	case s == nil:
		return row.cells[column]
	case rule.At < 0.9:
		return report.F(s.P50)
	case rule.At < 0.99:
		return report.F(s.P90)
	}
	return report.F(s.P99)
}

// shares sets each row's share of the sum of a column, those of "(others)" included.
func (f *tableFold) shares() {
	for i, rule := range f.rules {
		if rule.How != report.HowPart {
			continue
		}
		all, whole := 0.0, true
		for _, row := range f.rows {
			v, _ := f.cell(row.cells, rule.Over).Num()
			all += v
		}
		for _, row := range f.rest {
			v, ok := f.cell(row.cells, rule.Over).Num()
			all, whole = all+v, whole && ok
		}
		for _, list := range [][]*rowFold{f.rest, f.rows} {
			for _, row := range list {
				switch v, ok := f.cell(row.cells, rule.Over).Num(); {
				case !whole:
					row.cells[i] = report.Null
				case ok && all > 0:
					row.cells[i] = report.F(v / all)
				}
			}
		}
	}
}

// othersOf sums up rows in one row. If captures cut their tables, a sum that one capture lacks is unknown.
func (f *tableFold) othersOf(rest []*rowFold) []report.Cell {
	last := make([]report.Cell, len(f.table.Columns))
	if at, ok := f.place[firstOf(f.rule.keys)]; ok {
		last[at] = report.S(others)
	}
	for n, row := range rest {
		for i, rule := range f.rules {
			switch {
			case rule.How != report.HowSum && rule.How != report.HowPart:
			case n > 0 && f.cut > 0 && (last[i].IsNull() || row.cells[i].IsNull()):
				last[i] = report.Null
			default:
				last[i] = addCells(last[i], row.cells[i])
			}
		}
	}
	return last
}

// others is the name of the row that sums up what a table leaves out.
const others = "(others)"

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// countsFold merges the counts of events.
type countsFold struct {
	of     map[[2]string]stat.Counted
	coarse map[[2]string]bool
	keys   map[string][]string // by family, in the order in which they came
	// missing: a capture has no counts, so nothing is known of all events together.
	missing bool
}

func newCountsFold() *countsFold {
	return &countsFold{of: map[[2]string]stat.Counted{}, coarse: map[[2]string]bool{}, keys: map[string][]string{}}
}

// maxMerged is how many distinct values of merged counts are kept; beyond that, counts use log-spaced bins.
const maxMerged = 1 << 16

func (f *countsFold) add(list []Counts) {
	for i := range list {
		c := &list[i]
		k := [2]string{c.Family, c.Key}
		if _, ok := f.of[k]; !ok {
			f.keys[c.Family] = append(f.keys[c.Family], c.Key)
		}
		all := f.of[k].Merge(c.Of)
		f.coarse[k] = f.coarse[k] || c.Coarse
		if len(all.Values) > maxMerged {
			f.coarse[k], all = true, all.Coarse()
		}
		f.of[k] = all
	}
}

// summary describes the events of a family whose keys keep accepts; nil if there are none. If only is set, no other
// keys are considered.
func (f *countsFold) summary(family string, keep func(string) bool, only []string) *report.Summary {
	all, _ := f.together(family, keep, only)
	return all.Summary()
}

func (f *countsFold) together(family string, keep func(string) bool, only []string) (all stat.Counted, coarse bool) {
	if f.missing {
		return all, false
	}
	keys := only
	if keys == nil {
		keys = f.keys[family]
	}
	for _, key := range keys {
		if keep(key) {
			k := [2]string{family, key}
			all = all.Merge(f.of[k])
			coarse = coarse || f.coarse[k]
		}
	}
	return all, coarse
}
