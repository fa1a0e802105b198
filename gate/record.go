package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/diff/comparison"
)

// record is a verdict as it stood: what somebody who sets a label has seen. It is the text of a check run on the head,
// which only an app can write, and no other app can pass for ours. The comment shows the same and is no record:
// whatever else may comment with our token could write one.
type record struct {
	Schema  string             `json:"schema"`
	Pull    int                `json:"pull"`
	Key     string             `json:"key"`
	Head    string             `json:"head"`
	Run     int64              `json:"run"`
	Verdict comparison.Verdict `json:"verdict"`
	Failed  []failure          `json:"failed"` // what failed, each with its size
	Open    []string           `json:"open"`   // codes of what stayed undecided
	at      time.Time          // when it was written, by GitHub's clock
}

const recordSchema = "explain.verdict/1"

// failure is a gate that failed, or is suspected to. Worse is how much worse it was, as a ratio of 1 or more in either
// direction; null if there is no such size: a change of structure, a budget on a value of 0.
type failure struct {
	Gate  string   `json:"gate"` // hash of leg, rule, metric and labels
	Rule  string   `json:"rule"`
	Worse *float64 `json:"worse"`
}

// sizeSlack is how far a size may exceed the accepted one: the same code, measured twice, gives different numbers.
const sizeSlack = 0.01

// maxFailed bounds a record; if more gates failed, nothing can be accepted.
const maxFailed = 500

// newRecord makes one record of the verdicts on several comparisons.
func newRecord(legs []comparison.Leg) *record {
	r := &record{Schema: recordSchema, Verdict: comparison.Pass, Failed: []failure{}, Open: []string{}}
	for _, l := range legs {
		c := l.Comparison
		r.Verdict = comparison.Worse(r.Verdict, judgedAs(c))
		undecided := func(code comparison.Code) { r.Open = append(r.Open, l.Name+":"+string(code)) }
		for _, g := range c.Gates {
			switch {
			case comparison.Rank(g.CountsAs) >= comparison.Rank(comparison.Fail), suspected(&g):
				r.Failed = append(r.Failed, failed(l.Name, &g))
			case g.CountsAs == comparison.Inconclusive:
				undecided(g.Code)
			}
		}
		if judgedAs(c) == comparison.Inconclusive || !c.Comparable && !c.FirstRun() {
			for i := range c.Reasons {
				undecided(c.Reasons[i].Code)
			}
		}
	}
	slices.Sort(r.Open)
	r.Open = slices.Compact(r.Open)
	return r
}

// judgedAs is the verdict before anybody accepted it.
func judgedAs(c *comparison.Comparison) comparison.Verdict {
	if len(c.Overrides) > 0 {
		return c.Overrides[0].From
	}
	return c.Verdict
}

// suspected reports whether a gate is inconclusive though it measured a change: the change is only uncertain.
func suspected(g *comparison.Gate) bool {
	switch g.Code {
	case comparison.WideInterval, comparison.Trend, comparison.TooFewUnits:
		return g.CountsAs == comparison.Inconclusive && g.Ratio != nil && comparison.Value(g.Ratio) > 0
	}
	return false
}

func failed(leg string, g *comparison.Gate) failure {
	sum := sha256.Sum256([]byte(leg + "\x00" + g.Rule + "\x00" + g.Metric + "\x00" + g.Labels.String()))
	f := failure{Gate: hex.EncodeToString(sum[:8]), Rule: oneLine(g.Rule, 80)}
	if g.Class == comparison.Improved || g.Class == comparison.Same {
		return f // a rule that asks for an improvement: its ratio does not say how much worse the head is
	}
	if g.Ratio != nil && comparison.Value(g.Ratio) > 0 && (g.Verdict == comparison.Fail || suspected(g)) {
		f.Worse = new(math.Exp(math.Abs(math.Log(comparison.Value(g.Ratio)))))
	}
	return f
}

