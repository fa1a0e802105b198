package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Sides are a base and a head, and what was found that both have: the comparison in the making.
type Sides struct {
	opt        matchOptions
	base, head *side
	c          *Comparison
	kind       kind
	signature  string
}

// leastPart is the share of a unit below which a part of it has not changed to speak of.
const leastPart = 0.005

// matchOptions say what is compared.
type matchOptions struct {
	Policy   *Policy
	Phase    string  // compare units of this phase; empty: the one with most time
	Batch    *int64  // and of this batch size
	MinShare float64 // kernels below this share of the shorter unit go to others, 0..1
	Top      int     // rows of kernels
}

// newSides puts captures against each other for c.
func newSides(base, head []*capture, opt matchOptions, c *Comparison) *Sides {
	return &Sides{opt: opt, base: &side{captures: base}, head: &side{captures: head}, c: c}
}

func (x *Sides) reason(code Code, text string) {
	x.c.Reasons = append(x.c.Reasons, Reason{Code: code, Text: text})
}

// refuse says why the sides are not comparable.
func (x *Sides) refuse(code Code, text string) {
	x.c.Comparable = false
	x.reason(code, text)
}

// check goes through what must hold before anything is compared: work on both sides, the same environment, a unit of work,
// and a kind of unit that both have. It reports whether there is something to show, comparable or not.
func (x *Sides) check() bool {
	x.c.Comparable = true
	empty := false
	for _, s := range []struct {
		name string
		side *side
	}{{"base", x.base}, {"head", x.head}} {
		for _, c := range s.side.captures {
			if c.evidenceOnly() {
				empty = true
				x.refuse(EmptySide, fmt.Sprintf("%s: %s is evidence without a trace, and the other side is a trace: compare traces with traces, and logs with logs", s.name, c.Report.Trace.Name))
			} else if !c.hasGPUWork() {
				empty = true
				x.refuse(EmptySide, fmt.Sprintf("%s: %s holds no kernels: nothing ran on a GPU, or it was not captured (capture with --trace cuda)", s.name, c.Report.Trace.Name))
			}
		}
	}
	x.environment()
	if empty {
		return false
	}
	if !x.haveUnits() {
		return false
	}
	if !x.choose() {
		return false
	}
	return true
}

// environment compares the hard fields of all captures with the first one's. Unknown fields differ from nothing.
func (x *Sides) environment() {
	first := x.base.captures[0]
	seen := map[string]bool{}
	say := func(code Code, field, a, b string) {
		if key := field + a + b; !seen[key] {
			seen[key] = true
			text := fmt.Sprintf("%s differs: %s on one side, %s on the other", field, a, b)
			if code == GraphCaptureMismatch {
				text = fmt.Sprintf("CUDA graphs were traced per %s on one side and per %s on the other: capture both with the same --cuda-graph-trace", a, b)
			}
			x.refuse(code, text)
		}
	}
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			for _, f := range report.EnvironmentFields() {
				if x.opt.Policy.Environment.class(f.Name) != report.HardField {
					continue
				}
				if n, m := len(first.Report.Environment.GPUs), len(c.Report.Environment.GPUs); f.Name == "gpu" && n > 0 && m > 0 && n != m {
					say(EnvironmentMismatch, "the number of GPUs that did work", strconv.Itoa(n), strconv.Itoa(m))
					continue
				}
				if a, b := f.Get(&first.Report.Environment), f.Get(&c.Report.Environment); a != "" && b != "" && a != b {
					code := EnvironmentMismatch
					if f.Name == "graph_trace" {
						code = GraphCaptureMismatch
					}
					say(code, fieldText(f.Name), a, b)
				}
			}
			x.unitOfPolicy(c.Report)
		}
	}
}

// unitOfPolicy refuses a report that was made per another kind of unit than the policy asks for.
func (x *Sides) unitOfPolicy(r *report.Report) {
	want, have := x.opt.Policy.unitKind(), r.Unit.Kind
	if have == "" {
		have = "none"
	}
	if want != "" && want != have {
		x.refuse(NoUnit, fmt.Sprintf("the policy asks for the unit of work %s, and %s was analysed per %s: analyse its trace with --unit, or change the policy", x.opt.Policy.Unit, r.Trace.Name, have))
	}
}

// fieldText names a field of the environment in a sentence.
func fieldText(name string) string {
	switch name {
	case "gpu":
		return "the GPU model"
	case "dtype":
		return "the data type"
	}
	if strings.HasPrefix(name, "max_") { // as servers call it
		return name
	}
	return "the " + strings.ReplaceAll(name, "_", " ")
}

