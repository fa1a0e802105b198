package breakdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// newKinds returns the stories of kinds of unit that the base does not run, or of which one side runs only some of the
// kernels.
func (x *Parts) newKinds() []*story {
	var list []*story
	var only []newKind
	for _, k := range x.Chosen.Kinds {
		if k.Base != nil && k.Head != nil {
			continue
		}
		if s := x.variant(k); s != nil {
			if max(x.Base.Share(k.Base), x.Head.Share(k.Head)) >= namedKind {
				list = append(list, s)
			}
			continue
		}
		if k.Head == nil {
			continue
		}
		n, _, share := x.Head.OfKind(k.Head)
		switch gone := goneFor(x.Chosen.Kinds, x.Base, k); {
		case gone == nil:
			only = append(only, newKind{k.Name, n, comparison.Value(share)})
		case comparison.Value(share) >= namedKind:
			list = append(list, &story{what: x.unitsOf("head", n) + " are of another kind" + instead(x.Base, k, gone)})
		}
	}
	if text := onlyHead(only, func(n int64) string { return x.unitsOf("head", n) }); text != "" {
		list = append(list, &story{what: text})
	}
	return list
}

// variant tells of a kind of one side that does nearly the work of a kind of both; nil if there is none.
func (x *Parts) variant(k *pairing.Kind) *story {
	v := k.Variant(x.Base, x.Head)
	if v == nil {
		return nil
	}
	s := &story{parts: x.of(v, nil)}
	runs := runsOf(s.parts.Head) - runsOf(s.parts.Base)
	of, than, gone := "head", "base", k.Head == nil
	mine, row, theirs, like := x.Head, k.Head, x.Base, k.Like.Base
	if gone {
		of, than, runs = "base", "head", -runs
		mine, row, theirs, like = x.Base, k.Base, x.Head, k.Like.Head
	}
	n, mean, _ := mine.OfKind(row)
	ran, own, _ := theirs.OfKind(like)
	s.what = x.unitsOf(of, n) + " are of another kind, which run " + more(runs, "more", "fewer") + " kernels than those of " + than
	from, to, units := comparison.Value(own), comparison.Value(mean), float64(ran)*float64(n)/float64(max(1, x.allUnits(of)))
	if gone {
		from, to, units = to, from, float64(n)
	}
	if from > 0 && to > 0 {
		s.weight = units * (to - from)
		s.what += ", " + unit.Change(to/from-1) + " a unit"
	}
	return s
}

// allUnits counts the units of a side, of all kinds.
func (x *Parts) allUnits(of string) int64 {
	return lists.Sum(x.C.Mix, func(m comparison.Mix) int64 {
		if of == "base" {
			return m.BaseCount
		}
		return m.HeadCount
	})
}

// unitsOf says which part n units are of all that a side ran, on any GPU.
func (x *Parts) unitsOf(of string, n int64) string {
	on := ""
	if slices.ContainsFunc(x.Head.Captures, func(c *side.Capture) bool { return len(c.Report.Environment.GPUs) > 1 }) {
		on = " on all GPUs" // those that are compared are on one
	}
	return partOf(of, n, x.allUnits(of), on)
}

// partOf says that n of all units of a side are meant: "6 of head's 110 units on all GPUs", "half of the units".
func partOf(of string, n, all int64, on string) string {
	if part := float64(n) / float64(all); part > 0.4 && part < 0.6 {
		return "half of " + map[string]string{"base": "base's", "head": "the"}[of] + " units"
	}
	return fmt.Sprintf("%s of %s's %s%s", unit.Int(n), of, wording.Count(all, "unit"), on)
}

// newKind is a kind of unit that only the head runs.
type newKind struct {
	name  side.Kind
	n     int64
	share float64 // of the head's unit time
}

// onlyHead names the kinds that only the head runs and counts their units, those of small share and beyond the third
// together; "" if all are small.
func onlyHead(kinds []newKind, units func(n int64) string) string {
	lists.Sort(kinds, func(a, b newKind) int { return cmp.Compare(b.share, a.share) })
	var names []string
	var all, rest int64
	for i, k := range kinds {
		all += k.n
		if i < mostKinds-1 && k.share >= namedKind {
			names = append(names, unit.Int(k.n)+" of "+k.name.String())
		} else {
			rest += k.n
		}
	}
	switch left := int64(len(kinds) - len(names)); {
	case len(names) == 0:
		return ""
	case len(kinds) == 1:
		return fmt.Sprintf("%s are of another kind (%s), which base does not run", units(all), kinds[0].name)
	case left > 0:
		names = append(names, unit.Int(rest)+" more in "+wording.Count(left, "kind"))
	}
	return units(all) + " are of kinds that base does not run: " + strings.Join(names, ", ")
}

// runsOf returns the mean number of kernels in a unit.
func runsOf(s *side.Side) float64 {
	n, _ := s.Mean(func(v *side.View) (float64, bool) { return side.Mean(v.Kernels) })
	return n
}

// instead describes a kind whose batch size alone is another than that of a kind of the base.
func instead(base *side.Side, k, gone *pairing.Kind) string {
	n, _, _ := base.OfKind(gone.Base)
	return fmt.Sprintf(" (%s): batch %d where base ran %s of batch %d", k.Name, k.Name.Batch, wording.Count(n, "unit"),
		gone.Name.Batch)
}

// goneFor returns the kind with most time of the same work at another batch size that only the base runs, or nil.
func goneFor(kinds []*pairing.Kind, base *side.Side, k *pairing.Kind) *pairing.Kind {
	var gone *pairing.Kind
	for _, o := range kinds {
		if o.Head == nil && o.Name.Phase == k.Name.Phase && o.Name.Tokens == k.Name.Tokens && o.Name.Batch >= 0 &&
			k.Name.Batch >= 0 && (gone == nil || base.Share(o.Base) > base.Share(gone.Base)) {
			gone = o
		}
	}
	return gone
}

// goneKinds returns the stories of kinds that the head does not run and no new kind of the head replaces.
func goneKinds(kinds []*pairing.Kind, base *side.Side) []*story {
	var list []*story
	for _, k := range kinds {
		if k.Head != nil || k.Like != nil || base.Share(k.Base) < namedKind ||
			slices.ContainsFunc(kinds, func(o *pairing.Kind) bool { return o.Base == nil && goneFor(kinds, base, o) == k }) {
			continue
		}
		n, _, _ := base.OfKind(k.Base)
		what := fmt.Sprintf("base ran %s of %s, head none", wording.Count(n, "unit"), k.Name)
		if k.Name.Batch >= 0 {
			what = fmt.Sprintf("base ran %s at batch %d (%s), head none", wording.Count(n, "unit"), k.Name.Batch, k.Name)
		}
		list = append(list, &story{what: what})
	}
	return list
}
