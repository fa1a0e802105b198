package pairing

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// rankInName finds the rank that the name of a capture states.
const rankInName = `rank[-_.=]?(\d{1,6})`

var rankName = regexp.MustCompile(`(?i)(?:^|[^a-z])` + rankInName)

// rankOf returns the ranks that a capture is of, and whether only its name states them; none: unknown, or a merged run.
// A name counts only if one GPU took part in collectives: lora_rank16.sqlite need not be of a rank.
func rankOf(c *side.Capture) (ranks []int64, named bool) {
	if c.Table("ranks", "ranks").Len() > 0 {
		return nil, false
	}
	if list := c.Report.Capture.Ranks; len(list) > 0 {
		return list, false
	}
	m := rankName.FindStringSubmatch(c.Report.Trace.Name)
	if _, one := device(c); m == nil || !one {
		return nil, false
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	return []int64{v}, true
}

// TwoRanks reports whether two captures state that they are of different ranks.
func TwoRanks(a, b *side.Capture) bool {
	x, xNamed := rankOf(a)
	y, yNamed := rankOf(b)
	return x != nil && y != nil && xNamed == yNamed && !slices.Equal(x, y)
}

// device returns the only GPU of a capture if that took part in collectives; ok is false if there are none, or several.
func device(c *side.Capture) (id string, ok bool) {
	worked := lists.Filter(c.Metrics("gpu.comm_time"), func(m *report.Metric) bool { return comparison.Value(m.Value) > 0 })
	if len(worked) != 1 {
		return "", false
	}
	return worked[0].Labels["device"], true
}

// twoGPUs reports whether two captures are of different GPUs of one machine that worked with others in one hour: ranks
// of one run, probably.
func twoGPUs(a, b *side.Capture) bool {
	x, ok := device(a)
	y, okay := device(b)
	p, q := a.Report.Capture.Run, b.Report.Capture.Run
	return ok && okay && x != y && p != nil && q != nil && *p == *q
}

// apart returns one capture of each rank, or of each GPU.
func apart(s *side.Side, two func(a, b *side.Capture) bool) []*side.Capture {
	var list []*side.Capture
	for _, c := range s.Captures {
		if !slices.ContainsFunc(list, func(o *side.Capture) bool { return !two(o, c) }) {
			list = append(list, c)
		}
	}
	return list
}

// oneRun refuses a side whose captures are ranks of one run: they share its noise, and are no repeats of it. It warns if
// they only seem to be.
func (x *Sides) oneRun(name string, s *side.Side) {
	if list := apart(s, TwoRanks); len(list) > 1 {
		var ranks []string
		flag := ""
		for _, c := range list {
			r, named := rankOf(c)
			ranks = append(ranks, strings.Trim(fmt.Sprint(r), "[]"))
			if named {
				flag = " --rank '" + rankInName + "'"
			}
		}
		x.found.refuse(comparison.OneRun, fmt.Sprintf("%s: %s are of the ranks %s of a run, not repeats of it: %s",
			name, listed(list, ", "), strings.Join(ranks, ", "), merging(name, list, flag)))
	} else if list := apart(s, twoGPUs); len(list) > 1 {
		x.found.Warnings = append(x.found.Warnings, comparison.Reason{Code: comparison.OneRun, Text: fmt.Sprintf(
			"%s: %s are of different GPUs of one machine within an hour, with collectives, and count as repeats. If they are ranks of one run: %s",
			name, listed(list, ", "), merging(name, list, ""))})
	}
}

// merging is the command that makes one report of the ranks of a run.
func merging(name string, list []*side.Capture, flag string) string {
	return fmt.Sprintf("make one report of each run (explain report %s%s --out %s/) and compare those", listed(list, " "), flag, name)
}

// listed names captures, four at most.
func listed(list []*side.Capture, sep string) string {
	names := lists.Map(list[:min(len(list), 4)], func(c *side.Capture) string { return c.Report.Trace.Name })
	if len(list) > 4 {
		names = append(names, "…")
	}
	return strings.Join(names, sep)
}
