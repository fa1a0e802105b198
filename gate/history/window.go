package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
)

// Window holds the newest runs of a branch, for judging a change: the runs of one workload in one environment since the
// level last changed.
type Window struct {
	main  *Series // of StepTime and the main kind of the head
	level *Level  // of main, in the environment of the head
	store *Store
}

// Numbers of runs.
const (
	leastForNoise = 5
	mostForNoise  = 30
	sparkNights   = 30
)

// NewWindow finds the runs of the head's workload on a branch. It is an error if there are none.
func NewWindow(ctx context.Context, s *Store, repository, branch string, head *report.Report) (*Window, error) {
	id, err := workloadIn(ctx, s, repository, branch, head)
	if err != nil {
		return nil, err
	}
	w := &Window{store: s}
	all, err := s.Series(ctx, Filter{Repository: repository, Branch: branch, Workload: id}, StepTime)
	if err != nil {
		return nil, err
	}
	kind := MainKind(head)
	of := lists.Filter(all, func(x Series) bool { return x.Kind == kind && len(x.Nights) > 0 })
	if len(of) == 0 {
		return nil, fmt.Errorf("the history has no run of the kind of step that the head mostly has (%s)", kind)
	}
	w.main = &of[len(of)-1]
	same := *w.main
	epoch := epochOf(head, nil)
	same.Nights = slices.DeleteFunc(slices.Clone(same.Nights), func(n Night) bool { return !epoch.agrees(n.about) })
	if len(same.Nights) > 0 {
		w.level = same.Level(same.Nights[len(same.Nights)-1].Time)
	}
	return w, nil
}

