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

var errNoCommit = errors.New("no such commit")

// Show returns the file at path, as it is at a ref, if it has at most most bytes. It takes the folders of the path by
// their names: the change could have replaced one by a link to another, or by a submodule with refs of its own. Links
// that the ref has lead on in the ref.
func Show(ctx context.Context, path, ref string, most int) ([]byte, error) {
	if ref == "" || strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, ": \t\n") {
		return nil, fmt.Errorf("%q is not a valid git ref", ref)
	}
	dir, name, err := checkoutOf(ctx, path)
	if err != nil {
		return nil, err
	}
	// a tag, or a branch of the change, that is called origin/main comes first for git
	commit, err := commitOf(ctx, dir, "refs/remotes/"+ref, errNoCommit)
	if errors.Is(err, errNoCommit) {
		commit, err = commitOf(ctx, dir, ref, fmt.Errorf(
			"the checkout has no commit %[1]s: fetch it first (git fetch origin %[1]s); a shallow checkout holds only the newest", ref))
	}
	if err != nil {
		return nil, err
	}
	object := commit + ":./" + filepath.ToSlash(name)
	if strings.Contains(object, "\n") {
		return nil, fmt.Errorf("%q at %s: %w", path, ref, ErrNotFound)
	}
	out, err := runOn(ctx, dir, object+"\n", "cat-file", "--batch-check", "--follow-symlinks")
	if err != nil {
		return nil, err
	}
	about := strings.Fields(string(out)) // object, type, size; else words
	if len(about) != 3 {
		return nil, fmt.Errorf("%s at %s: %w", path, ref, ErrNotFound)
	}
	switch size, err := strconv.Atoi(about[2]); {
	case err != nil:
		return nil, fmt.Errorf("%s at %s: %w", path, ref, ErrNotFound)
	case size > most:
		return nil, fmt.Errorf("%s at %s is larger than %d bytes", path, ref, most)
	}
	return run(ctx, dir, "cat-file", "blob", about[0])
}

// checkoutOf is the checkout that holds the file at path, and the path from there: the nearest one upward from the
// file, unless it is reached by a link of the checkout around it, or is a submodule of that. The checkout of the
// working directory is never left.
func checkoutOf(ctx context.Context, path string) (dir, name string, err error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	linked := false
	for at := filepath.Dir(full); ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			if dir == "" || linked || submodule(ctx, dir) {
				dir, linked = at, false
			}
			if rel, err := filepath.Rel(dir, here); err == nil && filepath.IsLocal(rel) {
				break
			}
		}
		info, err := os.Lstat(at)
		linked = linked || dir != "" && err == nil && info.Mode()&os.ModeSymlink != 0
		if at == filepath.Dir(at) {
			break
		}
	}
	if dir == "" {
		if os.Getenv("GIT_DIR") == "" { // the checkout of the working directory would only say that it has no such file
			return "", "", fmt.Errorf("%s lies in no checkout of git", path)
		}
		dir = here
	}
	name, err = filepath.Rel(dir, full)
	return dir, name, err
}

// submodule reports whether the checkout at dir is a submodule of another.
func submodule(ctx context.Context, dir string) bool {
	out, err := run(ctx, dir, "rev-parse", "--show-superproject-working-tree")
	return err == nil && len(bytes.TrimSpace(out)) > 0
}

// Fork is the commit at which HEAD left a branch of origin, in the checkout at dir: the merge base, or the branch's
// newest commit if the checkout is too shallow to know. It reads no local branch or tag: the change could own it.
func Fork(ctx context.Context, dir, branch string) (string, error) {
	tip, err := commitOf(ctx, dir, "refs/remotes/origin/"+branch, fmt.Errorf("the checkout has no branch origin/%[1]s: "+
		"fetch it first (git fetch origin +refs/heads/%[1]s:refs/remotes/origin/%[1]s)", branch))
	if err != nil {
		return "", err
	}
	out, err := run(ctx, dir, "merge-base", "--", tip, "HEAD")
	if err != nil && !limit.IsLate(err) {
		return tip, nil
	}
	return strings.TrimSpace(string(out)), err
}

// Resolve is the commit that a tag, a branch or the beginning of a commit names in the checkout at dir; missing is the
// error if there is none.
func Resolve(ctx context.Context, dir, name string, missing error) (string, error) {
	if name == "" || strings.HasPrefix(name, "-") {
		return "", missing
	}
	return commitOf(ctx, dir, name, missing)
}

// Known is Resolve where a checkout is one of the places that may know a commit: without one, it is missing, too. What
// git says of that has paths of this machine.
func Known(ctx context.Context, dir, name string, missing error) (string, error) {
	commit, err := Resolve(ctx, dir, name, missing)
	if err != nil && !limit.IsLate(err) {
		err = missing
	}
	return commit, err
}

// commitOf is the commit that a name stands for; missing is the error if there is none. What else keeps git from
// answering, as a folder that is no checkout, is an error of its own.
func commitOf(ctx context.Context, dir, name string, missing error) (string, error) {
	if strings.HasPrefix(name, "refs/") { // else git would take a tag of this name, refs/tags/refs/remotes/…
		full, _, _ := strings.Cut(name, "@{")
		full, _, _ = strings.Cut(full, "~")
		full, _, _ = strings.Cut(full, "^")
		if _, err := run(ctx, dir, "show-ref", "--verify", "--quiet", full); saysNo(err) {
			return "", missing
		} else if limit.IsLate(err) {
			return "", err
		}
	}
	out, err := run(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	switch {
	case saysNo(err):
		return "", missing
	case err != nil && !limit.IsLate(err):
		return "", fmt.Errorf("%s cannot be looked up: %w", name, err)
	}
	return strings.TrimSpace(string(out)), err
}

// saysNo reports whether git answered no, as opposed to failing: it then exits with 1.
func saysNo(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// usual bounds how long git may take: it fetches nothing.
const usual = time.Minute

// run returns what git prints in a folder of a checkout. It ignores refs/replace, which the change itself may have
// written, and fetches no missing objects.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return runOn(ctx, dir, "", args...)
}

// runOn is run with an input.
func runOn(ctx context.Context, dir, input string, args ...string) ([]byte, error) {
	most := limit.Wait(usual)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, limit.Late("git "+args[0], most)
	}
	if err != nil && errs.Len() > 0 {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.Join(strings.Fields(errs.String()), " "))
	}
	return out, err
}
