package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Folder is an output folder that appears whole or not at all: everything is written into a scratch folder beside it.
type Folder struct {
	Stage string // where to write
	out   string
	force bool
}

// ErrExists is the error of an output folder that holds something.
var ErrExists = errors.New("exists and is not empty")

// NewFolder makes the scratch folder. An output folder that exists must be empty, or force must be given.
func NewFolder(out string, force bool) (*Folder, error) {
	out = filepath.Clean(out)
	entries, err := os.ReadDir(out)
	switch {
	case err == nil && len(entries) > 0 && !force:
		return nil, fmt.Errorf("%s %w: name another with --out, or replace it with --force", out, ErrExists)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot write %s: %w", out, err)
	}
	fail := func(err error) (*Folder, error) {
		return nil, DiskFull(filepath.Dir(out), fmt.Errorf("cannot write %s: %w", out, err))
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fail(err)
	}
	stage, err := os.MkdirTemp(filepath.Dir(out), ".explain-")
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		return fail(err)
	}
	return &Folder{Stage: stage, out: out, force: force}, nil
}

// Commit moves the scratch folder into its place.
func (f *Folder) Commit() error {
	fail := func(err error) error { return fmt.Errorf("cannot write %s: %w", f.out, err) }
	if f.force {
		old := f.Stage + "-old"
		if err := os.Rename(f.out, old); err == nil {
			defer os.RemoveAll(old)
		} else if !errors.Is(err, os.ErrNotExist) {
			return fail(err)
		}
	} else if err := os.Remove(f.out); err != nil && !errors.Is(err, os.ErrNotExist) { // it was empty
		return fail(err)
	}
	if err := os.Rename(f.Stage, f.out); err != nil {
		return fail(err)
	}
	return nil
}

// Discard removes the scratch folder. The logs of the children, which say what went wrong, are kept beside the output
// folder in OUT.failed, whose path is returned; empty where there are none, or no room for them.
func (f *Folder) Discard() string {
	defer os.RemoveAll(f.Stage)
	kept := f.out + ".failed"
	var logs []string
	for _, pattern := range []string{"logs", "*/logs"} {
		found, err := filepath.Glob(filepath.Join(f.Stage, pattern))
		for _, dir := range found {
			if said, e := filepath.Glob(filepath.Join(dir, "*.log")); err == nil && e == nil && len(said) > 0 {
				logs = append(logs, dir)
			}
		}
	}
	if len(logs) == 0 || !ours(kept) || os.RemoveAll(kept) != nil {
		return ""
	}
	for _, dir := range logs {
		name, err := filepath.Rel(f.Stage, dir)
		if err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(kept, filepath.Dir(name)), 0o755); err != nil {
			return ""
		}
		if err := os.Rename(dir, filepath.Join(kept, name)); err != nil {
			return ""
		}
	}
	return kept
}

// ours reports whether a folder may be replaced by the logs of a failed capture: it is not there, or holds such logs
// alone.
func ours(dir string) bool {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return true
	}
	a, _ := filepath.Glob(filepath.Join(dir, "logs", "children.json"))
	b, _ := filepath.Glob(filepath.Join(dir, "*", "logs", "children.json"))
	return len(a)+len(b) > 0
}