// workloadIn returns the workload of a report in the store. It ignores names of workloads: no report has them.
func workloadIn(ctx context.Context, s *Store, repository, branch string, r *report.Report) (string, error) {
	all, err := s.Workloads(ctx)
	if err != nil {
		return "", err
	}
	want := WorkloadOf(r, "")
	var ids []string
	nearest := ""
	for id, w := range all {
		if d := w.without("workload").Differs(want); d != "" {
			nearest = d
			continue
		}
		runs, err := s.Runs(ctx, Filter{Repository: repository, Branch: branch, Workload: id, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(runs) > 0 {
			ids = append(ids, id)
		}
	}
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return "", fmt.Errorf("the history has several workloads that differ only by name: %s", strings.Join(ids, ", "))
	case nearest != "" && len(all) == 1:
		return "", fmt.Errorf("the history has no run of this workload on %s: %s", branch, nearest)
	}
	return "", fmt.Errorf("the history has no run of this workload on %s", branch)
}

// Noise returns the noise between the newest runs at the present level, in the environment of the head; nil if they are
// too few. The text says how many runs it is from.
func (w *Window) Noise(ctx context.Context) (*diff.Noise, string, error) {
	n := 0
	if w.level != nil {
		n = len(w.level.Nights)
	}
	if n < leastForNoise {
		return nil, fmt.Sprintf("noise: %s at the present level in this environment, and %d are needed: the floors are the usual ones",
			wording.Count(n, "run"), leastForNoise), nil
	}
	nights := w.level.Nights[max(0, n-mostForNoise):]
	runs := lists.Map(nights, func(n Night) Run { return n.Runs[0] })
	reports, err := w.store.Reports(ctx, runs)
	if err != nil {
		return nil, "", err
	}
	noise, err := diff.MeasureRuns(reports)
	if err != nil {
		return nil, "", err
	}
	return noise, fmt.Sprintf("noise: from %s, %s to %s", wording.Count(len(runs), "run"), nights[0].Time.Format(time.DateOnly),
		nights[len(nights)-1].Time.Format(time.DateOnly)), nil
}

// Line returns the newest nights as one line of text.
func (w *Window) Line() string {
	return fmt.Sprintf("%s: %s", w.main.Of(), w.main.Line(sparkNights))
}

// Base is what a change is compared with.
type Base struct {
	Runs  []Run
	Exact bool     // the runs are of the requested commit
	Notes []string // how the base compares with its window, and what is wrong with it
}

// staleAfter is the age of a baseline, relative to the newest run of the branch, beyond which a note mentions it.
const staleAfter = 14 * 24 * time.Hour

// Base returns the runs of a commit. If the history has none, it returns those of the newest night. Only runs of the
// head's workload count.
func (w *Window) Base(commit string) *Base {
	nights := w.main.Nights
	newest := &nights[len(nights)-1]
	of := lists.Filter(nights, func(n Night) bool { return n.Commit == commit })
	b := &Base{Exact: len(of) > 0}
	if !b.Exact {
		of = []Night{*newest}
	}
	night := &of[len(of)-1]
	for _, n := range of {
		b.Runs = append(b.Runs, n.Runs...)
	}
	if !b.Exact {
		b.Notes = append(b.Notes, fmt.Sprintf("The history has no run of the base %s; compared with %s of %s.", Short(commit), Short(night.Commit),
			night.Time.Format(time.DateOnly)))
	}
	if old := newest.Time.Sub(night.Time); old > staleAfter {
		b.Notes = append(b.Notes, fmt.Sprintf("The baseline is %d days older than the newest run of the branch.", int(old.Hours()/24)))
	}
	if l := w.main.Level(night.Time); l != nil && len(l.Nights) >= leastForNoise {
		off := night.followed()/l.Value - 1
		text := fmt.Sprintf("The base lies %s from the median of its window of %s", unit.Change(off), wording.Count(len(l.Nights), "run"))
		if l.Spread > 0 && math.Abs(math.Log1p(off)) > 3*l.Spread {
			text += ", which is more than three times its noise: it may be an odd run"
		}
		b.Notes = append(b.Notes, text+".")
	}
	return b
}

// Spent sets, for each rule with an anchor, what was used up at the base: a commit, or empty for the newest run.
// resolve turns a name that the store does not know into a commit.
func Spent(ctx context.Context, s *Store, repository, branch string, head *report.Report, base string,
	rules []policy.Rule, resolve func(name string) (string, error)) error {
	for i := range rules {
		if r := &rules[i]; r.Since != "" {
			var err error
			if r.Spent, err = spentOn(ctx, s, repository, branch, head, base, r, resolve); err != nil {
				return err
			}
		}
	}
	return nil
}

func spentOn(ctx context.Context, s *Store, repository, branch string, head *report.Report, base string, r *policy.Rule,
	resolve func(name string) (string, error)) (map[string]policy.Spent, error) {
	because := func(format string, args ...any) (map[string]policy.Spent, error) {
		return map[string]policy.Spent{policy.SpentOnNothing: {Why: fmt.Sprintf(format, args...)}}, nil
	}
	anchor, err := s.Resolve(ctx, repository, r.Since)
	if errors.Is(err, ErrUnknown) && resolve != nil {
		anchor, err = resolve(r.Since)
	}
	if err != nil {
		return because("%v", err)
	}
	id, err := workloadIn(ctx, s, repository, branch, head)
	if err != nil {
		return because("%v", err)
	}
	list, err := s.Series(ctx, Filter{Repository: repository, Branch: branch, Workload: id}, pointMetric(r.Metric))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return because("the history has no %s of this workload", r.Metric)
	}
	out := map[string]policy.Spent{}
	metric, _ := policy.SplitStat(r.Metric)
	for _, x := range list {
		key, spent := x.Labels.String(), x.since(r.Since, anchor, base)
		if x.Kind == "" {
			out[key] = spent
			continue
		}
		for k := range head.Metrics { // under all labels under which the head has numbers of the kind
			if m := &head.Metrics[k]; m.ID == metric && m.Group == x.Kind {
				out[m.Labels.String()] = spent
			}
		}
	}
	return out, nil
}

// MainKind returns the kind of unit of a report's unlabelled metrics; empty if it has none.
func MainKind(r *report.Report) string {
	if g := lists.Find(r.Unit.Groups, func(g *report.UnitGroup) bool { return g.Main }); g != nil {
		return g.ID
	}
	return ""
}

