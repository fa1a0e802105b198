package record

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// leftOut names the tables and columns of a capture that are not in its copy, and counts rows and texts.
func leftOut(done *analyze.Scrubbed) (l doc.List) {
	l.Add("Never copied: environments, host and user names, command lines, captured output")
	if len(done.LeftTables) > 0 {
		l.Add("Left out whole: " + strings.Join(done.LeftTables, ", "))
	}
	for _, table := range slices.Sorted(maps.Keys(done.LeftColumns)) {
		l.Add("Left out of " + table + ": " + strings.Join(done.LeftColumns[table], ", "))
	}
	var rows []string
	for _, table := range slices.Sorted(maps.Keys(done.LeftRows)) {
		rows = append(rows, wording.Count(done.LeftRows[table], "row")+" of "+table)
	}
	if len(rows) > 0 {
		l.Add("Left out of what was copied: " + strings.Join(rows, ", "))
	}
	if done.Redacted > 0 {
		l.Add("Redacted in " + wording.Count(done.Redacted, "text"))
	}
	return l
}

// proven analyses a capture and its copy, and says that their numbers are equal. It is an error if one differs, unless
// names are hidden: some numbers are found by what they say.
func proven(ctx context.Context, in, out string, shown analyze.Shown, opt analyze.Options) (string, error) {
	was, err := analyze.Run(ctx, in, opt)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "Not proven equal, since the capture cannot be analysed: " + err.Error(), nil
	}
	is, err := analyze.Run(ctx, out, opt)
	if err != nil {
		return "", err
	}
	equal, differ, lost := compared(was.Report, is.Report)
	if len(differ) > 0 && shown.Personal == nil {
		return "", errors.New("these numbers would differ: " + strings.Join(differ, ", "))
	}
	text := "Every number is equal: " + wording.Count(equal, "metric")
	if len(differ) > 0 {
		text = "Equal: " + wording.Count(equal, "metric") + ". Different, since hidden names say them: " + strings.Join(differ, ", ")
	}
	if len(lost) > 0 {
		text += ". Not in the copy, or under another name: " + strings.Join(lost, ", ")
	}
	return text + ".", nil
}

// compared counts the metrics of a capture that its copy has with the same value, and lists the ids of others.
func compared(was, is *report.Report) (equal int, differ, lost []string) {
	values := map[string]*report.Metric{}
	for i := range is.Metrics {
		m := &is.Metrics[i]
		values[m.ID+m.Labels.String()] = m
	}
	for i := range was.Metrics {
		m := &was.Metrics[i]
		switch n := values[m.ID+m.Labels.String()]; {
		case n == nil:
			lost = append(lost, m.ID)
		case (m.Value == nil) != (n.Value == nil) || m.Value != nil && *m.Value != *n.Value:
			differ = append(differ, m.ID)
		default:
			equal++
		}
	}
	slices.Sort(differ)
	slices.Sort(lost)
	return equal, slices.Compact(differ), slices.Compact(lost)
}
