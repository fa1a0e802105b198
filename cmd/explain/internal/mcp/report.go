package mcp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
)

// keyMetrics are the ids of the most telling numbers of a capture; of each, an answer has the first few labels.
var keyMetrics = []string{
	"unit.time", "unit.count", "gpu.window", "gpu.idle_ratio", "gpu.compute_time", "gpu.exposed_comm_time", "gpu.exposed_copy_time",
	"gpu.idle_time", "kernel.total_time", "kernel.count", "launch.count", "launch.api_time", "sync.blocked_time",
	"memcpy.bytes", "graph.coverage", "nvtx.coverage",
}

type value struct {
	Key    string `json:"key"` // id{labels}: the same in every report
	Value  any    `json:"value"`
	Unit   string `json:"unit"`
	N      int64  `json:"n,omitempty"`
	P50    any    `json:"p50,omitempty"`
	P90    any    `json:"p90,omitempty"`
	P99    any    `json:"p99,omitempty"`
	Mean   any    `json:"mean,omitempty"`
	Tables string `json:"tables,omitempty"` // that it stands on
}

func valueOf(m *report.Metric, sources bool) value {
	v := value{Key: plain(report.MetricKey(m.ID, m.Labels)), Value: short(m.Value), Unit: m.Unit, N: m.N}
	if s := m.Summary; s != nil {
		v.P50, v.P90, v.P99, v.Mean = short(&s.P50), short(&s.P90), short(&s.P99), short(&s.Mean)
	}
	if sources {
		v.Tables = strings.Join(m.Source.Tables, ", ")
	}
	return v
}

type finding struct {
	ID       string   `json:"id"`
	Severity string   `json:"severity"`
	Title    string   `json:"title"`
	Worth    any      `json:"worth_ns,omitempty"` // at most, of the time in of_ns
	Of       any      `json:"of_ns,omitempty"`
	Units    int64    `json:"units,omitempty"`
	Evidence []string `json:"evidence"`
	Advice   []string `json:"advice"`
}

func (s *Server) report(ctx context.Context, a arguments) (string, error) {
	r, err := s.load(ctx, a.File)
	if err != nil {
		return "", err
	}
	var out answer
	out.put("name", plain(r.Trace.Name))
	out.put("window", map[string]any{"length_ns": r.Window.Length, "mode": r.Window.Mode, "why": plain(r.Window.Why)})
	add(&out, "gpus", lists.Map(r.Environment.GPUs, func(g report.GPU) string {
		return cmp.Or(name(g.Name), "not stated")
	}), 0)
	unit := map[string]any{"kind": r.Unit.Kind, "name": plain(r.Unit.Name), "why": plain(r.Unit.Why),
		"coverage": short(r.Unit.Coverage)}
	out.put("unit_of_work", unit)
	add(&out, "kinds_of_unit", lists.Map(r.Unit.Groups, func(g report.UnitGroup) any {
		return map[string]any{"phase": g.Phase, "batch": g.Batch, "tokens": g.Tokens, "count": g.Count,
			"kernels": g.Kernels, "main": g.Main}
	}), 0)
	add(&out, "warnings", lists.Map(r.Warnings, func(w report.Warning) any {
		return map[string]any{"code": w.Code, "text": plain(w.Text)}
	}), 0)
	add(&out, "findings", findings(r), 0)
	add(&out, "what_ifs", whatIfs(r), 0)
	var numbers []value
	x := report.NewIndex(r)
	for _, id := range keyMetrics {
		n := 0
		for _, m := range x.Metrics(id) {
			if n < 4 && len(m.Labels) <= 1 {
				numbers = append(numbers, valueOf(m, false))
				n++
			}
		}
	}
	add(&out, "key_numbers", numbers, 0)
	var unknown []Unknown
	for _, sec := range r.Sections {
		if sec.Status != report.OK {
			unknown = append(unknown, Unknown{"section " + sec.ID, string(sec.Status), plain(sec.Reason), ""})
		}
	}
	if r.Unit.Kind == "none" {
		unknown = append(unknown, Unknown{"unit of work", "no_unit", plain(r.Unit.Why), "explain TRACE --unit 'nvtx:REGEX'"})
	}
	next := []Next{{"table", map[string]any{"file": a.File, "table": "kernels"}, "which kernels take the time"}}
	if len(r.Findings) > 0 {
		next = append(next, Next{"doc", map[string]any{"name": r.Findings[0].ID}, "what the first finding means and what to do"})
	}
	return out.text(unknown, next), nil
}