// since returns what was spent from an anchor to the base: a commit, or empty for the newest night. Errors use name.
func (s *Series) since(name, anchor, base string) policy.Spent {
	is := func(n Night) bool { return n.Commit == anchor }
	if !slices.ContainsFunc(s.Nights, is) {
		return policy.Spent{Why: fmt.Sprintf("the history has no run of %s (%s)", name, Short(anchor))}
	}
	to := len(s.Nights) - 1
	for i := range s.Nights {
		if s.Nights[i].Commit == base {
			to = i
		}
	}
	epoch, upTo := s.Nights[to].Epoch, s.Nights[:to+1]
	// machines that alternate are separate, and one of them suffices
	if s.Pinned == nil && slices.ContainsFunc(s.Nights, func(n Night) bool { return is(n) && n.Epoch == epoch }) {
		upTo = lists.Filter(upTo, func(n Night) bool { return n.Epoch == epoch })
	}
	from := slices.IndexFunc(upTo, is)
	if from < 0 {
		return policy.Spent{Why: name + " is newer than the base"}
	}
	s.Nights = upTo[from:]
	return s.spent()
}

// pointMetric returns the id of the points of a rule's metric. The default statistic is p50 for unit.time and serve
// metrics, mean for other unit metrics.
func pointMetric(metric string) string {
	id, stat := policy.SplitStat(metric)
	switch {
	case id == "unit.time" || strings.HasPrefix(id, "serve."):
		return id + "." + cmp.Or(stat, "p50")
	case strings.HasPrefix(id, "unit."):
		return id + "." + cmp.Or(stat, "mean")
	}
	return metric
}

// leastSteps is the number of steps from night to night from which noise is estimated.
const leastSteps = 4

// nightly returns the standard deviation of a night's ln. It is from the steps from night to night less the median
// step, so that slow creep is not noise; 0 if there are too few.
func (s *Series) nightly() float64 {
	var steps []float64
	for i := 1; i < len(s.Nights); i++ {
		if s.Pinned != nil || s.Nights[i].Epoch == s.Nights[i-1].Epoch {
			steps = append(steps, math.Log(s.Nights[i].followed()/s.Nights[i-1].followed()))
		}
	}
	if len(steps) < leastSteps {
		return 0
	}
	middle := order.Median(steps)
	for i := range steps {
		steps[i] -= middle
	}
	return order.Spread(steps) / math.Sqrt2
}

// mostSpenders bounds the commits that are listed for a budget.
const mostSpenders = 3

// spent returns the change from the first night to the last. It adds up the changes within each environment: a change
// across environments has no known cause.
func (s *Series) spent() policy.Spent {
	type step struct {
		commit string
		ln     float64
	}
	total, ends := 0.0, 0
	var steps []step
	oneEpoch := func(a, b *Night) bool { return s.Pinned != nil || a.Epoch == b.Epoch }
	for _, stay := range groups(s.Nights, oneEpoch) {
		before := math.NaN()
		for _, nights := range groups(stay, func(a, b *Night) bool { return a.Commit == b.Commit }) {
			ln := math.Log(median(nights))
			if !math.IsNaN(before) {
				total += ln - before
				steps = append(steps, step{nights[0].Commit, ln - before})
			}
			before = ln
		}
		ends += 2
	}
	out := policy.Spent{Ratio: math.Exp(total), SE: s.nightly() * math.Sqrt(float64(ends))}
	lists.Sort(steps, func(a, b step) int {
		if s.Better == report.Higher {
			a, b = b, a
		}
		return cmp.Compare(b.ln, a.ln)
	})
	for _, x := range steps {
		if len(out.By) == mostSpenders || !s.Worse(x.ln) || math.Abs(x.ln) < 0.005 {
			break
		}
		out.By = append(out.By, Short(x.commit)+" "+unit.Change(math.Expm1(x.ln)))
	}
	return out
}
