package pairing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// Sides holds a base and a head, and what they have in common.
type Sides struct {
	Opt        Options
	Base, Head *side.Side
	Chosen
	Main *Kind // kind whose change is attributed; nil if there is none

	found   Found
	refused []string // fields that a study would have to name
	at      int      // of the reason for the first of them
}

// Found says how far two sides can be compared, and what is in the way.
type Found struct {
	Comparable bool
	Depth      comparison.Depth
	Overlap    *float64 // the share of the work that both sides do, 0..1; nil if it is not known
	Reasons    []comparison.Reason
	Warnings   []comparison.Reason
	Residue    []comparison.Residue // what differs and was not compared
}

func (f *Found) reason(code comparison.Code, text string) {
	f.Reasons = append(f.Reasons, comparison.Reason{Code: code, Text: text})
}

func (f *Found) refuse(code comparison.Code, text string) {
	f.Comparable = false
	f.reason(code, text)
}

// LeastPart is the share of a unit below which a change of a part is negligible.
const LeastPart = 0.005

// Options selects what is compared.
type Options struct {
	Policy *policy.Policy
	Phase  string // compare units of this phase; empty: the one with most time
	Batch  *int64 // and of this batch size
	Device *int64 // on this GPU; nil: the slowest
	Study  []string
	Apart  string // why the sides have unlike units; empty: they are alike
}

// studied reports whether the sides differ in a field on purpose. To study gpu or parallelism is to study the number of
// GPUs too.
func (o *Options) studied(field string) bool {
	return slices.Contains(o.Study, field) || field == gpuCount && (slices.Contains(o.Study, "gpu") || slices.Contains(o.Study, "parallelism"))
}

// gpuCount stands for the number of GPUs, which the field with the list of GPUs shows.
const gpuCount = "gpu count"

// refuse notes the field that the newest reason refuses because no study names it.
func (x *Sides) refuse(field string) {
	if len(x.refused) == 0 {
		x.at = len(x.found.Reasons) - 1
	}
	if field == gpuCount {
		field = "parallelism"
	}
	if !slices.Contains(x.refused, field) {
		x.refused = append(x.refused, field)
	}
}

// Found returns what the checks so far found. The first refusal says how to compare sides that differ on purpose: it
// names every field that would be refused, also those that are found only once the others are named.
func (x *Sides) Found() Found {
	if len(x.refused) == 0 {
		return x.found
	}
	opt := x.Opt
	for more := x.refused; len(more) > 0; {
		opt.Study = slices.Concat(opt.Study, more)
		next := New(x.Base.Captures, x.Head.Captures, opt)
		if next.Check() {
			next.Work()
		}
		more = next.refused
	}
	found := x.found
	found.Reasons = slices.Clone(found.Reasons)
	found.Reasons[x.at].Text += fmt.Sprintf("; if they differ on purpose: \"explain diff --study %s BASE HEAD\"",
		strings.Join(opt.Study, ","))
	return found
}

// New pairs the captures of both sides.
func New(base, head []*side.Capture, opt Options) *Sides {
	x := &Sides{Opt: opt, Base: &side.Side{Captures: base}, Head: &side.Side{Captures: head}}
	evidence := EvidenceOnly(x.Base, x.Head)
	if evidence {
		x.Opt.Policy = opt.Policy.ForEvidence()
	}
	x.Kinds, x.Whole = matchKinds(x.Base, x.Head, opt.Study), opt.Phase == "" && opt.Batch == nil && !evidence
	x.found = Found{Depth: comparison.DepthNone, Residue: residue(x.Base, x.Head, opt.Policy.Environment)}
	return x
}

// differentWork records that the sides do different work, which makes them not comparable unless that, or one of the
// fields that cause it, is studied.
func (x *Sides) differentWork(text string, causes ...string) {
	if x.Opt.studied(comparison.StudyWork) || slices.ContainsFunc(causes, x.Opt.studied) {
		x.found.reason(comparison.DifferentWork, text)
		return
	}
	x.found.refuse(comparison.DifferentWork, text)
	x.refuse(comparison.StudyWork)
}

