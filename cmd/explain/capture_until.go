package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/command"
	"github.com/nsys-llm/explain/cmd/explain/internal/record"
	"github.com/nsys-llm/explain/cmd/explain/internal/whole"
	"github.com/nsys-llm/explain/diff/sequential"
)

// untilFlags make a pair go on until it is decided.
type untilFlags struct {
	on        bool
	budget    time.Duration
	cooldown  time.Duration
	tolerance string
}

func (f *untilFlags) register(fl *pflag.FlagSet) {
	fl.BoolVar(&f.on, "until-decided", false, "with --pair: capture pairs until it is known whether the head's step is slower, at most --repeat (default 100)")
	fl.DurationVar(&f.budget, "budget", 30*time.Minute, "with --until-decided: begin no pair that would end after this `TIME`")
	fl.DurationVar(&f.cooldown, "cooldown", 0, "with --pair: wait this `TIME` between captures, so that the GPU cools down")
	fl.StringVar(&f.tolerance, "tolerance", "3%", "with --until-decided: a step that got slower by this `SHARE` or less is as fast as before")
}

// mostPairs is where --until-decided ends whatever is known then.
const mostPairs = 100

// decisionsFile is the log of what was known after each pair.
const decisionsFile = "comparison/decisions.json"

// decider decides pairs.
type decider struct {
	test  *sequential.Test
	kind  string // main kind of unit of the first base
	began time.Time
	took  time.Duration // of the longest pair
	last  time.Time     // end of the pair before
	until *untilFlags
	out   string // folder
	say   func(string)
}

// decide makes the session ask after each pair.
func (f *untilFlags) decide(r *record.Session) (*decider, error) {
	switch {
	case !f.on:
		return nil, nil
	case f.budget <= 0 || f.cooldown < 0:
		return nil, usagef("--budget is a time above 0, and --cooldown none below 0")
	}
	share, err := command.Share(f.tolerance)
	if err != nil {
		return nil, usagef("--tolerance %s: a share such as 3%%", f.tolerance)
	}
	test, err := sequential.New(sequential.Options{Tolerance: math.Log1p(share), Alpha: 0.05})
	if err != nil {
		return nil, usagef("--tolerance %s: %w", f.tolerance, err)
	}
	d := &decider{test: test, until: f, out: r.Out, say: r.Say, began: time.Now(), last: time.Now()}
	r.Decide = d.pair
	return d, nil
}

// pair takes a pair, and says whether it was the last.
func (d *decider) pair(base, head *report.Report) (bool, error) {
	b, kind, err := mainStep(base, d.kind)
	if err != nil {
		return false, fmt.Errorf("base: %w", err)
	}
	h, _, err := mainStep(head, kind)
	if d.kind = kind; err != nil {
		return false, fmt.Errorf("head: %w", err)
	}
	s, err := d.test.Add(b, h)
	if err != nil {
		return false, err
	}
	now := time.Now()
	d.took, d.last = max(d.took, now.Sub(d.last)), now
	d.say(fmt.Sprintf("Pair %d: %s → %s, %s; so far %s: %s", s.Pair, unit.Format(b, report.Nanoseconds), unit.Format(h, report.Nanoseconds),
		unit.Change(s.Ratio-1), unit.Change(s.Mean-1), s.Answer))
	if s.Answer != sequential.Undecided {
		return true, nil
	}
	if left := d.until.budget - now.Sub(d.began); left < d.took {
		d.say(fmt.Sprintf("The budget of %s has no room for another pair", d.until.budget))
		return true, nil
	}
	return false, nil
}

// answer writes the log and is the exit code of what was decided, as an error.
func (d *decider) answer() error {
	answer := sequential.Undecided
	if n := len(d.test.Log); n > 0 {
		answer = d.test.Log[n-1].Answer
	}
	err := whole.File(filepath.Join(d.out, decisionsFile), func(w io.Writer) error {
		return command.JSON(w, struct {
			Schema    string            `json:"schema"`
			Metric    string            `json:"metric"`
			Kind      string            `json:"kind"`
			Tolerance string            `json:"tolerance"`
			Budget    string            `json:"budget"`
			Answer    sequential.Answer `json:"answer"`
			Steps     []sequential.Step `json:"steps"`
		}{"explain.decisions/1", "unit.time.p50", d.kind, d.until.tolerance, d.until.budget.String(), answer, append([]sequential.Step{}, d.test.Log...)})
	})
	if err != nil {
		return err
	}
	d.say(fmt.Sprintf("After %s: %s; %s has every decision", command.Counted(len(d.test.Log), "pair"), answer, filepath.Join(d.out, decisionsFile)))
	switch answer {
	case sequential.Slower:
		return exitCode(exitFail)
	case sequential.Undecided:
		return exitCode(exitInconclusive)
	}
	return nil
}
