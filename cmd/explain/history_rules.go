package main

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

// pastFlags name the history that a comparison is judged by.
type pastFlags struct {
	store, branch, repository string
}

func (f *pastFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.store, "history", "",
		"take noise floors and what was spent of budgets (since) from this history, a `FILE` or URL, see explain history")
	fl.StringVar(&f.branch, "history-branch", "main", "the `BRANCH` whose runs count, with --history")
	fl.StringVar(&f.repository, "history-repository", "", "the `REPOSITORY` whose runs count, with --history (default: any)")
}

// past is what a history says to a comparison.
type past struct {
	notes []string // for people
	base  []*report.Report
	near  string // what the base is to the commit that was asked for
}

// apply puts what the history says into the options of a comparison. base is the commit that head is compared with, empty
// where nobody knows it; want says that its reports are wanted.
func (f *pastFlags) apply(ctx context.Context, e *env, head *report.Report, base string, want bool, opt *diff.Options) (*past, error) {
	p := &past{}
	if f.store == "" {
		return p, nil
	}
	if _, err := os.Stat(f.store); errors.Is(err, os.ErrNotExist) && !strings.Contains(f.store, "://") {
		p.notes = append(p.notes, "History: "+f.store+" is not there yet; nothing was taken from it.")
		return p, nil
	}
	s, err := history.Open(ctx, f.store, history.Read)
	if err != nil {
		return nil, err
	}
	return p, errors.Join(f.from(ctx, s, head, base, want, opt, p), s.Close())
}

func (f *pastFlags) from(ctx context.Context, s *history.Store, head *report.Report, base string, want bool, opt *diff.Options, p *past) error {
	if opt.Policy == nil {
		opt.Policy = policy.Default()
	}
	resolve := func(name string) (string, error) { return gitfile.Resolve(ctx, ".", name) }
	if err := s.Spent(ctx, f.repository, f.branch, head, base, opt.Policy.Rules, resolve); err != nil {
		return err
	}
	w, err := s.Window(ctx, f.repository, f.branch, head)
	if err != nil {
		p.notes = append(p.notes, "History: "+err.Error()+".")
		return nil
	}
	if opt.Noise == nil {
		noise, text, err := w.Noise(ctx)
		if err != nil {
			return err
		}
		opt.Noise = noise
		p.notes = append(p.notes, "History, "+text+".")
	}
	p.notes = append(p.notes, w.Line())
	if !want {
		return nil
	}
	b, err := w.Base(base, time.Time{})
	if err != nil {
		p.notes = append(p.notes, "History: "+err.Error()+".")
		return nil
	}
	p.notes = append(p.notes, b.Notes...)
	p.near = "nearest run"
	if b.Exact {
		p.near = "merge base"
	}
	p.base, err = s.Reports(ctx, b.Runs)
	return err
}