// whatIfs returns the changes that would shorten a step most, in the form that `explain whatif` takes, with the largest
// possible gain.
func whatIfs(r *report.Report) (list []any) {
	t := report.NewIndex(r).Table("critical_path", "what_ifs")
	for i := range t.Len() {
		ns, _ := t.Num(i, "time")
		share, _ := t.Num(i, "share")
		list = append(list, map[string]any{"change": plain(t.Str(i, "change")), "at_most_ns_per_step": short(&ns),
			"share_of_step": short(&share)})
	}
	return list
}

func findings(r *report.Report) []finding {
	var list []finding
	for _, f := range r.Findings {
		one := finding{ID: f.ID, Severity: string(f.Severity), Title: plain(f.Title), Evidence: []string{},
			Advice: []string{}}
		if f.Worth != nil {
			one.Worth, one.Of, one.Units = f.Worth.Time, f.Worth.Of, f.Worth.Units
		}
		for _, e := range f.Evidence[:min(len(f.Evidence), 3)] {
			text := plain(report.MetricKey(e.ID, e.Labels))
			if m := r.Find(e.ID, e.Labels); m != nil && m.Value != nil {
				text += " = " + string(encode(short(m.Value))) + " " + m.Unit
			}
			one.Evidence = append(one.Evidence, text)
		}
		for _, t := range f.Advice[:min(len(f.Advice), 2)] {
			one.Advice = append(one.Advice, plain(t))
		}
		list = append(list, one)
	}
	return list
}

