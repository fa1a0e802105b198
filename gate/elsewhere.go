package gate

import (
	"context"
	"fmt"

	"github.com/nsys-llm/explain/gate/gitfile"
)

// baseElsewhere is the commit at the base of the change that GitLab, Jenkins or Buildkite builds, by their variables;
// empty if none of them builds one. Errors are [UnreadError].
func baseElsewhere(ctx context.Context, getenv func(string) string) (base string, err error) {
	name := ""
	switch pull := getenv("BUILDKITE_PULL_REQUEST"); {
	case getenv("CI_MERGE_REQUEST_IID")+getenv("CI_MERGE_REQUEST_DIFF_BASE_SHA") != "":
		name = "CI_MERGE_REQUEST_DIFF_BASE_SHA"
		if base = getenv(name); commit().MatchString(base) {
			return base, nil
		}
	case getenv("CHANGE_ID")+getenv("CHANGE_TARGET") != "":
		name = "CHANGE_TARGET"
	case pull != "" && pull != "false":
		name = "BUILDKITE_PULL_REQUEST_BASE_BRANCH"
	default:
		return "", nil
	}
	branch := getenv(name)
	switch {
	case name == "CI_MERGE_REQUEST_DIFF_BASE_SHA":
		err = fmt.Errorf("%s is not a commit", name)
	case branch == "":
		err = fmt.Errorf("%s is empty", name)
	default:
		base, err = gitfile.Fork(ctx, ".", branch)
	}
	if err != nil {
		err = UnreadError{fmt.Errorf("the base of the change is not known; the change's own files do not count, "+
			"so nothing is judged: %w", err)}
	}
	return base, err
}
