package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Launches that Nsight Compute lets pass before it measures, as far as there are as many, and measures of each kernel.
const (
	ncuSkip      = 100
	ncuPerKernel = 5
)

// kernelsToMeasure picks the kernels with most time, without those of collective communication: Nsight Compute runs each kernel several
// times, and a collective that runs again on one rank waits for the others forever.
func kernelsToMeasure(r *report.Report, top int) (names string, skip, count int64, ok bool) {
	type kernel struct {
		name  string
		total float64
		calls int64
	}
	comm := communicationKernels(r)
	var list []kernel
	for i := range r.Metrics {
		m := &r.Metrics[i]
		name, labelled := m.Labels["kernel"]
		if m.ID != "kernel.total_time" || !labelled || len(m.Labels) != 1 || m.Value == nil || comm[name] {
			continue
		}
		list = append(list, kernel{name, *m.Value, m.N})
	}
	slices.SortStableFunc(list, func(a, b kernel) int { return cmp.Compare(b.total, a.total) })
	list = list[:min(top, len(list))]
	var quoted []string
	launches := int64(0)
	for _, k := range list {
		quoted = append(quoted, regexp.QuoteMeta(k.name))
		launches += k.calls
	}
	if len(list) == 0 {
		return "", 0, 0, false
	}
	count = max(1, min(int64(ncuPerKernel*len(list)), launches))
	return "^(" + strings.Join(quoted, "|") + ")$", min(ncuSkip, (launches-count)/2), count, true
}

// communicationKernels are the kernels whose category is communication.
func communicationKernels(r *report.Report) map[string]bool {
	found := map[string]bool{}
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			if t.ID != "kernels" {
				continue
			}
			column := func(id string) int {
				return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
			}
			name, category := column("kernel_name"), column("category")
			if name < 0 || category < 0 {
				continue
			}
			for _, row := range t.Rows {
				if c, _ := row[category].Str(); c == "comm" {
					n, _ := row[name].Str()
					found[n] = true
				}
			}
		}
	}
	return found
}
