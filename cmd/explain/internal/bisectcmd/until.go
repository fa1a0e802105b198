package bisectcmd

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/sequential"
)

// Until are the flags that repeat a pair until it is decided.
type Until struct {
	On        bool
	budget    time.Duration
	Cooldown  time.Duration // between two captures
	tolerance string
}

// Register adds the flags to a command that captures pairs.
func (f *Until) Register(fl *pflag.FlagSet) {
	fl.BoolVar(&f.On, "until-decided", false, "with --pair: capture pairs until it is known whether the head's step is slower, at most --repeat (default 100)")
	fl.DurationVar(&f.budget, "budget", 30*time.Minute, "with --until-decided: begin no pair that would end after this `TIME`")
	fl.DurationVar(&f.Cooldown, "cooldown", 0, "with --pair: wait this `TIME` between captures, so that the GPU cools down")
	fl.StringVar(&f.tolerance, "tolerance", "3%", "with --until-decided: the head fails if it is certainly slower, on average by more than this `SHARE`")
}

// MostPairs is the number of pairs after which --until-decided stops, decided or not.
const MostPairs = 100

// decisionsFile is the log of the state after each pair.
const decisionsFile = "comparison/decisions.json"

// Decider decides after how many pairs to stop.
type Decider struct {
	test  *sequential.Test
	kind  string // main kind of unit of the first base
	began time.Time
	took  time.Duration // of the longest pair so far
	last  time.Time     // end of the previous pair
	until *Until
	out   string // output folder
	say   func(string)
}

// Decider decides on pairs in the folder out; nil without --until-decided.
func (f *Until) Decider(out string, say func(string)) (*Decider, error) {
	switch {
	case !f.On:
		return nil, nil
	case f.budget <= 0 || f.Cooldown < 0:
		return nil, usage.Errorf("--budget is a time above 0, and --cooldown none below 0")
	}
	share, err := cmdenv.Share(f.tolerance)
	if err != nil {
		return nil, usage.Errorf("--tolerance %s: a share such as 3%%", f.tolerance)
	}
	test, err := sequential.New(sequential.Options{Tolerance: math.Log1p(share), Alpha: 0.05})
	if err != nil {
		return nil, usage.Errorf("--tolerance %s: %w", f.tolerance, err)
	}
	return &Decider{test: test, until: f, out: out, say: say, began: time.Now(), last: time.Now()}, nil
}

// Pair adds a pair, and reports whether it was the last.
func (d *Decider) Pair(base, head *report.Report) (bool, error) {
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
	d.say(fmt.Sprintf("Pair %d: %s → %s, %s; so far %s: %s", s.Pair, unit.Format(b, report.Nanoseconds),
		unit.Format(h, report.Nanoseconds),
		unit.Change(s.Ratio-1), unit.Change(s.Mean-1), s.Answer))
	if s.Answer != sequential.Undecided {
		return true, nil
	}
	if left := d.until.budget - now.Sub(d.began); left < d.took {
		d.say(fmt.Sprintf("The budget of %s is too short for another pair", d.until.budget))
		return true, nil
	}
	return false, nil
}

// Answer writes the log, if there is a pair, and returns the decision as an exit code, as an error.
func (d *Decider) Answer() error {
	n := len(d.test.Log)
	if n == 0 {
		return cmdenv.Exit(cmdenv.Inconclusive)
	}
	answer := d.test.Log[n-1].Answer
	err := atomicfile.File(filepath.Join(d.out, decisionsFile), atomicfile.Any, func(w io.Writer) error {
		return cmdenv.JSON(w, struct {
			Schema    string            `json:"schema"`
			Metric    string            `json:"metric"`
			Kind      string            `json:"kind"`
			Tolerance string            `json:"tolerance"`
			Budget    string            `json:"budget"`
			Answer    sequential.Answer `json:"answer"`
			Steps     []sequential.Step `json:"steps"`
		}{"explain.decisions/1", "unit.time.p50", d.kind, d.until.tolerance, d.until.budget.String(), answer,
			d.test.Log})
	})
	if err != nil {
		return err
	}
	d.say(fmt.Sprintf("After %s: %s; %s has every decision", wording.Count(n, "pair"), answer,
		filepath.Join(d.out, decisionsFile)))
	switch answer {
	case sequential.Slower:
		return cmdenv.Exit(cmdenv.Fail)
	case sequential.Undecided:
		return cmdenv.Exit(cmdenv.Inconclusive)
	}
	return nil
}
