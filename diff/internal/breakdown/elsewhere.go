package breakdown

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// maxElsewhere limits what is listed from outside the compared units.
const maxElsewhere = 2

// leastBlocking is how often a capture must make a blocking call before it is named: a program makes one as it ends.
const leastBlocking = 3

// elsewhere names work that only the head does, outside the compared units: a kernel or a blocking call in steps of
// another kind, or between steps. It looks at the captures as a whole.
func (x *Parts) elsewhere(text string) string {
	base, rest := kernelShares(x.Base)
	head, _ := kernelShares(x.Head)
	names := lists.Filter(slices.Sorted(maps.Keys(head)), func(name string) bool {
		_, before := base[name]
		return !before && head[name] >= namedShare && head[name] > rest && !replaces(x.C.Kernels, name) &&
			!strings.Contains(text, x.names.shown(name))
	})
	lists.Falling(names, func(name string) float64 { return head[name] })
	if x.C.Depth != comparison.DepthKernel {
		names = nil // CUDA graphs hide kernels of one side
	}
	var texts []string
	for _, name := range names[:min(len(names), maxElsewhere)] {
		texts = append(texts, fmt.Sprintf("new kernel %s, %s of all kernel time", x.names.shown(name), unit.Percent(head[name])))
	}
	before := blockingCalls(x.Base, 1)
	for _, name := range blockingCalls(x.Head, max(leastBlocking, float64(x.C.Unit.HeadN)/16)) {
		if !slices.Contains(before, name) && !strings.Contains(text, name) && len(texts) < 2*maxElsewhere {
			texts = append(texts, "new blocking call "+name)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "in the whole capture " + strings.Join(texts, ", ")
}

// replaces reports whether a kernel of the head replaces one of the base.
func replaces(kernels []comparison.Kernel, name string) bool {
	return slices.ContainsFunc(kernels, func(k comparison.Kernel) bool {
		return k.HeadName != nil && comparison.Value(k.HeadName) == name && k.BaseName != nil
	})
}

// kernelShares returns each kernel's share of all kernel time, 0..1, averaged over the captures of a side. rest is the
// largest share that a kernel not named in the reports can have; 0 if they name all.
func kernelShares(s *side.Side) (shares map[string]float64, rest float64) {
	shares = map[string]float64{}
	for _, c := range s.Captures {
		t := c.Table("kernels", "kernels")
		least := 0.0
		for i := range t.Entries() {
			if share, ok := t.Num(i, "share"); ok {
				shares[t.Str(i, "kernel_name")] += share / float64(len(s.Captures))
				least = share
			}
		}
		if t.Entries() < t.Len() {
			rest = max(rest, least)
		}
	}
	return shares, rest
}

// blockingCalls returns the names, sorted, of a side's calls that wait for the GPU and that a capture makes at least
// least times.
func blockingCalls(s *side.Side, least float64) []string {
	var names []string
	for _, c := range s.Captures {
		for _, m := range c.Metrics("sync.count") {
			if name := m.Labels["api"]; name != "" && len(m.Labels) == 1 && comparison.Value(m.Value) >= least {
				lists.Place[int32](&names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// ofEvidence is the result of a comparison of evidence: which numbers got worse, better, and are not settled.
func ofEvidence(c *comparison.Comparison) (a comparison.Answer) {
	const changed = comparison.Class("changed")
	texts := map[comparison.Class][]string{}
	for _, r := range c.Primary {
		name := r.Metric
		if kernel := r.Labels["kernel"]; kernel != "" {
			name += " of " + wording.Shorten(kernel, 60)
		}
		if r.Delta != nil {
			name += " " + comparison.ChangeText(&r)
		}
		class := r.Class
		if c.Study != nil && class != comparison.Same && class != comparison.Unsettled {
			class = changed // neither way is meant to be better
		}
		texts[class] = append(texts[class], name)
	}
	if row, _ := c.Headline(); row != nil {
		a.OfRow(row, c.Verdict)
	}
	const most = 3
	for _, part := range []struct {
		class comparison.Class
		word  string
	}{{changed, "changed: "}, {comparison.Regressed, "worse: "}, {comparison.Improved, "better: "}, {comparison.Unsettled, "not settled: "}} {
		t := texts[part.class]
		if len(t) == 0 || part.class == comparison.Unsettled && c.Verdict == comparison.Pass {
			continue
		}
		a.Notes = append(a.Notes, part.word+wording.Some(t[:min(len(t), most)], len(t)))
	}
	if len(a.Notes) == 0 {
		open := len(texts[comparison.Unsettled])
		text := "no change beyond noise in " + wording.Count(len(c.Primary)-open, "number")
		if open > 0 {
			text += fmt.Sprintf("; %d not settled", open)
		}
		a.Notes = []string{text}
	}
	return a
}