// Check verifies what every comparison needs: work on both sides, the same environment, a unit of work, and a kind of
// unit that both sides have. It reports whether there is something to show, comparable or not.
func (x *Sides) Check() bool {
	x.found.Comparable = true
	empty := false
	for name, c := range side.Each(x.Base.Captures, x.Head.Captures) {
		why := "holds no kernels: nothing ran on a GPU, or it was not captured (capture with --trace cuda)"
		if c.EvidenceOnly() {
			why = "is evidence without a trace, and the other side is a trace: " +
				"compare traces with traces, and logs with logs"
		} else if c.HasGPUWork() {
			continue
		}
		empty = true
		x.found.refuse(comparison.EmptySide, fmt.Sprintf("%s: %s %s", name, c.Report.Trace.Name, why))
	}
	x.oneRun("base", x.Base)
	x.oneRun("head", x.Head)
	if text := otherRanks(x.Base, x.Head); text != "" {
		x.differentWork(text, gpuCount)
	}
	x.environment()
	if empty {
		return false
	}
	if text := lackUnits(x.Base, x.Head); text != "" {
		x.found.refuse(comparison.NoUnit, text)
		return false
	}
	return x.choose()
}

// CheckEvidence verifies what a comparison of sides without a trace needs: the same environment, and a kind of evidence
// that both have. It reports whether both sides detail iterations, which are compared like units of work.
func (x *Sides) CheckEvidence() bool {
	x.found.Comparable = true
	x.environment()
	if text := otherEvidence(x.Base, x.Head); text != "" {
		x.found.refuse(comparison.DifferentWork, text)
	}
	if lackUnits(x.Base, x.Head) != "" {
		return false
	}
	// the other numbers can be compared without
	if x.Opt.Phase == "" && x.Opt.Batch == nil && !slices.ContainsFunc(x.Kinds, x.common) {
		x.found.reason(comparison.DifferentWork, "no kind of iteration occurs on both sides: "+x.kindsText())
		return false
	}
	return x.choose()
}

// otherRanks says how the numbers of ranks of the runs differ, which is different work. Reports of single captures state
// none.
func otherRanks(base, head *side.Side) string {
	if MixedRanks(base, head) {
		return "one side is a merged run of several ranks, the other a single capture: merge both (explain merge), or compare the captures of one rank"
	}
	first, _ := base.Captures[0].Value("ranks.count", nil)
	for _, c := range slices.Concat(base.Captures, head.Captures) {
		if n, _ := c.Value("ranks.count", nil); n != first {
			return fmt.Sprintf("one run has %v ranks and the other %v: a rank does a different share of the work", first, n)
		}
	}
	return ""
}

// MixedRanks reports whether some captures are merged runs and others are not, which may be one rank of a run or a whole
// one.
func MixedRanks(base, head *side.Side) bool {
	all := slices.Concat(base.Captures, head.Captures)
	merged := lists.Count(all, func(c *side.Capture) bool {
		_, ok := c.Value("ranks.count", nil)
		return ok
	})
	return merged > 0 && merged < len(all)
}

// differing keeps the parts that differ of two lists of equal length, so that a message names the option and not the
// whole load. It keeps the fingerprint, which covers all parts, only if nothing else differs.
func differing(a, b string) (string, string) {
	as, bs := strings.Split(a, "; "), strings.Split(b, "; ")
	if len(as) < 2 || len(as) != len(bs) {
		return a, b
	}
	var x, y []string
	for i := range as {
		if as[i] != bs[i] && (len(x) == 0 || !strings.HasPrefix(as[i], "fingerprint ")) {
			x, y = append(x, as[i]), append(y, bs[i])
		}
	}
	return strings.Join(x, "; "), strings.Join(y, "; ")
}

