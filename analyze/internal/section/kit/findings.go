package kit

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// FindingDef declares a finding of a section. Its title is used unless [Output.FindAs] gives one with numbers. Its page
// explains it under **ID**.
type FindingDef struct {
	ID, Title string
	// Failure says that something broke: the finding is of high severity and comes first, whatever its worth.
	Failure bool
	// General says that the finding only names where time goes; findings that could save some of that time come before
	// it.
	General bool
	// Inside says that the claimed time was measured inside certain calls. It comes before findings on the time around
	// them, whose remedies could hide it too; if it is also General, it comes after those that are not.
	Inside bool
	// Part says that the finding is dropped if others already claim most of its time.
	Part bool
}

// leastWorth is the share of the judged time, 0..1, below which a finding is dropped.
const leastWorth = 0.01

// Finding is a finding before ranking.
type Finding struct {
	*report.Finding
	def    *FindingDef
	failed bool
	claims []Claim
	leaves float64 // share of the claimed time that no remedy saves, 0 to 1
	rest   func(left *[timeline.Causes]int64)
}

// Claim is a part of a piece of the judged time that a finding is about.
type Claim struct {
	piece
	ns int64
}

// piece of the judged time: the compute time of a kernel, idle time of a cause, and the like.
type piece struct {
	of   string
	name int32
}

func sumOf(claims []Claim) int64 { return lists.Sum(claims, func(c Claim) int64 { return c.ns }) }

// Costs sets the worth of a finding, and the pieces of the judged time that it claims.
func (f *Finding) Costs(w *report.Worth, claims ...Claim) *Finding {
	f.Worth, f.claims = w, claims
	return f
}

// Leaves lowers the worth: whatever is done, this share of the claimed time stays, 0 to 1.
func (f *Finding) Leaves(share float64) *Finding {
	if f.leaves = share; f.Worth != nil {
		f.Worth.Time = int64(math.Round((1 - share) * float64(f.Worth.Time)))
	}
	return f
}

// claimed is all the time that the finding is about and that can be saved.
func (f *Finding) claimed() int64 {
	return int64(math.Round((1 - f.leaves) * float64(sumOf(f.claims))))
}

// At sets the place: the range, call chain, call, kernel or thread with at least 30 % of the time.
func (f *Finding) At(place string) *Finding {
	f.Place = place
	return f
}

// Fails marks the finding as a failure, for kinds of which not every finding is one.
func (f *Finding) Fails(yes bool) *Finding {
	f.failed = yes
	return f
}

// KernelClaims are the compute times of kernels, by name; nil stands for all.
func (s *Step) KernelClaims(are func(name int) bool) (list []Claim, ns int64) {
	for n, time := range s.Kernels {
		if time > 0 && (are == nil || are(n)) {
			list = append(list, KernelClaim(int32(n), time))
			ns += time
		}
	}
	return list, ns
}

// LaunchedIn is the range in which some kernels were launched, with at least 30 % of their time, ns, or empty.
func LaunchedIn(in *Input, are func(name int) bool, ns int64) string {
	s, times, places := in.Step(), map[string]int64{}, NewPlaces(in)
	for i := range s.Device.Len() {
		call := s.Device.Call(i)
		if call == trace.None || s.Device.Kind(i) != timeline.KernelWork || !are(int(in.Trace.Kernels.Name(s.Device.Row(i)))) {
			continue
		}
		if rng, _ := places.Place(call); rng != "" {
			times[rng] += s.Spans.Within(s.Device.Start(i), s.Device.End(i))
		}
	}
	folded := map[string]int64{}
	for rng, time := range times {
		folded[string(kernelname.AppendRangeCanonical(nil, rng))] += time
	}
	names, _ := leading(folded, ns)
	return lists.Nth(names, 0, "")
}

// KernelClaim is a part of the compute time of a kernel.
func KernelClaim(name int32, ns int64) Claim { return Claim{piece{"kernel", name}, ns} }

// CommClaim is a part of the exposed communication, CopyClaim all exposed copies.
func (s *Step) CommClaim(ns int64) Claim { return Claim{piece{"comm", 0}, ns} }
func (s *Step) CopyClaim() Claim         { return Claim{piece{"copy", 0}, s.Copy} }

// CauseReadBack stands for the idle time caused by reading values back, if there is a finding about it: then that time
// is not counted in the other causes.
const CauseReadBack = timeline.Causes

