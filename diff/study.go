package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/breakdown"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// unjudge withdraws the verdict of sides that differ on purpose.
func (x *comparer) unjudge() {
	c := x.C
	s := &comparison.Study{BaseGPUs: gpus(x.Base), HeadGPUs: gpus(x.Head)}
	for _, name := range x.Opt.Study {
		f := comparison.StudyField{Name: name}
		named := func(e *report.EnvironmentField) bool { return e.Name == name }
		if e := lists.Find(report.EnvironmentFields(), named); e != nil {
			f.Base = e.Get(&x.Base.Captures[0].Report.Environment)
			f.Head = e.Get(&x.Head.Captures[0].Report.Environment)
		}
		if r := breakdown.Running(c); name == "load" && r != nil && (f.Base == "" || f.Head == "") {
			f.Base = unit.Format(comparison.Value(r.Base), r.Unit) + comparison.RequestsRunning
			f.Head = unit.Format(comparison.Value(r.Head), r.Unit) + comparison.RequestsRunning
		}
		c.Residue = slices.DeleteFunc(c.Residue, func(r comparison.Residue) bool { return r.Field == name })
		s.Fields = append(s.Fields, f)
	}
	c.Study, c.Verdict, c.Gates, c.Resolution, c.Counts.GatesChecked = s, comparison.None, []comparison.Gate{}, nil, 0
	c.Waivers = []comparison.WaiverUse{}
}

// price says what the difference costs and gains, once the change is attributed.
func (x *comparer) price() {
	c, s := x.C, x.C.Study
	row := cmp.Or(c.Row("unit.time.p50"), c.Row("unit.time.mean"))
	if !c.Comparable || row == nil || comparison.Value(row.Ratio) <= 0 {
		return
	}
	s.Step = row.Ratio
	throughput := 1 / comparison.Value(row.Ratio)
	if b, h := x.sides.Kind.Batch, x.sides.HeadKind().Batch; b > 0 && h > 0 {
		throughput *= float64(h) / float64(b)
	}
	s.Throughput = &throughput
	switch overlap := c.Unit.Overlap; {
	case s.BaseGPUs == 0 || s.HeadGPUs == 0 || s.BaseGPUs == s.HeadGPUs:
	case overlap != nil && *overlap < pairing.OverlapNeeded:
		c.Answer.Notes = slices.Insert(c.Answer.Notes, 0, fmt.Sprintf(
			"the steps do different work (%s of the compute time in common), so there is no efficiency", unit.Percent(*overlap)))
	case pairing.MixedRanks(x.Base, x.Head):
		c.Answer.Notes = slices.Insert(c.Answer.Notes, 0,
			"one side is a merged run of several ranks and the other may be one rank of a run, so there is no efficiency")
	default:
		s.Efficiency = new(throughput * float64(s.BaseGPUs) / float64(s.HeadGPUs))
	}
	collectives := map[string]bool{}
	for i := range c.Attribution.Rows {
		switch r := &c.Attribution.Rows[i]; {
		case r.Kind == comparison.KindClass && r.ID == comparison.ClassComm:
			s.Communication = &r.Delta
		case r.Kind == comparison.KindKernel && r.Category == side.Communication && r.Delta != 0:
			collectives[collective(r.ID)] = true
		}
	}
	if len(collectives) == 1 {
		for s.Collective = range collectives {
		}
	}
	c.Cause = "Study of " + s.About() + ": " + s.String() + ". " + c.Cause
}

// gpus returns the number of GPUs that did work in a capture of a side, the most over its captures.
func gpus(s *side.Side) int {
	return lists.Most(s.Captures, func(c *side.Capture) int { return len(c.Report.Environment.GPUs) })
}

// collective returns the type of a communication kernel from its name; empty if the name does not show it.
func collective(kernel string) string {
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(kernel))
	for _, c := range []struct{ part, name string }{{"allreduce", "all-reduce"}, {"crossdevicereduce", "all-reduce"}, {"allgather", "all-gather"},
		{"reducescatter", "reduce-scatter"}, {"alltoall", "all-to-all"}, {"broadcast", "broadcast"}, {"sendrecv", "send and receive"}} {
		if strings.Contains(plain, c.part) {
			return c.name
		}
	}
	return ""
}
