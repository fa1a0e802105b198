package historycmd

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate/gitfile"
	"github.com/nsys-llm/explain/gate/history"
)

// What diff and gate take from a history: noise floors, a base, what was spent of budgets, the newest runs in a line.

// Flags name the history that a comparison is judged by.
type Flags struct {
	Store              string // empty for none
	branch, repository string
}

// Register adds the flags to a command.
func (f *Flags) Register(fl *pflag.FlagSet) {
	fl.StringVar(&f.Store, "history", "",
		"take noise floors and the spent part of budgets (since) from this history, a `FILE` or URL, see explain history")
	fl.StringVar(&f.branch, "history-branch", "main", "the `BRANCH` whose runs count, with --history")
	fl.StringVar(&f.repository, "history-repository", "", "the `REPOSITORY` whose runs count, with --history (default: any)")
}

// Said is what a comparison takes from a history.
type Said struct {
	Notes []string // for people
	Base  []*report.Report
	Near  string // relation of Base to the requested commit
}

// Apply adds to the options of a comparison what the history knows. base is the commit that head is compared with,
// empty if unknown; want asks for its reports.
func (f *Flags) Apply(
	ctx context.Context, head *report.Report, base string, want bool, opt *diff.Options,
) (*Said, error) {
	p := &Said{}
	if f.Store == "" {
		return p, nil
	}
	if _, err := os.Stat(f.Store); errors.Is(err, os.ErrNotExist) && !strings.Contains(f.Store, "://") {
		p.Notes = append(p.Notes, "History: "+f.Store+" does not exist yet, so it is not used.")
		return p, nil
	}
	return p, history.With(ctx, f.Store, history.Read, func(s *history.Store) error {
		return f.from(ctx, s, head, base, want, opt, p)
	})
}

func (f *Flags) from(
	ctx context.Context, s *history.Store, head *report.Report, base string, want bool, opt *diff.Options, p *Said,
) error {
	if opt.Policy == nil {
		opt.Policy = policy.Default()
	}
	resolve := func(name string) (string, error) { return gitfile.Resolve(ctx, ".", name) }
	if err := history.Spent(ctx, s, f.repository, f.branch, head, base, opt.Policy.Rules, resolve); err != nil {
		return err
	}
	w, err := history.NewWindow(ctx, s, f.repository, f.branch, head)
	if err != nil {
		p.Notes = append(p.Notes, "History: "+err.Error()+".")
		return nil
	}
	if opt.Noise == nil {
		noise, text, err := w.Noise(ctx)
		if err != nil {
			return err
		}
		opt.Noise = noise
		p.Notes = append(p.Notes, "History, "+text+".")
	}
	p.Notes = append(p.Notes, w.Line())
	if !want {
		return nil
	}
	b, err := w.Base(base, time.Time{})
	if err != nil {
		p.Notes = append(p.Notes, "History: "+err.Error()+".")
		return nil
	}
	p.Notes = append(p.Notes, b.Notes...)
	p.Near = "nearest run"
	if b.Exact {
		p.Near = "merge base"
	}
	p.Base, err = s.Reports(ctx, b.Runs)
	return err
}
