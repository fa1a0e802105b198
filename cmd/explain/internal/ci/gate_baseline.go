package ci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate"
	"github.com/nsys-llm/explain/gate/gitfile"
)

// baseline is what the head is compared with, and its origin.
type baseline struct {
	inputs  []input.File
	reports []*report.Report
	source  string
	sha     string // commit that was measured, if known
	run     string // page of the run that measured it
	none    policy.NoBase
	notes   []string
}

// measured takes, on workflow_run, the reports of both sides from the artifact of the finished run: those below a
// folder named base are the base's, all others the head's. The change's base reports are ignored if the base branch has
// a baseline of its own.
func (f *gateFlags) measured(ctx context.Context, s *gate.Session, dir string) error {
	switch {
	case len(f.head) > 0:
		return nil
	case s == nil || s.Of.Run.Trigger == nil && (s.Of.Run.Event != "pull_request" || f.artifact == defaultArtifact):
		return usage.Errorf("name what to judge: explain gate --head FILE [--base FILE]")
	}
	files, err := s.Measured(ctx, f.artifact)
	if errors.Is(err, gate.ErrNotFound) && s.Of.Run.Trigger == nil {
		s.Of.Number = 0 // the measuring run will comment
		return gate.UnreadError{Err: err}
	}
	if err != nil {
		return err
	}
	own := len(f.base) == 0 && f.baselineArtifact == "" && f.baselineFile == ""
	for i, file := range files {
		side, to := "head", &f.head
		if slices.Contains(strings.Split(path.Dir(file.Name), "/"), "base") {
			if side, to = "base", &f.base; !own {
				continue
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%d", side, i+1), "report.json")
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			return err
		}
		*to = append(*to, name)
	}
	if len(f.head) == 0 {
		return fmt.Errorf("the artifact %s has no report of the head, only of a base", render.Visible(f.artifact))
	}
	return nil
}

// madeHere refuses reports in the workspace that another workflow run made: on a runner that keeps its workspace they
// would replace a measurement that failed. Reports without a run, of traces made elsewhere, are accepted only if all
// are.
func (f *gateFlags) madeHere(s *gate.Session, reports []*report.Report) error {
	if s == nil {
		return nil
	}
	want, first := s.Of.Measures(), reports[0].Trace.Run
	for _, r := range reports {
		by := r.Trace.Run
		switch {
		case (by == nil) != (first == nil):
			return fmt.Errorf("some of the reports name this run and others name none: empty the folder that they are in before measuring")
		case by == nil:
		case s.Of.Pull != nil && by.Base != "" && by.Base != s.Of.Pull.Base.Ref:
			return fmt.Errorf(
				"the report of %s was measured for the base %s, and the base is %s now",
				render.Visible(r.Trace.Name), render.Visible(by.Base), render.Visible(s.Of.Pull.Base.Ref))
		case by.ID != want:
			return fmt.Errorf("the report of %s was made by run %d, and run %d is judged: measuring failed, or left reports of an "+
				"earlier run where its own should be. What another run measured is a baseline-artifact", render.Visible(r.Trace.Name), by.ID, want)
		case by.Attempt != first.Attempt:
			return fmt.Errorf("the reports come from attempts %d and %d of the run: empty the folder that they are in "+
				"before measuring", first.Attempt, by.Attempt)
		}
	}
	return nil
}

// baseline finds the base: the named files, else an artifact of the base branch, else a checked-in file as of the base
// commit.
func (f *gateFlags) baseline(ctx context.Context, s *gate.Session, dir string) (baseline, error) {
	if len(f.base) > 0 {
		inputs, err := input.Captures("--base", f.base)
		source := "files of this job"
		if s != nil && s.Of.Run.Trigger != nil {
			source = "as the change's own run measured it"
		}
		return baseline{inputs: inputs, source: source, sha: f.baseCommit}, err
	}
	why, none := "no --base was given", policy.NotNamed
	if f.baselineArtifact != "" {
		b, err := f.fromArtifact(ctx, s)
		missing, ok := errors.AsType[*gate.NoBaseline](err)
		if !ok {
			return b, err
		}
		if why, none = missing.Reason, policy.Lost; missing.NeverRan {
			none = policy.NeverMade
		}
	}
	if f.baselineFile != "" {
		file, err := f.pins.Read(ctx, "baseline", f.baselineFile)
		if errors.Is(err, gate.ErrNowhere) {
			err = usage.Errorf("--baseline-file: %w", err)
		}
		if err != nil {
			return baseline{}, err
		}
		if file.There() {
			copied, err := file.File(dir)
			if err != nil {
				return baseline{}, err
			}
			inputs, err := input.Captures("--baseline-file", []string{copied})
			b := baseline{inputs: inputs, source: "file " + file.Name}
			if file.Ref != "" {
				b.source += " as of " + gate.ShortRef(file.Ref)
			}
			if f.baselineArtifact != "" {
				b.notes = []string{"No artifact to compare with: " + why + ". Compared with a checked-in file instead."}
			}
			return b, err
		}
		why += "; there is no file " + file.Name
		if file.Ref != "" {
			why += " at " + gate.ShortRef(file.Ref)
		}
		if none == policy.NotNamed {
			none = policy.Lost
			if s != nil {
				never, err := s.NeverRan(ctx, s.Of.BaseBranch())
				if err != nil {
					why += "; whether the base branch has ever run this workflow is not known: " + err.Error()
				} else if never {
					none = policy.NeverMade
				}
			}
		}
	}
	first := ""
	if none == policy.NeverMade {
		first = " (first run)"
	}
	return baseline{none: none, notes: []string{"No baseline" + first + ": " + why + ". Only budgets are judged."}}, nil
}

// fromHistory takes noise floors and spent budgets from the history, and the base if there is none yet.
func (f *gateFlags) fromHistory(ctx context.Context, s *gate.Session, dir string, head *report.Report,
	b *baseline, opt *diff.Options) (*historycmd.Said, error) {
	commit := cmp.Or(f.baseCommit, b.sha)
	if err := f.trustedHistory(ctx, s, dir); err != nil {
		return nil, err
	}
	if s != nil {
		if ref, _ := s.Of.Base(); commit == "" && gate.IsCommit(ref) {
			commit = ref
		}
	}
	want := len(b.reports) == 0 && len(b.inputs) == 0
	said, err := f.rules.Past.Apply(ctx, head, commit, want, opt)
	if err != nil || len(said.Base) == 0 {
		return said, err
	}
	*b = baseline{reports: said.Base, source: "the history", sha: commit}
	if !said.Exact {
		b.sha = ""
	}
	opt.NoBase = b.none
	return said, nil
}

// trustedHistory fetches the history from an artifact of a run on the base branch. It refuses a file in the workspace
// while a change is judged, since the change, or a cache that it can write, may have made that file. Outside GitHub,
// where there is no such artifact, it refuses only a file that git tracks.
func (f *gateFlags) trustedHistory(ctx context.Context, s *gate.Session, dir string) error {
	store := f.rules.Past.Store
	if f.historyArtifact != "" {
		if store != "" {
			return usage.Errorf("--history and --history-artifact exclude each other")
		}
		if s == nil {
			return usage.Errorf("--history-artifact finds an artifact in GitHub Actions, and this is not one of its jobs: " +
				"name the file with --history")
		}
		branch := cmp.Or(f.baselineBranch, s.Of.BaseBranch())
		found, err := s.Evidence(ctx, f.historyArtifact, branch)
		if none, ok := errors.AsType[*gate.NoBaseline](err); ok && none.NeverRan {
			return nil // no run can have made one yet
		}
		if err != nil {
			return fmt.Errorf("--history-artifact: %w", err)
		}
		for _, file := range found.Files {
			if strings.HasSuffix(file.Name, ".db") {
				f.rules.Past.Store = filepath.Join(dir, "history.db")
				return os.WriteFile(f.rules.Past.Store, file.Data, 0o600)
			}
		}
		return fmt.Errorf("--history-artifact: %s holds no .db file", found.Source)
	}
	if store == "" || !f.rules.Past.IsFile() {
		return nil
	}
	change, err := f.pins.OfChange(ctx)
	if err != nil {
		return err
	}
	if (change || s != nil) && gitfile.Tracked(ctx, store) {
		return usage.Errorf("--history %s is a file of the repository, which the change can edit: keep it in an artifact or a branch of its own", store)
	}
	if change && s != nil {
		return gate.UnreadError{Err: fmt.Errorf("--history %s lies in the workspace, where the change, or a cache that it "+
			"can write, may have put it, so it is not trusted: name the artifact of a run on the base branch with "+
			"--history-artifact", store)}
	}
	return nil
}

// readBaseline reads the reports among an artifact's files, and skips all other files.
func readBaseline(files []gate.File) ([]*report.Report, error) {
	var list []*report.Report
	for _, f := range files {
		r, err := report.Read(bytes.NewReader(f.Data))
		if err != nil {
			if strings.HasSuffix(f.Name, "report.json") {
				return nil, fmt.Errorf("%s: %w", render.Visible(f.Name), err)
			}
			continue // e.g. summary.json
		}
		list = append(list, r)
	}
	return list, nil
}

// fromArtifact takes the base from an artifact of the base branch.
func (f *gateFlags) fromArtifact(ctx context.Context, s *gate.Session) (baseline, error) {
	if s == nil {
		return baseline{}, usage.Errorf(
			"--baseline-artifact finds an artifact in GitHub Actions, and this is not one of its jobs: " +
				"name the files with --base")
	}
	branch := cmp.Or(f.baselineBranch, s.Of.BaseBranch())
	if branch == "" {
		return baseline{}, usage.Errorf("the event %s has no base branch: name one with --baseline-branch", s.Of.Run.Event)
	}
	found, err := s.Baseline(ctx, f.baselineArtifact, branch)
	if err != nil {
		return baseline{}, err
	}
	reports, err := readBaseline(found.Files)
	switch {
	case err != nil:
		return baseline{}, fmt.Errorf("%s: %w", found.Source, err)
	case len(reports) == 0:
		return baseline{}, &gate.NoBaseline{Reason: found.Source + " holds no report.json"}
	}
	b := baseline{reports: reports, source: found.Source, sha: found.SHA, run: s.Of.Run.RunURL(found.RunID)}
	b.notes = lists.Map(found.Warnings, func(warning string) string { return "Baseline: " + warning })
	return b, nil
}

// pinned reads the file of a flag, which is called as what it holds. If the base cannot be read, nothing is judged; any
// other error is one of usage.
func pinned(ctx context.Context, pins *gate.Pins, what, path string) (*gate.Pinned, error) {
	file, err := pins.Read(ctx, what, path)
	if err != nil && !errors.As(err, new(gate.UnreadError)) {
		err = usage.Errorf("--%s: %w", strings.ReplaceAll(what, " ", "-"), err)
	}
	return file, err
}

// readPolicy reads the policy file. Without --policy, or if the base has no file yet, it returns the default rules.
func (f *gateFlags) readPolicy(ctx context.Context) (p *policy.Policy, source string, err error) {
	if f.rules.Policy == "" {
		source = diffdoc.DefaultRules
		if len(f.rules.FailOn) > 0 {
			source = diffdoc.FlagRules
		}
		return policy.Default(), source, nil
	}
	file, err := pinned(ctx, &f.pins, "policy", f.rules.Policy)
	preset, named := policy.PresetText(f.rules.Policy)
	switch {
	case errors.As(err, new(gate.UnreadError)):
		return nil, "", err
	case named && (err != nil || !file.There()): // no file of this name is there, nor at the base
		p, err = rulesfile.PolicyText(f.rules.Policy, []byte(preset), nil)
		return p, "preset " + f.rules.Policy, err
	case err != nil:
		return nil, "", err
	case !file.There():
		return policy.Default(), diffdoc.DefaultRules, nil
	}
	source = file.Name
	if file.Ref != "" {
		source += " at " + gate.ShortRef(file.Ref)
	}
	p, err = rulesfile.PolicyText(source, file.Data, func(name string) ([]byte, error) {
		more, err := f.pins.Read(ctx, "policy", filepath.Join(filepath.Dir(f.rules.Policy), filepath.FromSlash(name)))
		if err == nil && !more.There() {
			err = fmt.Errorf("the base %s has no file %s", gate.ShortRef(more.Ref), more.Name)
		}
		if err != nil {
			return nil, err
		}
		return more.Data, nil
	})
	if unread := (gate.UnreadError{}); errors.As(err, &unread) {
		err = unread
	}
	return p, source, err
}

// readNoise reads the noise floors; nil if there are none, or if the base has no file yet.
func (f *gateFlags) readNoise(ctx context.Context) (*diff.Noise, error) {
	if f.rules.Noise == "" {
		return nil, nil
	}
	file, err := pinned(ctx, &f.pins, "noise", f.rules.Noise)
	if err != nil || !file.There() {
		return nil, err
	}
	return rulesfile.NoiseText(file.Name, file.Data)
}

// pinMaps makes the analysis use the base's phase map and kernel map.
func (f *gateFlags) pinMaps(ctx context.Context, dir string) error {
	for _, m := range []struct {
		what string
		path *string
	}{{"phase map", &f.analysis.PhaseMap}, {"kernel map", &f.analysis.KernelMap}} {
		if *m.path == "" {
			continue
		}
		file, err := pinned(ctx, &f.pins, m.what, *m.path)
		if err != nil {
			return err
		}
		if *m.path, err = file.File(dir); err != nil {
			return err
		}
	}
	return nil
}
