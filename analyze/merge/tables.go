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
	place map[string]int // of columns
	// Of captures whose tables are cut: how many, their rows of others, and the most rows that one had.
	cut   int
	rest  []*rowFold
	total int64
}

type rowFold struct {
	device  deviceKey
	key     string
	cells   []report.Cell
	biggest int64 // of the first sum, in one capture: what texts are of
	weights map[string]float64
	seen    int // cut tables that list it
}

func newTableFold(rule *tableRule, t *report.Table) *tableFold {
	f := &tableFold{rule: rule, table: *t, at: map[string]int{}, place: map[string]int{}}
	f.table.Rows, f.table.TotalRows, f.table.Others = nil, 0, false
	for i, c := range t.Columns {
		f.place[c.ID] = i
	}
	return f
}

// add takes the rows of one capture in, whose columns may be in another order.
func (f *tableFold) add(capture int, t *report.Table) {
	from := make([]int, len(f.table.Columns))
	for i, c := range f.table.Columns {
		from[i] = slices.IndexFunc(t.Columns, func(x report.Column) bool { return x.ID == c.ID })
	}
	listed, seen := len(t.Rows), 0
	if t.Others && listed > 0 {
		listed, seen = listed-1, 1
		f.cut++
		if f.ofDevices() {
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

// ofDevices reports whether rows are of one GPU of one capture, so that no two captures share one.
func (f *tableFold) ofDevices() bool { return slices.Contains(f.rule.keys, "device_id") }

func (f *tableFold) row(capture int, cells []report.Cell, seen int) {
	r := &rowFold{cells: cells, seen: seen}
	var key strings.Builder
	for _, id := range f.rule.keys {
		c := f.cell(cells, id)
		if id == "device_id" {
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
	r.weigh(f)
	at, ok := f.at[r.key]
	if !ok {
		f.at[r.key] = len(f.rows)
		f.rows = append(f.rows, r)
		return
	}
	f.rows[at].seen += seen
	f.rows[at].merge(f, r)
}

func (f *tableFold) cell(cells []report.Cell, id string) report.Cell {
	at, ok := f.place[id]
	if !ok {
		return report.Null
	}
	return cells[at]
}

// weigh multiplies the means of a row by their weights.
func (r *rowFold) weigh(f *tableFold) {
	weight, ok := f.cell(r.cells, f.rule.by[0]).Num()
	if !ok {
		return
	}
	r.weights = map[string]float64{}
	for _, id := range strings.Fields(f.rule.by[1]) {
		if v, ok := f.cell(r.cells, id).Num(); ok {
			r.weights[id] = v * weight
		}
	}
}

func (r *rowFold) merge(f *tableFold, x *rowFold) {
	combine := func(ids []string, of func(a, b report.Cell) report.Cell) {
		for _, id := range ids {
			if at, ok := f.place[id]; ok {
				r.cells[at] = of(r.cells[at], x.cells[at])
			}
		}
	}
	combine(f.rule.sums, addCells)
	combine(f.rule.most, func(a, b report.Cell) report.Cell { return pick(a, b, 1) })
	combine(f.rule.least, func(a, b report.Cell) report.Cell { return pick(a, b, -1) })
	for id, w := range x.weights {
		if r.weights != nil {
			r.weights[id] += w
		}
	}
	larger := x.biggest > r.biggest
	r.biggest = max(r.biggest, x.biggest)
	for i, c := range f.table.Columns {
		switch c.Kind {
		case report.Name, report.Text: // of the capture with most
			if larger && !slices.Contains(f.rule.keys, c.ID) {
				r.cells[i] = x.cells[i]
			}
		default:
			if r.cells[i] != x.cells[i] && !f.rule.combines(c.ID) {
				r.cells[i] = report.Null // of one capture alone
			}
		}
	}
}

func (t *tableRule) combines(id string) bool {
	return slices.Contains(t.sums, id) || slices.Contains(t.most, id) || slices.Contains(t.least, id)
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

// finish works out what follows from sums, orders the rows, and keeps the first top of a table that ranks. What one
// capture has in its others is in those of the run: how much of it is there nobody knows.
func (f *tableFold) finish(devices *devices, counts *countsFold, top int) report.Table {
	t := f.table
	r := f.rule
	var all float64
	whole := true
	for _, row := range f.rows {
		v, _ := f.cell(row.cells, r.share[1]).Num()
		all += v
	}
	for _, row := range f.rest {
		v, ok := f.cell(row.cells, r.share[1]).Num()
		all, whole = all+v, whole && ok
	}
	set := func(row *rowFold, id string, c report.Cell) {
		if at, ok := f.place[id]; ok {
			row.cells[at] = c
		}
	}
	over := func(row *rowFold, ids [3]string, factor float64) {
		if ids[0] == "" {
			return
		}
		a, ok1 := f.cell(row.cells, ids[1]).Num()
		b, ok2 := f.cell(row.cells, ids[2]).Num()
		if ok1 && ok2 && b > 0 {
			set(row, ids[0], report.F(a/b*factor))
		}
	}
	share := func(row *rowFold) {
		switch v, ok := f.cell(row.cells, r.share[1]).Num(); {
		case !whole:
			set(row, r.share[0], report.Null)
		case ok && all > 0:
			set(row, r.share[0], report.F(v/all))
		}
	}
	for _, row := range f.rest {
		share(row)
	}
	for _, row := range f.rows {
		over(row, r.mean, 1)
		over(row, r.mean2, 1)
		over(row, r.rate, 1e9)
		share(row)
		if w, ok := f.cell(row.cells, r.by[0]).Num(); ok && w > 0 {
			for id, v := range row.weights {
				set(row, id, report.F(v/w))
			}
		}
		if r.counts != "" && counts.missing {
			for _, id := range []string{"p50", "p90", "p99"} {
				set(row, id, report.Null)
			}
		} else if name, ok := f.cell(row.cells, firstOf(r.keys)).Str(); ok && r.counts != "" {
			if s := counts.summary(r.counts, func(k string) bool { return k == name }, []string{name}); s != nil {
				set(row, "p50", report.F(s.P50))
				set(row, "p90", report.F(s.P90))
				set(row, "p99", report.F(s.P99))
			}
		}
		if at, ok := f.place["device_id"]; ok && slices.Contains(r.keys, "device_id") {
			row.cells[at] = report.I(devices.number(row.device))
		}
	}
	f.rows = slices.DeleteFunc(f.rows, func(row *rowFold) bool {
		return slices.Contains(r.keys, "device_id") && devices.number(row.device) >= maxDevices
	})
	slices.SortStableFunc(f.rows, func(a, b *rowFold) int {
		v, _ := f.cell(a.cells, r.order).Num()
		w, _ := f.cell(b.cells, r.order).Num()
		x, _ := f.cell(a.cells, "device_id").Int()
		y, _ := f.cell(b.cells, "device_id").Int()
		return cmp.Or(cmp.Compare(w, v), cmp.Compare(x, y), cmp.Compare(a.key, b.key))
	})
	rows, rest := f.rows, f.rest
	t.Rows, t.TotalRows = [][]report.Cell{}, max(int64(len(rows)), f.total)
	if f.ofDevices() {
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
	if top <= 0 || len(rest) == 0 && len(rows) <= top+1 || len(r.sums) == 0 {
		top = len(rows)
	}
	top = min(top, len(rows))
	for _, row := range rows[:top] {
		t.Rows = append(t.Rows, row.cells)
	}
	if rest = append(rest, rows[top:]...); len(rest) > 0 {
		t.Others = true
		t.Rows = append(t.Rows, f.othersOf(rest))
	}
	for i, c := range t.Columns { // JSON does not tell 24 from 24.0
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

// othersOf is the row that sums up rows. Where captures cut their tables, a sum that one did not keep is not known.
func (f *tableFold) othersOf(rest []*rowFold) []report.Cell {
	last := make([]report.Cell, len(f.table.Columns))
	if at, ok := f.place[firstOf(f.rule.keys)]; ok {
		last[at] = report.S(others)
	}
	for n, row := range rest {
		for _, id := range append([]string{f.rule.share[0]}, f.rule.sums...) {
			at, ok := f.place[id]
			switch {
			case !ok:
			case n > 0 && f.cut > 0 && (last[at] == report.Null || row.cells[at] == report.Null):
				last[at] = report.Null
			default:
				last[at] = addCells(last[at], row.cells[at])
			}
		}
	}
	return last
}

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
	// missing: a capture has none, so that nothing is known of all events together.
	missing bool
}

func newCountsFold() *countsFold {
	return &countsFold{of: map[[2]string]stat.Counted{}, coarse: map[[2]string]bool{}, keys: map[string][]string{}}
}

// maxMerged is how many distinct values of merged counts are kept; of more, log-spaced bins.
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

// summary describes the events of a family whose keys are kept; nil if there are none. only, where it is set, names all
// keys that may be kept.
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
