package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// sectionsFold merges the sections of captures, in the order of the first report that has them.
type sectionsFold []*sectionFold

// sectionFold is a section with the tables that are merged, and what captures state about it.
type sectionFold struct {
	report.Section // without tables
	status         map[report.Status]int
	why            string // the first reason
	merged         []*tableFold
}

func (f *sectionsFold) add(run *fold, at int, s *report.Section) {
	place := slices.IndexFunc(*f, func(o *sectionFold) bool { return o.ID == s.ID })
	if place < 0 {
		x := &sectionFold{Section: *s, status: map[report.Status]int{}}
		x.Tables, x.Charts, x.Notes, x.Coverage = []report.Table{}, []report.Chart{}, []string{}, nil
		place, *f = len(*f), append(*f, x)
	}
	x := (*f)[place]
	x.status[s.Status]++
	x.why = cmp.Or(x.why, s.Reason)
	for _, t := range s.Tables {
		rule := run.opt.Rules.tables[s.ID+"/"+t.ID]
		if rule == nil || s.ID == unitSection {
			continue
		}
		same := func(o *tableFold) bool { return o.table.ID == t.ID }
		(*lists.Entry(&x.merged, same, newTableFold(&run.devices, rule, &t))).add(at, &t)
	}
}

// cut reports whether a capture's table is cut.
func (f sectionsFold) cut() bool {
	isCut := func(t *tableFold) bool { return t.cut > 0 }
	return slices.ContainsFunc(f, func(s *sectionFold) bool { return slices.ContainsFunc(s.merged, isCut) })
}

// report returns the sections for which something was merged.
func (f sectionsFold) report(run *fold) (list []report.Section) {
	var left []string
	for _, x := range f {
		s := x.Section
		s.Status, s.Reason = x.statusOf(len(run.captures))
		s.Derivation = "Counts and times are added up over captures; device times are of each GPU, session by session. Percentiles are of all events together."
		if s.ID == unitSection {
			s.Tables = append(s.Tables, run.unitTables()...)
			s.Derivation = "The numbers of a step are those of the capture in which it takes longest, just as a report of one capture shows its slowest device."
		}
		for _, t := range x.merged {
			s.Tables = append(s.Tables, t.finish(run))
		}
		if len(s.Tables) == 0 {
			left = append(left, s.Title)
			continue
		}
		if note := run.opt.Rules.leftOf(s.ID); note != "" {
			s.Notes = append(s.Notes, note)
		}
		list = append(list, s)
	}
	if len(left) > 0 && len(list) > 0 {
		list[0].Notes = append(list[0].Notes, "In the captures' own reports alone: "+strings.Join(left, ", ")+".")
	}
	return list
}

// statusOf is the status of a section of the run: that of the captures if all agree, else partial, with the number of
// captures that have it.
func (x *sectionFold) statusOf(captures int) (report.Status, string) {
	good := x.status[report.OK] + x.status[report.Partial]
	switch {
	case x.status[report.OK] == captures:
		return report.OK, ""
	case len(x.status) == 1 && good == 0:
		return x.Status, x.why
	case good == 0:
		return report.Unavailable, x.why
	case good == captures:
		return report.Partial, x.why
	}
	return report.Partial, fmt.Sprintf("%d of %d captures: %s", good, captures, x.why)
}
