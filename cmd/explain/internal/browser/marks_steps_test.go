package browser

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// stepFigure is a figure of a step with the marks that say what they are, and the width of all others together.
type stepFigure struct {
	ID    string
	Marks []stepMark
	Small float64
}

const readSteps = `[...document.querySelectorAll('figure.step')].map(f => ({ID: f.id, Small: [...f.querySelectorAll('.wide svg path')].reduce((sum, p) => sum + [...p.getAttribute('d').matchAll(/h([\d.]+)v/g)].reduce((n, m) => n + Number(m[1]), 0) / 10000 * p.ownerSVGElement.getBoundingClientRect().width, 0), Marks: [...f.querySelectorAll('.wide rect')].filter(r => r.querySelector('title')).map(r => {
	const b = r.getBoundingClientRect(), s = f.querySelector('.wide svg').getBoundingClientRect();
	return {X: b.left - s.left, W: b.width, Whole: s.width, Class: r.getAttribute('class'), Title: r.textContent};
})}))`

// span is a stretch of time, ns.
type span struct{ start, length float64 }

// held finds the span that a mark is at, to half a pixel.
func held(m *stepMark, spans []span, whole float64) (span, bool) {
	for _, s := range spans {
		if math.Abs(s.start/whole*m.Whole-m.X) <= tolerance && math.Abs(s.length/whole*m.Whole-m.W) <= tolerance {
			return s, true
		}
	}
	return span{}, false
}

// lengthOf is the length of the span that a mark is at, 0 where it is at none.
func lengthOf(spans []span, whole float64) func(m *stepMark) float64 {
	return func(m *stepMark) float64 { s, _ := held(m, spans, whole); return s.length }
}

// checkSteps holds every mark of every step that a report draws to its events, gaps and path, and finds a mark for each
// piece of work that takes a hundredth of the step.
func checkSteps(t *testing.T, ctx context.Context, steps *report.UnitSteps) (figures, marks int) {
	t.Helper()
	for _, f := range evaluate[[]stepFigure](t, ctx, readSteps) {
		which, number, _ := strings.Cut(strings.TrimPrefix(f.ID, "step-"), "-")
		k, err := strconv.Atoi(number)
		if err != nil || k >= len(steps.List) {
			t.Fatalf("the figure %s is of no step", f.ID)
		}
		for _, u := range steps.List[k].Shown {
			if u.Which == which {
				checkShown(t, &f, u)
				figures, marks = figures+1, marks+len(f.Marks)
			}
		}
	}
	return figures, marks
}

func checkShown(t *testing.T, f *stepFigure, u *report.UnitShown) {
	t.Helper()
	work, calls, ranges, gaps := u.Events()
	var all []span
	lists := [][]report.UnitEvent{work, calls, ranges}
	for i := range u.Others {
		lists = append(lists, u.Others[i].Events())
	}
	for _, list := range lists {
		for _, e := range list {
			all = append(all, span{float64(e.Start), float64(e.Duration)})
		}
	}
	for _, g := range gaps {
		at := float64(g.Start)
		for _, ns := range g.Causes {
			all = append(all, span{at, float64(ns)})
			at += float64(ns)
		}
	}
	at := 0.0
	for i := 0; i < len(u.Path); i += 2 {
		all = append(all, span{at, float64(u.Path[i+1])})
		at += float64(u.Path[i+1])
	}
	whole := float64(u.Duration)
	if len(u.Path) > 0 && at != whole {
		t.Errorf("%s: the path is %g ns long, the step %g", f.ID, at, whole)
	}
	for i := range f.Marks {
		if m := &f.Marks[i]; !strings.Contains(m.Title, " together") {
			if _, ok := held(m, all, whole); !ok {
				t.Errorf("%s: nothing is at %.1f, %.1f wide: %s", f.ID, m.X, m.W, m.Title)
			}
		}
	}
	sum := 0.0
	for _, s := range all {
		sum += s.length
	}
	lieOfStep(t, f, lengthOf(all, whole), sum, whole)
	for _, e := range work {
		found := float64(e.Duration) < whole/100
		for i := range f.Marks {
			_, ok := held(&f.Marks[i], []span{{float64(e.Start), float64(e.Duration)}}, whole)
			found = found || ok
		}
		if !found {
			t.Errorf("%s: the work at %d is not drawn", f.ID, e.Start)
		}
	}
}

// checkStepOfChange does so for the step of a comparison: kernels of both sides, and the change of the idle time before
// each.
func checkStepOfChange(t *testing.T, ctx context.Context, c *comparison.Comparison) (marks int) {
	t.Helper()
	for _, f := range evaluate[[]stepFigure](t, ctx, readSteps) {
		s := c.Step
		whole := max(s.Base, s.Head)
		var all []span
		for i := range s.Rows {
			r := &s.Rows[i]
			base, head := r.BaseKernel, r.HeadKernel
			if r.Kind != comparison.RowFolded {
				base, head = base+r.BaseHidden, head+r.HeadHidden
			}
			d := r.HeadGap - r.BaseGap
			start := max(r.HeadStart-max(d, 0), 0)
			switch {
			case r.Kind == comparison.RowEnd:
				start = max(min(r.HeadStart, whole-math.Abs(d)), 0)
			case r.HeadPosition == nil:
				start = min(r.BaseStart, whole-math.Abs(d))
			}
			all = append(all, span{r.BaseStart, base}, span{r.HeadStart, head}, span{start, math.Abs(d)})
		}
		for i := range f.Marks {
			m := &f.Marks[i]
			if _, ok := held(m, all, whole); !ok {
				t.Errorf("nothing is at %.1f, %.1f wide: %s", m.X, m.W, m.Title)
			}
		}
		sum := 0.0
		for _, s := range all {
			sum += s.length
		}
		lieOfStep(t, &f, lengthOf(all, whole), sum, whole)
		marks += len(f.Marks)
	}
	return marks
}

// checkFlameOfChange finds both sides of every box of the tree in the numbers of the flame; red is more, blue is less.
func checkFlameOfChange(t *testing.T, ctx context.Context, c *comparison.Comparison) int {
	t.Helper()
	for _, d := range evaluate[[]drawnChart](t, ctx, readCharts) {
		if d.ID != "step-flame" {
			continue
		}
		list := d.model().Series
		if len(list) != len(c.Step.Tree) {
			t.Fatalf("%d boxes are drawn, the tree has %d", len(list), len(c.Step.Tree))
		}
		for i, b := range c.Step.Tree {
			if v := list[i].Values; len(v) != 5 || v[3] != b.Base || v[4] != b.Head {
				t.Errorf("box %d has %v, want %g → %g", i, v, b.Base, b.Head)
			}
		}
		for i := range d.Marks {
			b, class := &c.Step.Tree[d.Marks[i].Series], d.Marks[i].Class
			if more := b.Head > b.Base; strings.HasPrefix(class, "more") && !more || strings.HasPrefix(class, "less") && more {
				t.Errorf("box %d, %g → %g, is %s", d.Marks[i].Series, b.Base, b.Head, class)
			}
		}
		return len(list)
	}
	return 0
}
