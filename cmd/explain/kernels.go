package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// The kernels of a report that are worth measuring with Nsight Compute, for explain ncu-targets and explain capture.

// target is a kernel to measure.
type target struct {
	name  string
	comm  bool
	share *float64 // of the kernel time
	total float64  // ns
	count int64
}

// targets are the kernels of a report that have metrics of their own, the one with most time first.
func targets(r *report.Report) []target {
	var list []target
	comm := map[string]bool{}
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			if t := &r.Sections[i].Tables[j]; t.ID == "kernels" {
				communication(t, comm)
			}
		}
	}
	var all *float64
	if m := r.Find("kernel.total_time", nil); m != nil {
		all = m.Value
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		name, ok := m.Labels["kernel"]
		if m.ID != "kernel.total_time" || !ok || len(m.Labels) != 1 || m.Value == nil {
			continue
		}
		t := target{name: name, comm: comm[name], total: *m.Value, count: m.N}
		if all != nil && *all > 0 {
			share := t.total / *all
			t.share = &share
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b target) int { return cmp.Compare(b.total, a.total) })
	return list
}

// communication names the kernels of a table whose category is communication.
func communication(t *report.Table, comm map[string]bool) {
	column := func(id string) int {
		return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
	}
	name, category := column("kernel_name"), column("category")
	if name < 0 || category < 0 {
		return
	}
	for _, row := range t.Rows {
		n, _ := row[name].Str()
		if c, _ := row[category].Str(); c == "comm" {
			comm[n] = true
		}
	}
}

// Launches that Nsight Compute lets pass before it measures, and measurements of each kernel.
const (
	skipLaunches = 100
	perKernel    = 5
)

// kernelsToMeasure is a run of Nsight Compute over the kernels with most time, at most top of them. Collective
// communication is left out: ncu runs a kernel several times, and on one rank alone it would wait forever. ok is false
// where nothing is left.
func kernelsToMeasure(list []target, top int) (k capture.Kernels, ok bool) {
	var names []string
	launches := int64(0)
	for _, t := range list {
		if !t.comm && len(names) < top {
			names = append(names, nameExpression(t.name))
			launches += t.count
		}
	}
	k.Names = "^(" + strings.Join(names, "|") + ")$"
	k.Count = min(int64(perKernel*len(names)), launches)
	k.Skip = min(skipLaunches, (launches-k.Count)/2)
	return k, len(names) > 0
}

// cast is a cast before a number, which some versions print and others do not.
var cast = regexp.MustCompile(`\\\([A-Za-z_][A-Za-z0-9_: ]*\\\)(-?[0-9])`)

// longestTarget is how many characters of a name are matched.
const longestTarget = 2000

// nameExpression is a regular expression for a name, whichever version of ncu prints it. What cannot stand in a line of
// a terminal is any character.
func nameExpression(name string) string {
	text := []rune(name)
	rest := ""
	if len(text) > longestTarget {
		text, rest = text[:longestTarget], ".*"
	}
	for i, r := range text {
		if render.Visible(string(r)) != string(r) {
			text[i] = 0
		}
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(string(text)), "\x00", ".")
	return cast.ReplaceAllString(quoted, `(\([^()]*\))?$1`) + rest
}
