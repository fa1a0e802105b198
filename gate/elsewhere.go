package gate

import (
	"context"
	"fmt"

	"github.com/nsys-llm/explain/gate/gitfile"
)

// baseElsewhere is the commit at the base of the change that GitLab, Jenkins or Buildkite builds, by their variables;
// empty if none of them builds one. Errors are [UnreadError].
func baseElsewhere(ctx context.Context, getenv func(string) string) (base string, err error) {
	fork := func(name string) (string, error) {
		if branch := getenv(name); branch != "" {
			return gitfile.Fork(ctx, ".", branch)
		}
		return "", fmt.Errorf("%s is empty", name)
	}
	const gitlab = "CI_MERGE_REQUEST_DIFF_BASE_SHA"
	switch pull := getenv("BUILDKITE_PULL_REQUEST"); {
	case getenv("CI_MERGE_REQUEST_IID")+getenv(gitlab) != "":
		if base = getenv(gitlab); !IsCommit(base) {
			err = fmt.Errorf("%s is not a commit", gitlab)
		}
	case getenv("CHANGE_ID")+getenv("CHANGE_TARGET") != "":
		base, err = fork("CHANGE_TARGET")
	case pull != "" && pull != "false":
		base, err = fork("BUILDKITE_PULL_REQUEST_BASE_BRANCH")
	}
	if err != nil {
		return "", UnreadError{fmt.Errorf("the base of the change is not known; the change's own files do not count, "+
			"so nothing is judged: %w", err)}
	}
	return base, nil
}