// IdleOf is the idle time of a cause, in ns, without the time caused by reading values back, if that is reported
// separately.
func (s *Step) IdleOf(cause int) int64 {
	switch {
	case cause == CauseReadBack && s.ReadBacksTold():
		return s.ReadBackIdle()
	case cause == CauseReadBack:
		return 0
	case s.ReadBacksTold():
		return s.Cause[cause] - s.ReadBackBy[cause]
	}
	return s.Cause[cause]
}

// IdleClaims claim ns of idle time of some causes, taken in their order.
func (s *Step) IdleClaims(ns int64, causes ...int) (list []Claim) {
	for _, c := range causes {
		part := min(ns, s.IdleOf(c))
		list, ns = append(list, Claim{piece{"idle", int32(c)}, part}), ns-part
	}
	return list
}

// WorthOf is a share of something other than the judged time: of a run, of requests.
func WorthOf(frame string, part, of float64) *report.Worth {
	if !(of > 0) || math.IsNaN(part) {
		return nil
	}
	const fine = 1_000_000 // shares of small counts stay exact enough
	return &report.Worth{Time: int64(min(max(part, 0), of) / of * fine), Of: fine, Frame: frame}
}

// OfIdle makes a finding about ns of idle time of these causes, in their order.
func (f *Finding) OfIdle(s *Step, ns int64, causes ...int) *Finding {
	claims := s.IdleClaims(s.Idle, causes...)
	return f.Costs(s.Worth(min(ns, sumOf(claims))), claims...)
}

// Rest makes a finding stand even if others hold most of its idle time. say words it anew for what they leave, by
// cause, if they leave any.
func (f *Finding) Rest(say func(left *[timeline.Causes]int64)) *Finding {
	f.rest = say
	return f
}

// has is the whole length of a piece of time.
func (s *Step) has(c *Claim) int64 {
	switch c.of {
	case "kernel":
		return s.Kernels[c.name]
	case "comm":
		return s.Comm
	case "copy":
		return s.Copy
	}
	return s.IdleOf(int(c.name))
}

// rankFindings gives each piece of the judged time to one finding. Among findings about the same time the one worth
// most gets it; those that could save it come before those that only name where time goes. Order and severity follow
// from the rest; failures come first. A finding that is left with almost nothing becomes a remark.
func rankFindings(step *Step, list []*Finding) (found []report.Finding, remarks []report.Remark) {
	found, remarks = []report.Finding{}, []report.Remark{}
	taken, inside := map[piece]int64{}, map[piece]int64{} // the second of Inside findings
	order := func(f *Finding) int {
		switch {
		case f.failed || f.def.Failure:
			return 0
		case f.def.Inside && !f.def.General:
			return 1
		case f.def.Inside:
			return 2
		case f.def.General:
			return 4
		}
		return 3
	}
	for _, f := range list { // no finding is worth more than the time that there is
		if w := f.Worth; w != nil && w.Of <= 0 {
			f.Worth = nil
		} else if w != nil {
			w.Time = min(max(w.Time, 0), w.Of)
		}
	}
	share := func(f *Finding) float64 {
		if f.Worth == nil {
			return 0
		}
		return f.Worth.Share()
	}
	lists.Sort(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(share(b), share(a)))
	})
	for _, f := range list {
		told := true
		if len(f.claims) > 0 && f.Worth != nil {
			free, gone, back, others := int64(0), int64(0), int64(0), int64(0)
			for i := range f.claims {
				c := &f.claims[i]
				if f.rest != nil && c.name == CauseReadBack { // all of it, or none if another finding is about it
					if back = c.ns; taken[c.piece] > 0 {
						back, c.ns = 0, 0
						f.Worth.Time = min(f.Worth.Time, f.claimed())
					}
				}
				t, in := taken[c.piece], inside[c.piece]
				free, gone, others = free+min(c.ns, step.has(c)-t), gone+min(c.ns, t-in), others+min(c.ns, t)
			}
			left := min(free, max(0, f.Worth.Time-gone))
			told = f.rest != nil || 2*left >= f.Worth.Time
			if told {
				if f.rest != nil && free > 0 && (others > 0 || back > 0) {
					var idle [timeline.Causes]int64
					if back > 0 {
						idle = step.ReadBackBy
					}
					for i := range f.claims {
						if c := &f.claims[i]; c.name != CauseReadBack {
							idle[c.name] += min(c.ns, step.has(c)-taken[c.piece])
						}
					}
					f.rest(&idle)
				}
				f.Worth.Time = left
				switch {
				case order(f) > 0 && share(f) < leastWorth: // a remark takes nothing
					left = 0
				case f.leaves > 0: // it is about time that it does not save, too
					left = free
				}
				for i, rest := 0, left; i < len(f.claims); i++ {
					c := &f.claims[i]
					part := max(0, min(c.ns, step.has(c)-taken[c.piece], rest))
					taken[c.piece], rest = taken[c.piece]+part, rest-part
					if f.def.Inside {
						inside[c.piece] += part
					}
				}
			}
		}
		switch s := share(f); {
		case order(f) == 0:
			f.Severity = report.High
		case !told || s < leastWorth:
			if told && f.Worth != nil || !f.def.Part {
				remarks = append(remarks, report.Remark{ID: f.ID, Title: f.Title, Place: f.Place, Evidence: f.Evidence,
					Advice: f.Advice, Doc: f.Doc})
			}
			continue
		default:
			f.Severity = report.SeverityOf(s)
		}
		found = append(found, *f.Finding)
	}
	failures := lists.Count(list, func(f *Finding) bool { return order(f) == 0 })
	lists.Sort(found[failures:], func(a, b report.Finding) int {
		return cmp.Compare(b.Worth.Share(), a.Worth.Share())
	})
	return found, remarks
}

