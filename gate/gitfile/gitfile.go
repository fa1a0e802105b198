// Package gitfile reads a file of a checkout at another commit, by running git.
package gitfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
)

// ErrNotFound says that the ref exists and has no such file.
var ErrNotFound = errors.New("not found")

// Show returns the file at path, as it is at a ref, if it has at most most bytes.
func Show(ctx context.Context, path, ref string, most int) ([]byte, error) {
	if ref == "" || strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, ": \t\n") {
		return nil, fmt.Errorf("%q is not a valid git ref", ref)
	}
	dir, name := filepath.Split(path)
	for dir = filepath.Clean(dir); dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // a folder that only the ref has
		if _, err := os.Stat(dir); err == nil {
			break
		}
		name = filepath.Join(filepath.Base(dir), name)
	}
	commit, err := commitOf(ctx, dir, ref, fmt.Errorf(
		"the checkout has no commit %[1]s: fetch it first (git fetch origin %[1]s); a shallow checkout holds only the newest", ref))
	if err != nil {
		return nil, err
	}
	object := commit + ":./" + filepath.ToSlash(name)
	size, err := run(ctx, dir, "cat-file", "-s", object)
	if limit.IsLate(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", path, ref, ErrNotFound)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(size))); err != nil || n > most {
		return nil, fmt.Errorf("%s at %s is larger than %d bytes", path, ref, most)
	}
	return run(ctx, dir, "cat-file", "blob", object)
}

// Fork is the commit at which HEAD left a branch of origin, in the checkout at dir: the merge base, or the branch's
// newest commit if the checkout is too shallow to know. It reads no local branch or tag: the change could own it.
func Fork(ctx context.Context, dir, branch string) (string, error) {
	ref := "refs/remotes/origin/" + branch
	out, err := run(ctx, dir, "merge-base", "--", ref, "HEAD")
	if err != nil && !limit.IsLate(err) {
		return commitOf(ctx, dir, ref, fmt.Errorf("the checkout has no branch origin/%[1]s: fetch it first "+
			"(git fetch origin +refs/heads/%[1]s:refs/remotes/origin/%[1]s)", branch))
	}
	return strings.TrimSpace(string(out)), err
}

// Resolve is the commit that a tag, a branch or the beginning of a commit names in the checkout at dir.
func Resolve(ctx context.Context, dir, name string) (string, error) {
	if name == "" || strings.HasPrefix(name, "-") {
		return "", fmt.Errorf("%q is not a valid name of a commit", name)
	}
	return commitOf(ctx, dir, name, fmt.Errorf(
		"neither the history nor the checkout knows %s: fetch its tag, or name it with explain history add --tag",
		name))
}

// commitOf is the commit that a name stands for; missing is the error if there is none.
func commitOf(ctx context.Context, dir, name string, missing error) (string, error) {
	out, err := run(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil && !limit.IsLate(err) {
		err = missing
	}
	return strings.TrimSpace(string(out)), err
}

// usual bounds how long git may take: it fetches nothing.
const usual = time.Minute

// run returns what git prints in a folder of a checkout. It ignores refs/replace, which the change itself may have
// written, and fetches no missing objects.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	most := limit.Wait(usual)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, limit.Late("git "+args[0], most)
	}
	if err != nil && errs.Len() > 0 {
		err = fmt.Errorf("git: %s", strings.TrimSpace(errs.String()))
	}
	return out, err
}