// environment compares the hard fields of all captures with those of the base's first capture. An unknown field matches
// any value.
func (x *Sides) environment() {
	first := x.Base.Captures[0]
	seen := map[string]bool{}
	say := func(name, field, a, b string) {
		if x.Opt.studied(name) {
			return
		}
		if key := field + a + b; !seen[key] {
			seen[key] = true
			a, b = differing(a, b)
			r := comparison.Reason{Code: comparison.EnvironmentMismatch, Field: field, Base: a, Head: b,
				Text: fmt.Sprintf("%s differs: %s on one side, %s on the other", field, a, b)}
			if name == "graph_trace" {
				r.Code, r.Text = comparison.GraphCaptureMismatch, fmt.Sprintf("CUDA graphs were traced per %s on one side and "+
					"per %s on the other: capture both with the same --cuda-graph-trace", a, b)
			}
			x.found.Comparable, x.found.Reasons = false, append(x.found.Reasons, r)
			x.found.Residue = slices.DeleteFunc(x.found.Residue, func(r comparison.Residue) bool {
				return r.Field == name || name == gpuCount && r.Field == "gpu"
			})
			if name != "graph_trace" { // no study needs that
				x.refuse(name)
			}
		}
	}
	for _, c := range slices.Concat(x.Base.Captures, x.Head.Captures) {
		for _, f := range report.EnvironmentFields() {
			if x.Opt.Policy.Environment.Class(f.Name) != report.HardField {
				continue
			}
			n, m := len(first.Report.Environment.GPUs), len(c.Report.Environment.GPUs)
			if f.Name == "gpu" && n > 0 && m > 0 && n != m {
				say(gpuCount, "the number of GPUs that did work", strconv.Itoa(n), strconv.Itoa(m))
				continue
			}
			if a, b := f.Get(&first.Report.Environment), f.Get(&c.Report.Environment); f.Differ(a, b) {
				say(f.Name, fieldText(f.Name), a, b)
			}
		}
		if text := otherUnit(x.Opt.Policy, c.Report); text != "" {
			x.found.refuse(comparison.NoUnit, text)
		}
	}
}

// otherUnit says that a report was made with another kind of unit than the policy asks for; empty if it was not.
func otherUnit(p *policy.Policy, r *report.Report) string {
	want, have := p.UnitKind(), cmp.Or(r.Unit.Kind, "none")
	if want == "" || want == have {
		return ""
	}
	how := "was analysed per " + have
	if have == "none" {
		how = "has no unit of work"
	}
	return fmt.Sprintf("the policy asks for the unit of work %s, and %s %s: analyse its trace with --unit, or change the policy",
		p.Unit, r.Trace.Name, how)
}

// fieldText names a field of the environment in a sentence.
func fieldText(name string) string {
	switch name {
	case "gpu":
		return "the GPU model"
	case "dtype":
		return "the data type"
	}
	if strings.HasPrefix(name, "max_") { // the servers' own name
		return name
	}
	return "the " + strings.ReplaceAll(name, "_", " ")
}

// lackUnits says which side lacks a unit of work, and what would give it one; empty if none does.
func lackUnits(base, head *side.Side) string {
	var lacking, having *report.Report
	for _, c := range slices.Concat(base.Captures, head.Captures) {
		if len(c.Kinds) == 0 {
			lacking = cmp.Or(lacking, c.Report)
		} else {
			having = cmp.Or(having, c.Report)
		}
	}
	if lacking == nil {
		return ""
	}
	text := fmt.Sprintf("%s has no unit of work", lacking.Trace.Name)
	if why := strings.TrimSuffix(lacking.Unit.Why, "."); why != "" {
		text += " (" + policy.CutTo(why, mostWhy) + ")"
	}
	if having != nil {
		unit, option := unitText(&having.Unit)
		return text + fmt.Sprintf(", %s has one (%s): try %s on both, or put step markers into the program",
			having.Trace.Name, unit, option)
	}
	return text + ": totals grow with the length of a capture, so nothing can be compared; capture more steps, or name the unit with --unit nvtx:REGEX or kernel:REGEX"
}

