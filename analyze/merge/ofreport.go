package merge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// fromReport marks a capture of which only the report is available.
const fromReport = "report"

// mergedKind is the kind of a merged report's trace.
const mergedKind = "nsys-merged"

// HeadOf returns the identity of the capture behind a report. session is when it began, in ns since 1970; 0: unknown.
func HeadOf(r *report.Report, session int64) Head {
	id := &r.Capture
	parts := []string{"partial", report.ValueOr(id.Content, ""), report.ValueOr(id.SessionStart, ""),
		report.ValueOr(id.Processes, "")}
	if id.Content == nil {
		parts = append(parts, r.Trace.Name, strconv.FormatInt(r.Trace.Bytes, 10))
	}
	return Head{Key: *report.Hash(parts...), Name: r.Trace.Name, Host: report.ValueOr(id.Host, ""), Session: session}
}

// OfReport makes a capture from its report, if the trace is gone. The capture has the same identity as the trace, but
// no collectives and no durations to compute percentiles from, and its tables may be cut: a merged report marks as
// unknown what depends on these. Reports that are merged, or that hold evidence, are refused; name is the file's, for
// errors.
func OfReport(name string, r *report.Report, rules *Rules, own Own) (*Capture, error) {
	switch {
	case r.Trace.Kind == mergedKind:
		return nil, fmt.Errorf("%s is a merged run already: name the captures that it was merged from", name)
	case r.Trace.Source == "" && !strings.HasPrefix(r.Trace.Kind, "nsys-"):
		return nil, fmt.Errorf("%s is a report of evidence, not of a capture: name the traces of one run, or their reports", name)
	case len(r.Evidence) > 0:
		return nil, fmt.Errorf("%s has evidence in it, which cannot be merged: name its trace instead", name)
	case withoutRanges(r):
		return nil, fmt.Errorf("%s was made with %s, so times of ranges would not add up: make it again without that, or name its trace",
			name, noRanges)
	}
	head := HeadOf(r, 0)
	head.From = fromReport
	c := &Capture{Head: head, Own: own}
	rules.Take(c, r)
	return c, nil
}

// noRanges is the flag that leaves ranges out of a report; sections mention it if it was given.
const noRanges = "--no-nvtx-kernel-map"

func withoutRanges(r *report.Report) bool {
	return slices.ContainsFunc(r.Sections, func(s report.Section) bool {
		return strings.Contains(s.Reason+strings.Join(s.Notes, " "), noRanges)
	})
}

// sameOtherwise refuses a report of a capture that is also there with another window: its events would count twice.
func (list captures) sameOtherwise() error {
	first := map[string]*captureFold{} // by session and processes
	for _, c := range list {
		if c.identity.SessionStart == nil || c.identity.Processes == nil {
			continue
		}
		key := report.ValueOr(c.identity.Host, "") + " " + *c.identity.SessionStart + " " + *c.identity.Processes
		switch o := first[key]; {
		case o == nil:
			first[key] = c
		case o.From != "" || c.From != "":
			return &RunError{fmt.Sprintf("%s and %s show the same processes in the same session, with different windows: name one of them",
				o.Name, c.Name)}
		}
	}
	return nil
}

// unknownTotals lists what is unknown about a run if only the reports of some captures are there.
func (s *rankSection) unknownTotals() {
	for _, id := range []string{"ranks.count", "ranks.missing", "ranks.clocks", "ranks.collectives", "ranks.unmatched",
		"rank.collective_time", "rank.wait_time", "rank.transfer_time"} {
		s.out.put(id, nil, nil, int64(len(s.run.ranks)))
	}
	s.out.section.Status = report.Partial
	s.out.section.Reason = fmt.Sprintf("%d of %d captures are there as reports, which hold neither ranks nor collectives",
		s.f.captures.reports(), len(s.f.captures))
	s.out.warn("missing_ranks", "%s: who waits for whom is known only for the others. explain partial keeps what merge needs of a trace.",
		s.out.section.Reason)
	s.out.note("Percentiles over events are unknown, because a report does not hold the single durations; counts, times, minima and maxima are exact.")
	if s.f.sections.cut() {
		s.out.note("A report names only its longest kernels, calls and ranges: the rest is in the row of others here too, and tables may have had more rows than they say.")
	}
}
