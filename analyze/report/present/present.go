// Package present turns a report into documents: the full page, the terminal summary, and the files that other tools
// read. It selects and lays out what the report holds, and computes no metric.
//
// Everything is looked up by its fixed id: metrics by id and labels, tables by section and table id. Missing parts are
// left out, so that reports of any version can be presented.
package present

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// View is a report with indexes for looking things up.
type View struct {
	*report.Report
	index *report.Index
	names names
}

// names are the display names of kernels.
type names struct {
	short    map[string]string // by name
	numbered bool              // some carry a number
}

func NewView(r *report.Report) *View {
	v := &View{Report: r, index: report.NewIndex(r)}
	v.names = namesOf(v.Table("kernels", "kernels"))
	return v
}

// namesOf reads the display names from the kernels table. Kernels with equal display names are numbered in the order
// of the table.
func namesOf(t *report.Table) names {
	n := names{short: map[string]string{}}
	count, nth := map[string]int{}, map[string]int{}
	for i := range t.Len() {
		count[t.Str(i, "short")]++
	}
	for i := range t.Len() {
		name, s := t.Str(i, "kernel_name"), t.Str(i, "short")
		if s == "" || name == "" {
			continue
		}
		if count[s] > 1 {
			nth[s]++
			s += " (" + strconv.Itoa(nth[s]) + ")"
			n.numbered = true
		}
		n.short[name] = s
	}
	return n
}

// Metric finds a metric by id and key, value pairs of labels; nil if absent.
func (v *View) Metric(id string, pairs ...string) *report.Metric {
	return v.index.Metric(id, labelled(pairs))
}

func labelled(pairs []string) report.Labels {
	l := report.Labels{}
	for p := range slices.Chunk(pairs, 2) {
		l[p[0]] = p[1]
	}
	return l
}

// All returns the metrics with an id, in the report's order.
func (v *View) All(id string) []*report.Metric { return v.index.Metrics(id) }

// Num returns the value of a metric; ok is false if it is unknown.
func (v *View) Num(id string, pairs ...string) (float64, bool) {
	return v.index.Value(id, labelled(pairs))
}

// value formats a metric's value; empty if it is absent or unknown.
func (v *View) value(id string, pairs ...string) string {
	return ValueOf(v.Metric(id, pairs...))
}

func ValueOf(m *report.Metric) string {
	if m == nil || m.Value == nil {
		return ""
	}
	return unit.Format(*m.Value, unitOf(m))
}

// unitOf returns a metric's unit for people: per-second metrics that count bytes are in bytes per second.
func unitOf(m *report.Metric) string {
	if m.Unit == report.PerSecond && strings.HasSuffix(m.ID, ".throughput") {
		return report.BytesPerSec
	}
	return m.Unit
}

// Table finds a table by section and table id; nil if absent.
func (v *View) Table(section, id string) *report.Table { return v.index.Table(section, id) }

func (v *View) devices() (list []string) {
	for _, m := range v.All("gpu.window") {
		lists.Place[int32](&list, m.Labels["device"])
	}
	return list
}

// worst returns the device with the largest value of a metric.
func (v *View) worst(id string) (device string, m *report.Metric) {
	for _, d := range v.devices() {
		if c := v.Metric(id, "device", d); c != nil && c.Value != nil && (m == nil || *c.Value > *m.Value) {
			device, m = d, c
		}
	}
	return device, m
}

// ranked returns the metrics of an id that carry exactly one label with this key, largest first, without zeros.
func (v *View) ranked(id, label string) []*report.Metric {
	return largestFirst(v.All(id), func(m *report.Metric) bool {
		_, ok := m.Labels[label]
		return ok && len(m.Labels) == 1
	})
}

// largestFirst returns the metrics above zero of which keep is true, largest first.
func largestFirst(all []*report.Metric, keep func(*report.Metric) bool) []*report.Metric {
	list := lists.Filter(all, func(m *report.Metric) bool { return m.Value != nil && *m.Value > 0 && keep(m) })
	lists.Sort(list, func(a, b *report.Metric) int { return cmp.Compare(*b.Value, *a.Value) })
	return list
}

// span shows a name from the capture; a kernel by its display name, if it has one.
func (n *names) span(s string) doc.Span {
	if short, ok := n.short[s]; ok {
		return doc.ShortName(short, s)
	}
	return doc.Name(s)
}

// function is a kernel's display name without template and arguments, for narrow places.
func (n *names) function(s string) string {
	name := n.span(s).Text
	if i := strings.IndexAny(name, "<("); i > 0 {
		return name[:i]
	}
	return name
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./+-]{0,31}$`)

// word shows a short value that is usually one of a few words (a device, a cause, a phase) as text, anything else as a
// name.
func (n *names) word(s string) doc.Span {
	if plainWord.MatchString(s) && !strings.Contains(s, "www.") {
		return doc.Text(s)
	}
	return n.span(s)
}

var flagWord = regexp.MustCompile(`(?:^|[ (])(--[A-Za-z0-9][A-Za-z0-9_-]*(?:=[^\s;()]*[^\s,;.()]| (?:nvtx:[A-Z]+|FILE|DIR|[0-9][0-9.]*[mun]?s)\b)?)`)

// Prose parses explain's own sentences: text between two backticks is code, and so are command line flags with their
// value.
func Prose(s string) []doc.Span {
	var spans []doc.Span
	text := func(t string) {
		if t != "" {
			spans = append(spans, doc.Text(t))
		}
	}
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 { // the last backtick is unpaired
		parts[len(parts)-2] += "`" + parts[len(parts)-1]
		parts = parts[:len(parts)-1]
	}
	for i, part := range parts {
		if i%2 == 1 && part != "" {
			spans = append(spans, doc.Code(part))
			continue
		}
		var flags [][]int
		if strings.Contains(part, "--") { // found faster than the expression
			flags = flagWord.FindAllStringSubmatchIndex(part, -1)
		}
		done := 0
		for _, m := range flags {
			text(part[done:m[2]])
			spans = append(spans, doc.Code(part[m[2]:m[3]]))
			done = m[3]
		}
		text(part[done:])
	}
	return spans
}
