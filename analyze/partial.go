package analyze

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
)

// Digest analyses the capture in path as [Run] does, and keeps what a report of many captures needs of it. Evidence
// alone has nothing to merge. The options Top and AllRows have no effect: what is merged has to be whole.
func Digest(ctx context.Context, path string, opt Options) (*merge.Capture, error) {
	switch {
	case IsEvidence(path):
		return nil, fmt.Errorf("%w: %s is no capture of a rank but evidence beside one: name it with --server-log, "+
			"--prometheus, --ncu or --evidence", ErrOptions, filepath.Base(path))
	case len(opt.Evidence) > 0:
		return nil, fmt.Errorf("%w: a partial is made from a trace; give evidence to the report of the run", ErrOptions)
	}
	opt.Top = math.MaxInt32
	c := &merge.Capture{}
	res, err := run(ctx, path, opt, func(in *kit.Input, res *Result) {
		c = &merge.Capture{Head: merge.HeadOf(res.Report, in.Trace.Meta.SessionStart), Counts: counts(in), Tracks: tracks(in)}
		if in.Trace.File.Kind == source.PyTorch {
			c.NamesRank()
		}
	})
	if err != nil {
		return nil, err
	}
	MergeRules().Take(c, res.Report)
	c.Own = ownOf(res.Report)
	return c, nil
}

// OfReport is the capture as far as its report describes it, see [merge.OfReport].
func OfReport(name string, r *report.Report) (*merge.Capture, error) {
	return merge.OfReport(name, r, MergeRules(), ownOf(r))
}

// MergeRules is what all sections declare of merging.
func MergeRules() *merge.Rules {
	r := merge.NewRules()
	for _, s := range sections {
		r.Add(s.ID, s.Metrics, s.Tables)
	}
	return r
}

// ownOf is what a report says of the GPUs and steps of its capture that no rule of merging can say.
func ownOf(r *report.Report) merge.Own {
	o := merge.Own{P2P: map[int64]int64{}, Energy: map[int64]*float64{}, Power: map[int64]float64{}, Steps: map[string]merge.Step{}}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		device, err := strconv.ParseInt(m.Labels["device"], 10, 64)
		ofDevice := err == nil
		switch {
		case m.ID == "gpu.energy" && ofDevice:
			o.Energy[device] = m.Value
		case m.Value == nil:
		case m.ID == "gpu.power" && ofDevice:
			o.Power[device] = *m.Value
		case m.ID == "comm.exposed_time" && ofDevice && m.Labels["collective"] == kernelname.CollSendRecv:
			o.P2P[device] += int64(*m.Value)
		case m.ID == "component.gpu_time" && m.Labels.Keys() == "component" && m.Labels["component"] == kernelname.CompMoE:
			o.Experts = new(int64(*m.Value))
		case m.ID == "kernel.total_time" && len(m.Labels) == 0:
			o.Kernels = int64(*m.Value)
		case m.ID == "unit.time" && !ofDevice && m.Group != "" && m.Summary != nil:
			o.Steps[m.Group] = merge.Step{P50: m.Summary.P50, Mean: m.Summary.Mean}
		}
	}
	return o
}

// counts are the durations of the window's kernels, calls and copies.
func counts(in *kit.Input) []merge.Counts {
	t := in.Trace
	samples := map[[2]string][]int64{}
	add := func(family, key string, ns int64) {
		k := [2]string{family, key}
		samples[k] = append(samples[k], ns)
	}
	for lo, hi := t.Kernels.Starting(in.Span.Start, in.Span.End); lo < hi; lo++ {
		add("kernel", t.Kernels.Names[t.Kernels.Name(lo)].Name, t.Kernels.Dur(lo))
	}
	for lo, hi := t.API.Starting(in.Host.Start, in.Host.End); lo < hi; lo++ {
		add("api", t.API.Names[t.API.Name(lo)].Name, t.API.Dur(lo))
	}
	for lo, hi := t.Copies.Starting(in.Span.Start, in.Span.End); lo < hi; lo++ {
		add("memcpy", copyKey(&t.Copies, lo), t.Copies.Dur(lo))
	}
	list := make([]merge.Counts, 0, len(samples))
	for _, k := range slices.SortedFunc(maps.Keys(samples), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		slices.Sort(samples[k])
		list = append(list, merge.NewCounts(k[0], k[1], samples[k]))
	}
	return list
}

// copyKey is the direction and the kind of memory of a copy, as metrics have them.
func copyKey(c *trace.Copies, i int) string {
	return fmt.Sprintf("%s/%s", kit.Directions[kit.Direction(c.Kind(i))], kit.MemKinds[kit.CopySide(c, i)])
}
