package mcp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// parts of a comparison that the tool changes can show.
var parts = []string{"numbers", "attribution", "kernels", "calls", "structure", "gates", "kinds", "environment", "unjudged"}

var rowsOf = map[string]func(*comparison.Comparison) []change{
	"numbers": numbers, "kernels": kernels, "calls": calls, "structure": structure, "gates": gates, "kinds": kinds,
	"attribution": func(c *comparison.Comparison) []change { return attribution(c, c.Attribution.Rows) },
	"environment": func(c *comparison.Comparison) []change {
		return lists.Map(c.Residue, func(r comparison.Residue) change {
			return change{Key: plain(r.Field), Base: plain(r.Base), Head: plain(r.Head)}
		})
	},
	"unjudged": func(c *comparison.Comparison) []change {
		return lists.Map(c.Unjudged, func(r comparison.Unjudged) change {
			return change{Key: plain(r.ID), Unit: r.Unit, Base: short(&r.Base), Head: short(&r.Head), Delta: short(&r.Delta),
				Ratio: short(r.Ratio), Text: plain(r.Text)}
		})
	},
}

// change is one row of a comparison in an answer.
type change struct {
	Key   string `json:"key"`
	Kind  string `json:"kind,omitempty"` // of an attribution row
	Unit  string `json:"unit,omitempty"`
	Base  any    `json:"base"`
	Head  any    `json:"head"`
	Delta any    `json:"delta,omitempty"`
	Ratio any    `json:"ratio,omitempty"` // head over base
	Share any    `json:"share_of_change,omitempty"`
	Class string `json:"class,omitempty"`
	// of the ratio
	Interval *interval `json:"interval,omitempty"`
	// of kernels and calls
	BaseRuns any    `json:"base_runs,omitempty"`
	HeadRuns any    `json:"head_runs,omitempty"`
	Paired   string `json:"paired_by,omitempty"`
	// of gates, and of rows where it says more than the numbers
	Rule    string `json:"rule,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Text    string `json:"text,omitempty"`
}

// interval is where a ratio truly lies, with a confidence of so much.
type interval struct {
	Low   any     `json:"low"`
	High  any     `json:"high"`
	Level float64 `json:"level"`
}

func intervalOf(i *comparison.Interval) *interval {
	if i == nil {
		return nil
	}
	return &interval{short(&i.Low), short(&i.High), i.Level}
}

func (s *Server) compare(ctx context.Context, a arguments) (string, error) {
	if a.History != "" {
		if a.File != "" || a.compares() {
			return "", errors.New("history asks about all of its nights: name it alone")
		}
		return s.history(ctx, a.History)
	}
	c, err := s.comparison(ctx, a)
	if err != nil {
		return "", err
	}
	var out answer
	out.put("verdict", c.Verdict)
	out.put("line", plain(diffdoc.OneLine(c)))
	out.put("cause", upTo(3*maxText, c.Cause))
	if c.Study != nil {
		out.put("study", plain(c.Study.About()+": "+c.Study.String()))
	}
	out.put("comparable", c.Comparable)
	out.put("identical", c.Identical)
	out.put("unit", map[string]any{"kind": c.Unit.Kind, "name": plain(c.Unit.Name), "phase": c.Unit.Phase,
		"base_n": c.Unit.BaseN, "head_n": c.Unit.HeadN})
	out.put("captures", map[string]any{"base": c.Base.Captures, "head": c.Head.Captures,
		"unreplicated": c.Unreplicated()})
	if c.Verdict != comparison.Fail {
		out.put(smallest, short(c.Resolution))
	}
	add(&out, "causes", causes(c.Answer.Rows), 0)
	add(&out, "numbers", numbers(c), 0)
	rows := lists.Filter(c.Attribution.Rows, func(r comparison.AttributionRow) bool {
		return r.Kind == comparison.KindClass || r.Kind == comparison.KindCause || largest(c, &r)
	})
	add(&out, "attribution", attribution(c, rows), 0)
	add(&out, "structure", structure(c), 0)
	add(&out, "warnings", lists.Map(c.Warnings, func(w comparison.Reason) any {
		return map[string]any{"code": w.Code, "text": plain(w.Text)}
	}), 0)
	add(&out, "differs_and_was_not_compared", lists.Map(c.Residue, func(r comparison.Residue) string {
		return plain(r.Field + ": " + r.Base + " → " + r.Head)
	}), 0)
	next := []Next{{"changes", s.sides(a, "kernels"), "kernel by kernel"}}
	if len(c.API) > 0 {
		next = append(next, Next{"changes", s.sides(a, "calls"), "what the host does: launches, blocking calls, copies"})
	}
	if !c.Comparable && len(c.Reasons) > 0 {
		next = []Next{{"doc", map[string]any{"name": string(c.Reasons[0].Code)}, "what the reason means"}}
	}
	return out.text(append(unknowns(c), unproved(c)...), next), nil
}

// smallest is the field with what a passed comparison would have failed.
const smallest = "smallest_loss_that_would_have_failed"

// unproved lists what a comparison with a verdict leaves unknown: noise between captures, and what a pass could see.
func unproved(c *comparison.Comparison) (list []Unknown) {
	if !c.Comparable || c.Identical {
		return nil
	}
	if c.Unreplicated() {
		list = append(list, Unknown{"noise between captures of one commit", "unreplicated",
			"one capture on a side: intervals are over the units inside it", "give several captures of each side"})
	}
	if c.Resolution == nil && (c.Verdict == comparison.Pass || c.Verdict == comparison.Warn) {
		list = append(list, Unknown{smallest, string(comparison.NothingMatched),
			"no rule of level error on the unit's time passed with a known limit", "explain policy test FILE --on TRACE"})
	}
	return list
}

func causes(rows []comparison.AnswerRow) []any {
	list := []any{}
	for _, r := range rows {
		with := lists.Map(r.With, plain)
		list = append(list, map[string]any{"delta_ns_per_unit": r.Delta, "part": r.Part, "what": plain(r.What), "where": plain(r.Where), "with": with})
	}
	return list
}

// history answers which levels changed, since when, and why.
func (s *Server) history(ctx context.Context, file string) (string, error) {
	path, err := s.path(file)
	if err != nil {
		return "", err
	}
	changes, text, err := s.Source.History(ctx, path)
	if err != nil {
		return "", err
	}
	for i := range changes {
		c := &changes[i]
		c.Number, c.Cause, c.Bisect, c.Causes = plain(c.Number), upTo(3*maxText, c.Cause), plain(c.Bisect), causes(c.Rows)
	}
	var out answer
	add(&out, "changes", changes, 0)
	add(&out, "said", lists.Map(slices.Collect(strings.Lines(text)), func(line string) string {
		return plain(strings.TrimRight(line, " \n"))
	}), 0)
	return out.text(nil, []Next{{"doc", map[string]any{"name": "change-points"}, "how a change is told from noise"}}), nil
}

// sides are the arguments of a call about the same comparison.
func (s *Server) sides(a arguments, part string) map[string]any {
	if a.File != "" {
		return map[string]any{"file": a.File, "part": part}
	}
	call := map[string]any{"base": []string(a.Base), "head": []string(a.Head), "part": part}
	if a.Phase != "" {
		call["phase"] = a.Phase
	}
	if a.Device != nil {
		call["device"] = *a.Device
	}
	if len(a.Study) > 0 {
		call["study"] = []string(a.Study)
	}
	return call
}

// unknowns lists what the comparison cannot decide: its reasons, and unsettled rows and gates.
func unknowns(c *comparison.Comparison) []Unknown {
	var list []Unknown
	add := func(what string, code comparison.Code, why, do string) {
		list = append(list, Unknown{plain(what), string(code), plain(why), do})
	}
	for _, r := range c.Reasons {
		add("the comparison", r.Code, r.Text, "")
	}
	for _, r := range c.Primary {
		if r.Class != comparison.Unsettled {
			continue
		}
		do := ""
		if r.NeedCaptures != nil {
			do = "capture " + string(encode(comparison.Value(r.NeedCaptures))) + " times a side"
		}
		add(report.MetricKey(r.Metric, r.Labels), r.Code, r.Why, do)
	}
	for _, g := range c.Gates {
		if g.Verdict == comparison.Inconclusive && c.Row(g.Metric) == nil {
			add("rule "+g.Rule+" on "+report.MetricKey(g.Metric, g.Labels), g.Code, g.Reason, "")
		}
	}
	return list
}

// largest reports whether a row is a kernel with at least a tenth of the change.
func largest(c *comparison.Comparison, r *comparison.AttributionRow) bool {
	share := shareOf(c, r.Delta)
	return r.Kind == comparison.KindKernel && share != nil && (*share >= 0.1 || *share <= -0.1)
}

func shareOf(c *comparison.Comparison, delta float64) *float64 {
	if c.Attribution.TotalDelta == 0 {
		return nil
	}
	return new(delta / c.Attribution.TotalDelta)
}

func numbers(c *comparison.Comparison) []change {
	return lists.Map(c.Primary, func(r comparison.Row) change {
		return change{Key: plain(report.MetricKey(r.Metric, r.Labels)), Kind: r.Kind, Unit: r.Unit, Base: short(r.Base),
			Head: short(r.Head), Delta: short(r.Delta), Ratio: short(r.Ratio), Class: string(r.Class),
			Interval: intervalOf(r.Interval)}
	})
}

func attribution(c *comparison.Comparison, list []comparison.AttributionRow) []change {
	return lists.Map(list, func(r comparison.AttributionRow) change {
		return change{Key: plain(r.ID), Kind: r.Kind, Unit: report.Nanoseconds, Base: short(&r.Base), Head: short(&r.Head),
			Delta: short(&r.Delta), Share: short(shareOf(c, r.Delta))}
	})
}

func structure(c *comparison.Comparison) []change {
	return lists.Map(c.Structure, func(r comparison.Structural) change {
		return change{Key: plain(r.ID), Base: short(r.Base), Head: short(r.Head), Class: string(r.Class), Text: plain(r.Text)}
	})
}

func kernels(c *comparison.Comparison) []change {
	return lists.Map(c.Kernels, func(k comparison.Kernel) change {
		key, note := name(cmp.Or(k.BaseShort, k.BaseName)), plain(k.Note) // as displayed if that is known
		if head := name(cmp.Or(k.HeadShort, k.HeadName)); head != key {
			key = strings.Trim(key+" → "+head, " →")
		}
		return change{Key: key, Unit: report.Nanoseconds, Base: short(k.Base), Head: short(k.Head), Delta: short(&k.Delta),
			Ratio: short(k.Ratio), Class: string(k.Class), BaseRuns: short(k.BaseCount), HeadRuns: short(k.HeadCount),
			Paired: k.PairedBy, Text: note, Interval: intervalOf(k.Interval)}
	})
}

func name(known *string) string { return plain(report.ValueOr(known, "")) }

func calls(c *comparison.Comparison) []change {
	return lists.Map(c.API, func(r comparison.API) change {
		return change{Key: plain(r.Name), Kind: r.Kind, Unit: report.Nanoseconds, Base: short(r.BaseTime), Head: short(r.HeadTime),
			Ratio: short(r.Ratio), Class: string(r.Class), BaseRuns: short(r.BaseCount), HeadRuns: short(r.HeadCount),
			Text: "ratio is of the mean time of one call"}
	})
}

func gates(c *comparison.Comparison) []change {
	worst := []comparison.Verdict{comparison.Fail, comparison.Inconclusive, comparison.Warn, comparison.Error, comparison.Pass}
	list := slices.Clone(c.Gates)
	lists.InOrder(list, worst, func(g comparison.Gate) comparison.Verdict { return g.Verdict })
	return lists.Map(list, func(g comparison.Gate) change {
		return change{Key: plain(report.MetricKey(g.Metric, g.Labels)), Rule: plain(g.Rule), Verdict: string(g.Verdict),
			Base: short(g.Base), Head: short(g.Head), Ratio: short(g.Ratio), Class: string(g.Class), Text: plain(g.Reason)}
	})
}

func kinds(c *comparison.Comparison) []change {
	return lists.Map(c.Mix, func(m comparison.Mix) change {
		base, head := float64(m.BaseCount), float64(m.HeadCount)
		return change{Key: kindKey(&m), Unit: report.Nanoseconds, Base: short(m.BaseTime), Head: short(m.HeadTime),
			Ratio: short(m.Ratio), BaseRuns: short(&base), HeadRuns: short(&head)}
	})
}

func (s *Server) changes(ctx context.Context, a arguments) (string, error) {
	c, err := s.comparison(ctx, a)
	if err != nil {
		return "", err
	}
	rows := rowsOf[a.Part]
	if rows == nil {
		return "", &rpcError{codeParams, "part is one of " + strings.Join(parts, ", ")}
	}
	list := rows(c)
	var out answer
	out.put("part", a.Part)
	addMatching(&out, "rows", list, a, func(row change) string { return row.Key + " " + row.Text + " " + row.Rule })
	var unknown []Unknown
	if len(list) == 0 {
		unknown = unknowns(c)
	}
	return out.text(unknown, []Next{{"doc", map[string]any{"name": "diff"}, "how to read a comparison"}}), nil
}

func kindKey(m *comparison.Mix) string {
	key := m.Phase
	if m.Batch != nil {
		key += " batch=" + string(encode(comparison.Value(m.Batch)))
	}
	if m.Tokens != nil {
		key += " tokens=" + string(encode(comparison.Value(m.Tokens)))
	}
	return plain(key)
}