// WorthOfWindow is the worth of ns of a device's time in the window; nil if the window has no length.
func WorthOfWindow(window interval.Interval, ns int64) *report.Worth {
	if window.Len() <= 0 {
		return nil
	}
	return &report.Worth{Time: min(ns, window.Len()), Of: window.Len(), Frame: report.OfWindow}
}

// sayOfSteady replaces the findings of sections that look at the steady part, and the metrics that they quote: a quoted
// number of the steady part becomes a metric of its own, steady.ID. Metrics of units cover only that part already; any
// other number without such a metric is not quoted.
func (x *Outputs) sayOfSteady(r *report.Report) {
	defs, values := map[string]*report.MetricDef{}, map[string]*report.Metric{}
	for _, s := range x.list {
		for i := range s.Metrics {
			defs[s.Metrics[i].ID] = &s.Metrics[i]
		}
	}
	for _, out := range x.steady {
		for _, m := range out.metrics {
			values[report.MetricKey(m.ID, m.Labels)] = m
		}
	}
	seen := map[string]bool{}
	for _, out := range x.steady {
		for _, f := range out.findings {
			kept := f.Evidence[:0]
			for _, ref := range f.Evidence {
				if d := defs[ref.ID]; d == nil || d.Scale != report.PerUnit {
					key := report.MetricKey(ref.ID, ref.Labels)
					def, value := defs[steadyPrefix+ref.ID], values[key]
					if def == nil || value == nil {
						continue
					}
					ref.ID = def.ID
					if !seen[key] {
						seen[key] = true
						m := *value
						m.ID, m.Scale, m.Summary, m.Histogram = def.ID, def.Scale, nil, nil
						r.Metrics = append(r.Metrics, m)
					}
				}
				kept = append(kept, ref)
			}
			f.Evidence = kept
		}
		x.whole[slices.Index(x.list, out.of)].findings = out.findings
	}
}

const steadyPrefix = "steady."

// QuotedOfSteady are the metrics of the steady part that findings quote.
func QuotedOfSteady(sections []*Section) (list []report.MetricDef) {
	for _, s := range sections {
		for _, d := range s.Metrics {
			if s.Steady && d.Steady {
				list = append(list, report.MetricDef{ID: steadyPrefix + d.ID, Unit: d.Unit, Better: d.Better, Assume: report.Noisy,
					Scale: d.Scale, Merge: report.Leave, Labels: d.Labels, Meaning: d.ID + " of the steady part; only if a finding quotes it"})
			}
		}
	}
	return list
}

// NarrowFlags names the flags that narrow the window of this capture; those that need units or NVTX ranges only if it
// has them.
func (in *Input) NarrowFlags() string {
	var flags []string
	if in.Units != nil && in.Units.Kind != workunit.KindNone && in.Window.Mode != "steady" {
		flags = append(flags, "--steady")
	}
	if in.Trace.Ranges.Len() > 0 {
		flags = append(flags, "--window nvtx:REGEX")
	}
	return strings.Join(append(flags, "--from", "--to"), ", ")
}
