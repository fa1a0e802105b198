package gate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// maxFolders bounds how many folders of the workspace are searched for a checkout.
const maxFolders = 500

// CheckTrusted refuses to work beside code of a stranger with a token that can write: on pull_request_target beside a
// checkout of anything but the base branch, on workflow_run beside a checkout of a fork's commit. It looks at the
// workspace and the folders right below it. The error says what to do instead. It is nil for every other event.
//
// The workspace itself must be a checkout of the base. A folder below it may be any other repository, but not the head
// of the pull request or its merge commit. Both are also refused if they had such a commit checked out before: its code
// ran beside the token.
func (r *Run) CheckTrusted() error {
	var theirs []string
	switch {
	case r.Event == "pull_request_target" && r.Pull != nil:
		theirs = []string{r.Pull.Head.SHA, r.Pull.MergeSHA}
	case r.Event == "pull_request_target":
		return errors.New("pull_request_target without a pull request in its payload: it is unknown whether the checkout " +
			"is the base branch's")
	case r.Event == "workflow_run" && r.Trigger != nil && !strings.EqualFold(r.Trigger.HeadRepo.Name, r.Repository):
		theirs = []string{r.Trigger.HeadSHA}
	default:
		return nil
	}
	if r.Workspace == "" {
		return nil
	}
	// an unknown commit equals no other
	theirs = slices.DeleteFunc(theirs, func(sha string) bool { return sha == "" })
	if head, found := checkedOut(r.Workspace); found {
		isBase := head != "" && (head == r.SHA || r.Pull != nil && head == r.Pull.Base.SHA)
		if r.Event == "pull_request_target" && !isBase || had(r.Workspace, theirs) {
			return r.untrusted("the workspace")
		}
	}
	folders, err := os.Open(r.Workspace)
	if err != nil {
		return nil // no workspace, no checkout
	}
	defer folders.Close()
	entries, err := folders.ReadDir(maxFolders)
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot look for checkouts in the workspace: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && had(filepath.Join(r.Workspace, e.Name()), theirs) {
			return r.untrusted("a folder of the workspace")
		}
	}
	return nil
}

func (r *Run) untrusted(where string) error {
	return fmt.Errorf("refused: %s runs with a token that can write, and %s is or was a checkout of the pull request "+
		"(or cannot be distinguished from one), "+
		"so its author's code can use that token; gate on pull_request instead, and comment for forks from a second workflow on workflow_run (explain gate comment) that checks nothing out", r.Event, where)
}

// checkedOut is the commit that a folder has checked out, and whether it is a checkout at all. The commit is empty if
// it is not known.
func checkedOut(dir string) (sha string, found bool) {
	git, found := gitFolder(dir)
	if git == "" {
		return "", found
	}
	head := firstLine(filepath.Join(git, "HEAD"))
	ref, symbolic := strings.CutPrefix(head, "ref: ")
	if !symbolic {
		return validOrEmpty(head), true
	}
	if !filepath.IsLocal(ref) {
		return "", true
	}
	if common := firstLine(filepath.Join(git, "commondir")); common != "" {
		if git = filepath.Join(git, common); filepath.IsAbs(common) {
			git = common
		}
	}
	if sha := validOrEmpty(firstLine(filepath.Join(git, filepath.FromSlash(ref)))); sha != "" {
		return sha, true
	}
	return packedRef(filepath.Join(git, "packed-refs"), ref), true
}

// gitFolder is the .git folder of a checkout, and whether there is a checkout at all. It is empty if it cannot be
// found.
func gitFolder(dir string) (git string, found bool) {
	git = filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err != nil:
		return "", false
	case info.IsDir():
		return git, true
	}
	target, ok := strings.CutPrefix(firstLine(git), "gitdir: ") // a worktree or a submodule
	switch {
	case !ok:
		return "", true
	case filepath.IsAbs(target):
		return target, true
	}
	return filepath.Join(dir, target), true
}

// ofPull is what git notes when it checks out a pull request by its ref. The payload may not name that merge commit.
var ofPull = pattern.New(`\bpull/[0-9]+/(head|merge)\b`)

// maxRead bounds in bytes what is read of a file of git: of packed refs there may be many.
const maxRead = 64 << 20

// had reports whether a folder has one of these commits checked out, or its reflog notes that it had one or the ref of
// a pull request: a job that measures the head and then the base has still run the head's code.
func had(dir string, commits []string) bool {
	if head, _ := checkedOut(dir); slices.Contains(commits, head) {
		return true
	}
	git, _ := gitFolder(dir)
	if git == "" {
		return false
	}
	for line := range linesOf(filepath.Join(git, "logs", "HEAD")) {
		commit, did, _ := strings.Cut(line, "\t") // OLD NEW NAME <MAIL> TIME ZONE, a tab, what was done
		_, commit, _ = strings.Cut(commit, " ")
		commit, _, _ = strings.Cut(commit, " ")
		if slices.Contains(commits, commit) || ofPull().MatchString(did) {
			return true
		}
	}
	return false
}

// packedRef looks a ref up in git's file of packed refs; empty if it is not there.
func packedRef(path, ref string) string {
	for line := range linesOf(path) {
		if sha, name, ok := strings.Cut(line, " "); ok && name == ref {
			return validOrEmpty(sha)
		}
	}
	return ""
}

func validOrEmpty(sha string) string {
	if IsCommit(sha) {
		return sha
	}
	return ""
}

// firstLine is the first line of a file; empty if there is none.
func firstLine(path string) string {
	for line := range linesOf(path) {
		return strings.TrimSpace(line)
	}
	return ""
}

// linesOf yields the lines of a file of git, up to maxRead bytes; none of a file that cannot be read.
func linesOf(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(io.LimitReader(f, maxRead))
		lines.Buffer(nil, maxRead)
		for lines.Scan() && yield(lines.Text()) {
		}
	}
}
