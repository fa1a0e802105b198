package side

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Mean of a summary; ok is false where the report has none.
func Mean(s *report.Summary) (float64, bool) {
	if s == nil {
		return 0, false
	}
	return s.Mean, true
}

// Merged are the kernels of a side: means over its captures, in the order of the first capture that has them. A kernel
// that a capture does not have counts as none there.
func (s *Side) Merged() (list []Work, others Work) {
	others = Work{Name: "(others)", Position: -1}
	n := float64(len(s.Views))
	for _, v := range s.Views {
		for i := range v.Work {
			w := v.Work[i]
			w.Count, w.Time, w.Alone = w.Count/n, w.Time/n, w.Alone/n
			at := slices.IndexFunc(list, func(x Work) bool { return x.Name == w.Name })
			if at < 0 {
				list = append(list, w)
				continue
			}
			x := &list[at]
			x.Count, x.Time, x.Alone = x.Count+w.Count, x.Time+w.Time, x.Alone+w.Alone
			if x.Position < 0 {
				x.Position = w.Position
			}
			if x.Geometry != w.Geometry {
				x.Geometry = ""
			}
		}
		others.Count += v.Others.Count / n
		others.Time += v.Others.Time / n
		others.Alone += v.Others.Alone / n
	}
	return list, others
}

// MergedCategories are the categories of a side, likewise.
func (s *Side) MergedCategories() []Work {
	var list []Work
	n := float64(len(s.Views))
	for _, v := range s.Views {
		for i := range v.categories {
			w := v.categories[i]
			w.Count, w.Time, w.Alone = w.Count/n, w.Time/n, w.Alone/n
			at := slices.IndexFunc(list, func(x Work) bool { return x.Name == w.Name })
			if at < 0 {
				list = append(list, w)
				continue
			}
			list[at].Count += w.Count
			list[at].Time += w.Time
			list[at].Alone += w.Alone
		}
	}
	return list
}