func (s *Server) metrics(ctx context.Context, a arguments) (string, error) {
	r, err := s.load(ctx, a.File)
	if err != nil {
		return "", err
	}
	id := a.ID
	if m, _, ok := docs.Metric(id); ok { // unit.time.p50: the statistic is beside the value
		id = m.ID
	}
	words := docs.SearchMetrics(a.ID)
	var found []*report.Metric
	for _, asked := range []func(of string) bool{ // the first that finds any
		func(of string) bool { return of == id },
		func(of string) bool { return strings.HasPrefix(of, id) },
		func(of string) bool { return slices.Contains(words, of) },
	} {
		for i := range r.Metrics {
			m := &r.Metrics[i]
			if asked(m.ID) && matches(report.MetricKey(m.ID, m.Labels), a.Match) {
				found = append(found, m)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	number := func(m *report.Metric) float64 { return report.ValueOr(m.Value, -1) }
	lists.Sort(found, func(a, b *report.Metric) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(len(a.Labels), len(b.Labels)), cmp.Compare(number(b), number(a)))
	})
	var out answer
	var unknown []Unknown
	var list []value
	for _, m := range found[:min(len(found), a.Limit)] {
		list = append(list, valueOf(m, true))
		if m.Value == nil {
			unknown = append(unknown, Unknown{plain(report.MetricKey(m.ID, m.Labels)), "null", "the capture does not say", ""})
		}
	}
	if len(found) == 0 {
		unknown = append(unknown, missingMetric(r, a.ID))
	}
	add(&out, "metrics", list, max(0, len(found)-len(list)))
	return out.text(unknown, []Next{{"doc", map[string]any{"name": cmp.Or(a.ID, "report")}, "what it measures"}}), nil
}

// missingMetric returns why a report lacks a metric: its section, if that is known.
func missingMetric(r *report.Report, id string) Unknown {
	m, _, ok := docs.Metric(id)
	if !ok {
		return Unknown{plain(id), "no_such_name", "no metric has this id or begins with it", "ask doc for the pages"}
	}
	for _, sec := range r.Sections {
		if slices.Contains(m.Sections, sec.ID) && sec.Status != report.OK {
			return Unknown{m.ID, string(sec.Status), "section " + sec.ID + ": " + plain(sec.Reason), ""}
		}
	}
	return Unknown{m.ID, "missing_metric", "this capture holds nothing of the kind", ""}
}

func (s *Server) table(ctx context.Context, a arguments) (string, error) {
	r, err := s.load(ctx, a.File)
	if err != nil {
		return "", err
	}
	var out answer
	var list []string
	unknown := Unknown{"table " + plain(a.Table), "no_such_name", "this report has no such table", "ask table without a name for the list"}
	for i := range r.Sections {
		sec := &r.Sections[i]
		var names []string
		for j := range sec.Tables {
			t := &sec.Tables[j]
			if t.ID == a.Table {
				return s.rows(&out, sec, t, a)
			}
			names = append(names, t.ID)
			if len(t.Rows) > 0 {
				list = append(list, t.ID+": "+t.Title)
			}
		}
		if sec.ID == a.Table {
			unknown = Unknown{"section " + sec.ID, string(sec.Status), cmp.Or(plain(sec.Reason), "it has no table of that name"), ""}
			if len(names) > 0 {
				unknown.Do = "ask for one of its tables: " + strings.Join(names, ", ")
			}
		}
	}
	if a.Table == "" {
		add(&out, "tables", list, 0)
		return out.text(nil, nil), nil
	}
	return out.text([]Unknown{unknown}, []Next{{"table", map[string]any{"file": a.File}, "the tables of this report"}}),
		nil
}

func (s *Server) rows(out *answer, sec *report.Section, t *report.Table, a arguments) (string, error) {
	columns := lists.Map(t.Columns, func(c report.Column) any {
		return map[string]any{"id": c.ID, "title": c.Title, "unit": c.Unit}
	})
	sortBy := t.Column(a.Sort)
	var unknown []Unknown
	if a.Sort != "" && sortBy < 0 {
		unknown = append(unknown, Unknown{"column " + plain(a.Sort), "no_such_name", "the table has no such column", "choose one of columns"})
	}
	rows := slices.Clone(t.Rows[:t.Entries()])
	if sortBy >= 0 {
		lists.Sort(rows, func(x, y []report.Cell) int {
			a, _ := x[sortBy].Num()
			b, _ := y[sortBy].Num()
			return cmp.Compare(b, a)
		})
	}
	type line struct {
		Key   string        `json:"key"` // texts of the row: the same in every report
		Cells []report.Cell `json:"cells"`
	}
	list := lists.Map(rows, func(cells []report.Cell) line { return line{keyOf(t, cells), visible(cells)} })
	out.put("section", sec.ID)
	out.put("total_rows", t.TotalRows)
	out.put("columns", columns)
	if t.Len() > t.Entries() {
		out.put("all_other_rows", visible(t.Rows[t.Entries()]))
	}
	addMatching(out, "rows", list, a, func(l line) string { return l.Key })
	return out.text(unknown, []Next{{"doc", map[string]any{"name": sec.ID}, "how the table is computed"}}), nil
}

// keyOf returns the key of a row: its texts, and its numbers without a unit in columns that name something.
func keyOf(t *report.Table, cells []report.Cell) string {
	var parts []string
	for i, c := range t.Columns {
		if text, ok := cells[i].Str(); ok && (c.Kind == "name" || c.Kind == "text") && !c.Wide {
			parts = append(parts, plain(text))
		} else if n, ok := cells[i].Int(); ok && (c.ID == "device_id" || c.ID == "pid" || c.ID == "stream_id") {
			parts = append(parts, c.ID+"="+string(encode(n)))
		}
	}
	return strings.Join(parts, " | ")
}

func visible(cells []report.Cell) []report.Cell {
	list := slices.Clone(cells)
	for i, c := range list {
		if text, ok := c.Str(); ok {
			list[i] = report.S(plain(text))
		} else if v, ok := c.Num(); ok {
			if f, is := short(&v).(float64); is {
				list[i] = report.F(f)
			}
		}
	}
	return list
}
