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
	if _, err := run(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}"); limit.IsLate(err) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf(
			"the checkout has no commit %[1]s: fetch it first (git fetch origin %[1]s); a shallow checkout holds only the newest", ref)
	}
	object := ref + ":./" + filepath.ToSlash(name)
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
		out, err = run(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	}
	if err != nil && !limit.IsLate(err) {
		err = fmt.Errorf("the checkout has no branch origin/%[1]s: fetch it first "+
			"(git fetch origin +refs/heads/%[1]s:refs/remotes/origin/%[1]s)", branch)
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