// unitText names a unit of work, and the option that asks for one like it.
func unitText(u *report.Unit) (name, option string) {
	name, option = "kernel "+strconv.Quote(wording.Shorten(u.Name, 60)), "--unit "+u.Kind+":REGEX with an expression that matches it"
	switch u.Kind {
	case "graph":
		return "CUDA graph launches", "--unit graph"
	case "nvtx":
		name = "markers " + strconv.Quote(u.Name)
	}
	return name, option
}

// mostWhy limits, in characters, how much of a report's own reason is repeated: it may hold long kernel names.
const mostWhy = 300

// choose picks the kind of unit to attribute, among those that all captures have: of the phase with most time, the kind
// with most time. Time is the sum of both sides' shares of unit time.
func (x *Sides) choose() bool {
	asked := lists.Filter(x.Kinds, func(k *Kind) bool { return x.common(k) && x.Opt.asks(k) })
	phases := map[string]float64{}
	for _, k := range asked {
		phases[k.phase()] += k.time(x.Base, x.Head)
	}
	for _, k := range asked {
		if x.Main == nil || cmp.Or(cmp.Compare(phases[k.phase()], phases[x.Main.phase()]),
			cmp.Compare(k.time(x.Base, x.Head), x.Main.time(x.Base, x.Head))) > 0 {
			x.Main = k
		}
	}
	if x.Main == nil {
		text := "no kind of unit occurs on both sides"
		if x.Opt.Phase != "" || x.Opt.Batch != nil {
			text = "no kind of unit of the requested phase and batch size occurs on both sides"
		}
		text += ": " + x.kindsText()
		if x.Opt.Apart != "" {
			text += "; " + x.Opt.Apart
		}
		x.found.refuse(comparison.DifferentWork, text)
		return false
	}
	x.Kind = x.Main.Name
	if !x.Main.Both() {
		x.found.refuse(comparison.MissingMetric, fmt.Sprintf(
			"not every capture lists the parts of a unit of %s; analyse them again with this version", x.Kind))
		return false
	}
	x.Base.Views, x.Head.Views = x.Main.BaseViews, x.Main.HeadViews
	if !x.oneDevice() {
		return false
	}
	x.Judged, x.Devices = x.judged(), devices(x.Base, x.Head)
	return true
}

// HeadKind returns the head's name for Main: another than Kind in a study of another batch size.
func (x *Sides) HeadKind() side.Kind { return x.Head.Captures[0].Kinds[x.Main.Head[0]].Kind }

// common reports whether every capture has units of the kind, with metrics.
func (x *Sides) common(k *Kind) bool { return known(x.Base, k.Base) && known(x.Head, k.Head) }

// known reports whether every capture of a side has metrics of the kind that row points to.
func known(s *side.Side, row []int) bool {
	for i, at := range row {
		if at < 0 {
			return false
		}
		if _, ok := s.Captures[i].Labels(at); !ok {
			return false
		}
	}
	return row != nil
}

// phase returns the kind's phase, or empty for steps that no marker names.
func (k *Kind) phase() string {
	if k.Name.Plain() {
		return ""
	}
	return k.Name.Phase
}

// Coverage says why the units do not represent their captures: most of a capture's units were dropped because their work
// does not recur, or the sides' coverage is unequal.
func Coverage(base, head *side.Side) (texts []string) {
	for _, v := range slices.Concat(base.Views, head.Views) {
		kept := lists.Sum(v.C.Kinds, func(g side.Group) int64 { return g.Count })
		if t := v.C.Report.Unit.Trimmed; t.Other > kept {
			texts = append(texts, fmt.Sprintf("%s: %d units of work do not recur and only %d do: too few to represent the capture",
				v.C.Report.Trace.Name, t.Other, kept))
		}
	}
	if text := unequalCoverage(base, head); text != "" {
		texts = append(texts, text)
	}
	return texts
}