// covers reports whether somebody who saw r has seen everything that blocks now: each failed gate, no worse than it
// was, and each code of what stayed undecided. A failure without a size counts only if the head is the same. why says
// what was not seen.
func (r *record) covers(now *record) (ok bool, why string) {
	seen := map[string]failure{}
	for _, f := range r.Failed {
		seen[f.Gate] = f
	}
	here := r.Head == now.Head
	for _, f := range now.Failed {
		was, ok := seen[f.Gate]
		switch {
		case !ok:
			return false, "the rule " + f.Rule + " had not failed then"
		case was.Worse == nil || f.Worse == nil:
			if !here || was.Worse != f.Worse {
				return false, "what the rule " + f.Rule + " found has no size: it counts for its head only"
			}
		case *f.Worse > *was.Worse+sizeSlack:
			return false, fmt.Sprintf("the rule %s is at %+.1f %%, and was at %+.1f %%", f.Rule, (*f.Worse-1)*100, (*was.Worse-1)*100)
		}
	}
	for _, code := range now.Open {
		if !here || !slices.Contains(r.Open, code) {
			return false, "not settled, and accepted for its own head and reasons only: " + strings.TrimPrefix(code, ":")
		}
	}
	return len(now.Failed)+len(now.Open) > 0, "nothing of it was seen"
}

// recordName names the check run. The number in it gives two pull requests with one head two records, and keeps the
// check from being a required one.
func recordName(number int, key string) string {
	return oneLine(fmt.Sprintf("explain: seen on #%d (%s)", number, CleanKey(key)), 200)
}

func (c *client) writeRecord(ctx context.Context, r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	options := github.CreateCheckRunOptions{Name: recordName(r.Pull, r.Key), HeadSHA: r.Head,
		ExternalID: github.String(fmt.Sprintf("explain:v1:%d", r.Run)), Status: github.String("completed"),
		Conclusion: github.String("neutral"), DetailsURL: github.String(c.run.URL()),
		Output: &github.CheckRunOutput{Title: github.String("explain: " + string(r.Verdict)),
			Summary: github.String("The verdict that a label accepts. This check is always neutral: require the check of the job instead."),
			Text:    github.String(string(text))}}
	// Writing it twice does no harm.
	if _, _, err := c.api.Checks.CreateCheckRun(repeatable(ctx), c.owner, c.repo, options); err != nil {
		return c.trouble("keep what was judged of "+ShortRef(r.Head), "checks: write", err)
	}
	return nil
}

// seen is the newest record of a pull request and key that existed at a time; nil if there is none.
func (c *client) seen(ctx context.Context, pull *Pull, key string, at time.Time) (*record, error) {
	heads := []string{pull.Head.SHA}
	runs, _, err := c.api.Actions.ListRepositoryWorkflowRuns(ctx, c.owner, c.repo, &github.ListWorkflowRunsOptions{
		Branch: pull.Head.Ref, Event: "pull_request", ListOptions: github.ListOptions{PerPage: perPage}})
	if err != nil {
		c.tries.notice(c.trouble("list the heads that were judged before", needArtifacts, err).Error())
	} else {
		for _, run := range runs.WorkflowRuns {
			sha := run.GetHeadSHA()
			if id := run.GetHeadRepository().GetID(); id != 0 && id == pull.Head.Repo.ID &&
				IsCommit(sha) && !slices.Contains(heads, sha) && len(heads) < maxHeads {
				heads = append(heads, sha)
			}
		}
	}
	var newest *record
	for _, head := range heads {
		list, _, err := c.api.Checks.ListCheckRunsForRef(ctx, c.owner, c.repo, head, &github.ListCheckRunsOptions{
			CheckName: github.String(recordName(pull.Number, key)), Filter: github.String("all"),
			ListOptions: github.ListOptions{PerPage: perPage}})
		if err != nil {
			return nil, c.trouble("read what was judged of "+ShortRef(head), "checks: read", err)
		}
		for _, run := range list.CheckRuns {
			r := c.readRecord(ctx, run)
			if r != nil && r.Pull == pull.Number && r.Key == CleanKey(key) && r.Head == head && !r.at.After(at) &&
				(newest == nil || cmp.Or(r.at.Compare(newest.at), cmp.Compare(r.Run, newest.Run)) > 0) {
				newest = r
			}
		}
	}
	return newest, nil
}

// maxHeads bounds how many heads of a pull request are searched for records.
const maxHeads = 20

// readRecord reads what writeRecord wrote; nil if somebody else wrote it.
func (c *client) readRecord(ctx context.Context, run *github.CheckRun) *record {
	app := run.GetApp().GetSlug()
	if app == "" || !c.wroteIt(ctx, &github.User{Login: github.String(app + "[bot]"), Type: github.String("Bot")}) {
		return nil
	}
	r := &record{at: run.GetCompletedAt().Time}
	text := run.GetOutput().GetText()
	if len(text) > 1<<16 || json.Unmarshal([]byte(text), r) != nil || r.Schema != recordSchema || r.at.IsZero() {
		return nil
	}
	return r
}
