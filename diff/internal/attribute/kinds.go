package attribute

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// otherKinds says what happened to kinds of unit beside the attributed one: which got slower, which of the head's units do
// the work of another kind with some more, and which are of a kind that the base does not run.
func (x *Parts) otherKinds() string {
	texts := x.slowerKinds()
	var all int64
	for i := range x.C.Mix {
		all += x.C.Mix[i].HeadCount
	}
	for i := range x.Kinds {
		k := &x.Kinds[i]
		if k.Head == nil || k.Base != nil || all == 0 {
			continue
		}
		n, mean, share := x.Head.OfKind(k.Head)
		if comparison.Value(share) < namedKind {
			continue
		}
		what := fmt.Sprintf("%d of head's %d units", n, all)
		if part := float64(n) / float64(all); part > 0.4 && part < 0.6 {
			what = "half of the steps"
		}
		if k.Like == nil {
			texts = append(texts, fmt.Sprintf("%s are of another kind (%s), which base does not run", what, k.Name))
			continue
		}
		text := what + " do more than those of base: " + x.added(k)
		if _, own, _ := x.Base.OfKind(k.Like.Base); own != nil && mean != nil && *own > 0 {
			text += ", " + unit.Change(*mean / *own - 1) + " a unit"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// namedKind is the share of the head's unit time from which a kind that the base lacks is named.
const namedKind = 0.02

// slowerKinds names the other kinds of unit that got slower, the worst first.
func (x *Parts) slowerKinds() []string {
	var rows []*comparison.Row
	main := x.Kind.String()
	for i := range x.C.Primary {
		if r := &x.C.Primary[i]; r.Metric == "unit.time.mean" && r.Kind != main && r.Class == comparison.Regressed {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *comparison.Row) int {
		switch {
		case *a.Ratio > *b.Ratio:
			return -1
		case *a.Ratio < *b.Ratio:
			return 1
		}
		return 0
	})
	const most = 3
	var texts []string
	for _, r := range rows[:min(len(rows), most)] {
		text := fmt.Sprintf("units of %s are slower, %s (%s → %s)", r.Kind, unit.Change(*r.Ratio-1), match.NS(*r.Base),
			match.NS(*r.Head))
		if k := x.kernelOf(r.Kind); k != "" {
			text += ": " + k
		}
		texts = append(texts, text)
	}
	return texts
}

// kernelOf names the kernel of a kind that changed most, where it is half of the change.
func (x *Parts) kernelOf(name string) string {
	at := slices.IndexFunc(x.Kinds, func(k match.Kind) bool { return k.Name.String() == name && k.Both() })
	if at < 0 {
		return ""
	}
	y := x.Of(&x.Kinds[at])
	base, _ := y.Base.Merged()
	head, _ := y.Head.Merged()
	return largest(base, head)
}

// added names the kernel that most of the additional time of a kind goes to.
func (x *Parts) added(k *match.Kind) string {
	c := slices.IndexFunc(k.Head, func(at int) bool { return at >= 0 })
	v := side.NewView(x.Head.Captures[c], k.Head[c])
	if v == nil || !k.Like.Both() {
		return "their kernels are not known"
	}
	base, _ := x.Of(k.Like).Base.Merged()
	if text := largest(base, v.Work); text != "" {
		return text
	}
	return "many small kernels"
}

// largest is the kernel whose time per unit changed most, with its change; empty where none takes half of the change.
func largest(base, head []side.Work) string {
	var sum, most float64
	text := ""
	for _, p := range match.Kernels(base, head) {
		b, h := match.At(base, p.Base), match.At(head, p.Head)
		d := h.Time - b.Time
		sum += d
		if math.Abs(d) > math.Abs(most) {
			most = d
			text = fmt.Sprintf("kernel %s %s per unit", match.Shorten(match.PairName(base, head, p)), delta(d))
			if h.Count != b.Count {
				text += fmt.Sprintf(", run %.4g instead of %.4g times", h.Count, b.Count)
			}
		}
	}
	if math.Abs(most) < math.Abs(sum)/2 {
		return ""
	}
	return text
}

// stallText describes the few slow units of the head where the base has none of the sort: "1 in 8 units became 3 times as
// long".
func (x *Parts) stallText() string {
	worst := infer.Excess{}
	for _, v := range x.Head.Views {
		if e := infer.StallsOf(times(v)); e.Units > worst.Units {
			worst = e
		}
	}
	for _, v := range x.Base.Views {
		if e := infer.StallsOf(times(v)); 2*e.Units*worst.Of > worst.Units*e.Of {
			return ""
		}
	}
	switch {
	case worst.Units == 0:
		return ""
	case worst.Every > 0:
		return fmt.Sprintf("1 in %d units took %.2g times as long as the others", worst.Every, worst.Times)
	}
	return fmt.Sprintf("%d of %d units took %.2g times as long as the others", worst.Units, worst.Of, worst.Times)
}

func times(v *side.View) []float64 {
	list := make([]float64, len(v.Units))
	for i := range list {
		list[i] = v.Units[i].Time
	}
	return list
}
