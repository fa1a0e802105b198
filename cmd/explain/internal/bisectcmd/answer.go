package bisectcmd

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/bisect"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/history"
)

// kept is the content of bisect.json.
type kept struct {
	Schema   string   `json:"schema"`
	Settled  bool     `json:"settled"`
	Culprits []string `json:"culprits"` // more than one if skipped commits cannot be told apart from it
	bisect.Result
	Cause    string     `json:"cause"`
	Captures []captured `json:"captures"`
}

// interrupted prints what an interrupted search found, and keeps its captures.
func (b *bisection) interrupted() error {
	res := b.search.Result()
	where := "nothing was written: --out keeps them"
	if b.out != "" {
		if err := b.keep(context.WithoutCancel(b.cmd.Context()), b.kept(res)); err != nil {
			return err
		}
		where = b.out + " holds them"
	}
	return fmt.Errorf("interrupted after %s; %s; %s", wording.Count(b.search.Captures(), "capture"), b.likely(res), where)
}

// answer prints the result.
func (b *bisection) answer() error {
	res := b.search.Result()
	out := b.kept(res)
	captures := wording.Count(b.search.Captures(), "capture")
	var text cmdenv.Lines
	switch {
	case res.Nothing():
		text.Add("Nothing changed between %s and %s, as far as %s show: the ends differ by less than %s", b.short(0),
			b.short(b.last), captures, unit.Percent(math.Abs(res.Ends)+res.Within))
	case res.Creeps():
		text.Add("Several commits between %s and %s changed a little each, %s in all, with a probability of %s, by %s",
			b.short(0), b.short(b.last), unit.Change(res.Ends), unit.Percent(res.Several), captures)
	default:
		for k := res.First; k <= res.Last; k++ {
			text.Add("%s %s", b.commits[k].SHA, b.commits[k].Subject)
		}
		word := "found"
		if !out.Settled {
			word = "not settled"
		}
		text.Add("%s, with a probability of %s, by %s", word, unit.Percent(res.Probability), captures)
		c, err := b.compare(res)
		if err != nil {
			return err
		}
		if c != nil {
			out.Cause = causeOf(c)
			text.Add("%s", out.Cause)
		}
	}
	if b.out != "" {
		if err := b.keep(b.cmd.Context(), out); err != nil {
			return err
		}
	}
	if err := text.To(b.env.Out); err != nil {
		return err
	}
	if !out.Settled || res.Nothing() {
		return cmdenv.Exit(cmdenv.Inconclusive)
	}
	return nil
}

// causeOf returns the cause of the change. The search has established the change, even if these captures are too few to
// settle it.
func causeOf(c *comparison.Comparison) string {
	if !c.Comparable || len(c.Answer.Rows) == 0 {
		return c.Cause
	}
	a := c.Answer
	if a.Direction, a.Notes = comparison.Slower, nil; a.Change != nil && *a.Change < 0 {
		a.Direction = comparison.Faster
	}
	return a.String()
}

// compare compares the captures before the culprit with those from it on.
func (b *bisection) compare(res bisect.Result) (*comparison.Comparison, error) {
	var base, head []*report.Report
	for _, c := range b.log {
		switch {
		case c.report == nil:
		case c.Number < res.First:
			base = append(base, c.report)
		case c.Number >= res.Last:
			head = append(head, c.report)
		}
	}
	if len(base) == 0 || len(head) == 0 {
		return nil, nil
	}
	return diff.Compare(base, head, diff.Options{Version: b.env.Version})
}

// keep writes bisect.json and the reports to --out.
func (b *bisection) keep(ctx context.Context, out *kept) error {
	files := []atomicfile.Item{{Name: "bisect.json", Write: func(w io.Writer) error { return cmdenv.JSON(w, out) }}}
	for i, c := range b.log {
		if c.report != nil {
			name := fmt.Sprintf("reports/%02d-%s.json", i+1, history.Short(c.Commit))
			files = append(files, atomicfile.Item{Name: name, Write: func(w io.Writer) error { return report.Write(w, c.report) }})
		}
	}
	return atomicfile.Folder(ctx, b.out, files)
}
