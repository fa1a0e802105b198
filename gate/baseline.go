package gate

import (
	"context"
	"errors"
)

// File is a file out of an artifact, or of the repository.
type File struct {
	Name string // slash-separated path in the artifact: free text of whoever uploaded it
	Data []byte
}

// Baseline is what to compare with.
type Baseline struct {
	Files    []File // the .json files of the artifact, by name
	SHA      string // commit that was measured
	RunID    int64
	Source   string   // "artifact explain-baseline of run 123 at abc1234 (merge base)"
	Warnings []string // not the merge base, artifacts that could not be used, …: one line each
}

// NoBaseline is the error where there is nothing to compare with: budgets are judged and it is a first run.
type NoBaseline struct{ Reason string }

func (e *NoBaseline) Error() string { return "no baseline: " + e.Reason }

// BaselineQuery says which artifact is wanted.
type BaselineQuery struct {
	Artifact string // its name
	Branch   string // it must come from a run on this branch of this repository, never of a fork
	HeadSHA  string // the commit under test: artifacts of it are no baseline
}

// Baseline finds the artifact that is nearest to the head: of the merge base, else of its nearest ancestor among 50, else
// the newest on the branch, with a warning. The error is *NoBaseline where there is none or GitHub does not show it.
func (c *Client) Baseline(ctx context.Context, q BaselineQuery) (*Baseline, error) {
	return nil, errors.New("not written yet")
}

// RunArtifact fetches the .json files of a named artifact of one run, for the privileged half of the fork pattern. What
// is in it was written by the author of the fork.
func (c *Client) RunArtifact(ctx context.Context, runID int64, name string) ([]File, error) {
	return nil, errors.New("not written yet")
}