// haveUnits says which sides lack a unit of work, and what would give them one.
func (x *Sides) haveUnits() bool {
	var lacking, having *report.Report
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			if len(c.groups) == 0 {
				if lacking == nil {
					lacking = c.Report
				}
			} else if having == nil {
				having = c.Report
			}
		}
	}
	if lacking == nil {
		return true
	}
	text := fmt.Sprintf("%s has no unit of work", lacking.Trace.Name)
	if why := strings.TrimSuffix(lacking.Unit.Why, "."); why != "" {
		text += " (" + why + ")"
	}
	if having != nil {
		text += fmt.Sprintf(", %s has one (%s): try %s on both, or put step markers into the program", having.Trace.Name, unitText(&having.Unit), unitOption(&having.Unit))
	} else {
		text += ": totals grow with the length of a capture, so nothing can be compared; capture more steps, or name the unit with --unit nvtx:REGEX or kernel:REGEX"
	}
	x.refuse(NoUnit, text)
	return false
}

func unitText(u *report.Unit) string {
	switch u.Kind {
	case "graph":
		return "CUDA graph launches"
	case "nvtx":
		return "markers " + strconv.Quote(u.Name)
	}
	return "kernel " + strconv.Quote(shorten(u.Name))
}

// unitOption is the --unit that asks for a unit like u.
func unitOption(u *report.Unit) string {
	if u.Kind == "graph" {
		return "--unit graph"
	}
	return "--unit " + u.Kind + ":REGEX with an expression that matches it"
}

// shorten a name for a sentence.
func shorten(name string) string {
	const most = 60
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "…"
	}
	return name
}

// choose picks the kind of unit to compare: of the phase that both sides spend most time in, the kind with most time, of
// those that all captures have. Time is the sum of the shares of both sides' unit time.
func (x *Sides) choose() bool {
	var common []kind
	theirs := x.head.kinds()
	for _, k := range x.base.kinds() {
		if slices.Contains(theirs, k) && (x.opt.Phase == "" || k.phase == x.opt.Phase) && (x.opt.Batch == nil || k.batch == *x.opt.Batch) {
			common = append(common, k)
		}
	}
	if len(common) == 0 {
		text := fmt.Sprintf("no kind of unit occurs on both sides: base has %s; head has %s", kindsText(x.base.kinds()), kindsText(theirs))
		if x.opt.Phase != "" || x.opt.Batch != nil {
			text = "no kind of unit of the phase and batch size that were asked for " + strings.TrimPrefix(text, "no kind of unit ")
		}
		x.refuse(DifferentWork, text)
		return false
	}
	both := func(match func(k kind) bool) float64 { return x.base.time(match) + x.head.time(match) }
	inCommon := func(k kind) bool { return slices.Contains(common, k) }
	x.kind = slices.MaxFunc(slices.Clone(common), func(a, b kind) int {
		pa := both(func(k kind) bool { return k.phase == a.phase && inCommon(k) })
		pb := both(func(k kind) bool { return k.phase == b.phase && inCommon(k) })
		ta, tb := both(func(k kind) bool { return k == a }), both(func(k kind) bool { return k == b })
		// The later of equal ones would win: order them by their place in the list.
		return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(ta, tb), slices.Index(common, b)-slices.Index(common, a))
	})
	x.signature = x.sharedSignature()
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			v := newView(c, x.kind, x.signature)
			if v == nil {
				x.refuse(MissingMetric, fmt.Sprintf("%s does not say what the time of a unit of %s is made of; analyse it again with this version", c.Report.Trace.Name, x.kind))
				return false
			}
			s.views = append(s.views, v)
		}
	}
	return true
}

// sharedSignature is that of the work that both sides do equally, if some group has it; else none, and the main groups of
// the kind are compared.
func (x *Sides) sharedSignature() string {
	best, most := "", 0.0
	for i := range x.base.captures[0].groups {
		g := &x.base.captures[0].groups[i]
		if g.kind != x.kind {
			continue
		}
		sum, everywhere := 0.0, true
		for _, s := range []*side{x.base, x.head} {
			for _, c := range s.captures {
				at := slices.IndexFunc(c.groups, func(h group) bool { return h.kind == x.kind && h.Signature == g.Signature })
				if at < 0 {
					everywhere = false
					break
				}
				if _, ok := c.labels(at); !ok {
					everywhere = false
					break
				}
				sum += c.groups[at].Share
			}
		}
		if everywhere && sum > most {
			best, most = g.Signature, sum
		}
	}
	return best
}

func (k kind) String() string {
	text := k.phase
	if k.batch >= 0 {
		text += " " + strconv.FormatInt(k.batch, 10)
	}
	if k.tokens >= 0 {
		text += " of " + strconv.FormatInt(k.tokens, 10) + " tokens"
	}
	return text
}

func kindsText(kinds []kind) string {
	const most = 6
	var list []string
	for _, k := range kinds[:min(len(kinds), most)] {
		list = append(list, k.String())
	}
	if len(kinds) > most {
		list = append(list, fmt.Sprintf("%d more", len(kinds)-most))
	}
	if len(list) == 0 {
		return "none in all of its captures"
	}
	return strings.Join(list, ", ")
}
