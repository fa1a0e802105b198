package present

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// rankFigures returns the first screen of a run of many ranks: who arrived last, how long others waited, and how long
// the steps of each rank took.
func rankFigures(v *View) []doc.Block {
	t := v.Table("ranks", "ranks")
	if t.Entries() == 0 {
		return nil
	}
	last := doc.Series{Name: "arrived last"}
	held := doc.Series{Name: "held up the others for"}
	of := 0.0
	for _, i := range lateFirst(t) {
		name := "rank " + t.Str(i, "rank")
		if n, ok := t.Num(i, "last"); ok {
			last.Add(name, n)
		}
		if ns, ok := t.Num(i, "held_up"); ok {
			held.Add(name, ns)
		}
		if n, ok := t.Num(i, "collectives"); ok {
			of = max(of, n)
		}
	}
	bars := func(id, title, u string, s doc.Series) doc.Chart {
		c := doc.Chart{ID: id, Title: title, Kind: "bar", Unit: u}
		if len(s.Values) > 0 && slices.Max(s.Values) > 0 {
			c.Series = []doc.Series{s}
		}
		return c
	}
	return doc.Some(bars("rank_last", "Who arrived last, of "+unit.Int(int64(of))+" collectives", report.Count, last),
		bars("rank_held", "How long the others waited for it", report.Nanoseconds, held), rankSteps(v, t))
}

// drawnRanks bounds the ranks in a figure.
const drawnRanks = 16

// lateFirst returns the rows of the ranks, those that arrived last most often first, at most [drawnRanks].
func lateFirst(t *report.Table) []int {
	rows := lists.Indexes[int](t.Entries())
	last := func(i int) float64 { n, _ := t.Num(i, "last"); return n }
	lists.Sort(rows, func(a, b int) int { return int(last(b) - last(a)) })
	return rows[:min(len(rows), drawnRanks)]
}

// Bounds of the distributions of step times.
const (
	stepBins  = 60
	stepReach = 0.995 // quantile of all steps at which the axis ends
)

// rankSteps draws how long the steps of each rank took, a row of shades for each on one axis, so that two kinds of step
// are visible as two.
func rankSteps(v *View, t *report.Table) (c doc.Chart) {
	if v.Unit.Series == nil || len(v.Unit.Groups) == 0 {
		return c
	}
	units, _ := v.Unit.Series.Decode() // validated
	times, all := map[int64][]float64{}, []float64{}
	for i := range units {
		if u := &units[i]; report.UnitStates[u.State] == "kept" {
			times[u.Device] = append(times[u.Device], float64(u.Duration))
			all = append(all, float64(u.Duration))
		}
	}
	if len(all) < 2 {
		return c
	}
	slices.Sort(all)
	low, high := all[0], all[int(stepReach*float64(len(all)-1))]
	if high <= low {
		return c
	}
	c = doc.Chart{ID: "rank_step_times", Title: "Times of the steps of each rank", Kind: "heat", Unit: report.Count, XUnit: report.Nanoseconds,
		XTitle: "Time of a step, from", Note: "At most 0.5 % of all steps are longer than the axis."}
	for _, i := range lateFirst(t) {
		name := t.Str(i, "rank")
		device, ok := t.Int(i, "device_id")
		if !ok || len(times[device]) == 0 {
			continue
		}
		s := doc.Series{Name: "rank " + name, Values: make([]float64, stepBins)}
		for _, ns := range times[device] {
			if ns <= high {
				s.Values[min(int((ns-low)/(high-low)*stepBins), stepBins-1)]++
			}
		}
		for k := range stepBins {
			s.Labels = append(s.Labels, strconv.FormatFloat(math.Round(low+(high-low)*float64(k)/stepBins), 'f', -1, 64))
		}
		delete(times, device) // is drawn
		c.Series = append(c.Series, s)
	}
	return c
}
