package diffdoc

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
)

// Bounds of the terminal's tables of a calibration.
const (
	calibrationKernels = 8
	calibrationCounts  = 5
)

// CalibrationPage returns what explain policy init --format text prints.
func CalibrationPage(c *noise.Calibration, out string) doc.Document {
	var d doc.Document
	d.Add(doc.H(1, "calibration", "Noise of "+wording.Count(c.Captures, "capture")+" of one commit"))
	d.Add(doc.P(doc.Names(c.Names)))
	if c.Captures < 5 {
		d.Add(doc.Note{Kind: doc.Info, Blocks: []doc.Block{doc.P("The floors of " + wording.Count(c.Captures,
			"capture") + " are wide, because little is known about the noise; 5 or more give useful ones.")}})
	}
	var list []*noise.Metric
	for _, id := range []string{"unit.time", "unit.time.mean", "unit.gpu_busy.mean", "unit.gpu_idle.mean",
		"unit.compute_time.mean", "unit.exposed_comm_time.mean"} {
		if m := c.Find(id, report.Labels{}); m != nil {
			list = append(list, m)
		}
	}
	kernels := c.LargestKernels()
	if list = append(list, kernels[:min(len(kernels), calibrationKernels)]...); len(list) > 0 {
		d.Add(noiseTable(list),
			doc.P(doc.Text("Noise is the standard deviation between captures; the floor is what a change between two single "+
				"captures must exceed; then the smallest change found with "+
				"a power of "+unit.Percent(c.Power)+" at 1, 2 and 3 captures a side; last the "+
				"suggested threshold.").With(doc.Muted)),
		)
	}
	if n := len(c.Unsteady); n > 0 {
		var l doc.List
		for _, u := range c.Unsteady[:min(n, calibrationCounts)] {
			l.Add(metricCell(u.Metric, u.Labels), ": "+unit.Format(u.Min, "count")+" to "+unit.Format(u.Max, "count"))
		}
		moreItems(&l, n-calibrationCounts)
		d.Add(doc.P("Counts that should repeat and did not:"), l)
	}
	d.Add(leftOutBlocks(c)...)
	d.Add(doc.P(wording.Count(int64(len(c.Metrics)),
		"metric") + " calibrated, " + unit.Int(len(c.Skipped)) + " without a floor."))
	if out != "" {
		d.Add(doc.P("Wrote ", doc.Name(out), ": explain diff ", doc.Code("--noise"), " reads it."))
	}
	return d
}

func noiseTable(list []*noise.Metric) doc.Table {
	t := doc.Table{ID: "noise", Columns: doc.Cols("Metric", ">Noise", ">Floor", ">1 capture", ">2", ">3", ">Threshold")}
	for _, m := range list {
		name := metricCell(m.Metric, m.Labels)
		if k, ok := m.Labels["kernel"]; ok {
			name = doc.Cell{doc.Text("kernel "), doc.Name(k)}
		}
		t.Row(name, unit.Percent(m.Noise), unit.Percent(m.Floor), unit.Percent(m.MDE[0]), unit.Percent(m.MDE[1]),
			unit.Percent(m.MDE[2]), unit.Percent(m.Threshold))
	}
	return t
}

// leftOutBlocks says how the suggested rules would have judged each capture against the others.
func leftOutBlocks(c *noise.Calibration) []doc.Block {
	text := "Each capture against the others, by the suggested thresholds: " + wording.Count(c.FalseAlarms,
		"false alarm") + " in " + wording.Count(len(c.LeaveOneOut), "comparison") + "."
	tone := doc.Good
	if c.FalseAlarms > 0 {
		tone = doc.Warn
	}
	blocks := []doc.Block{doc.P(doc.Text(text).With(tone))}
	var l doc.List
	for _, o := range c.LeaveOneOut {
		if o.Verdict == comparison.Pass && len(o.Alarms) == 0 {
			continue
		}
		spans := doc.Spans(doc.Name(o.Name), ": "+string(o.Verdict))
		if n := len(o.Alarms); n > 0 {
			spans = doc.Spans(spans, " on ", doc.Names(o.Alarms[:min(n, calibrationCounts)]))
			if n > calibrationCounts {
				spans = append(spans, doc.Text(", …"))
			}
		}
		l.Add(spans)
	}
	return append(blocks, l)
}
