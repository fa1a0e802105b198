package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/cmd/explain/internal/gitfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate"
)

// What decides about a change (policy, noise floors, checked-in baseline, maps of phases and kernels) is read as it
// is at the base of the change, or the run is not a pass.

// pinned is a file that decides.
type pinned struct {
	what, name string // "policy", ".github/explain.yml"
	ref        string // that it was read at; empty: no change is judged, and what lies here decides
	data       []byte // nil: the base has no such file
	changed    bool   // here it is another one
}

// there reports whether the base has the file.
func (p *pinned) there() bool { return p.data != nil }

// unreadError says that a file that decides could not be read at the base: nothing is judged, exit 4.
type unreadError struct{ error }

func (e unreadError) Unwrap() error { return e.error }

// headRef is the --policy-ref that reads what decides as it is here.
const headRef = "head"

// maxPinned bounds a file that decides, in bytes: a checked-in baseline is the largest.
const maxPinned = 32 << 20

// decides is where what decides is read: --policy-ref, else the base of the change. Here is true where that is what
// lies here.
func (f *gateFlags) decides(s *gate.Session) (ref string, here bool, err error) {
	change := false
	if ref = f.policyRef; ref == "" && s != nil {
		ref, change = s.Base()
	}
	if change && ref == "" {
		return "", false, unreadError{fmt.Errorf(
			"GitHub does not say what the base of the change is, and by the change's own files nothing is judged")}
	}
	return ref, ref == "" || ref == headRef, nil
}

// pin reads a file that decides, and notes it for the comment.
func (f *gateFlags) pin(ctx context.Context, s *gate.Session, what, path string) (*pinned, error) {
	p := &pinned{what: what, name: filepath.ToSlash(path)}
	ref, here, err := f.decides(s)
	if err != nil {
		return nil, err
	}
	if here {
		p.data, err = readHere(ctx, s, path)
		if (errors.Is(err, os.ErrNotExist) || errors.Is(err, gate.ErrNotFound)) && what == "baseline" {
			return p, nil
		}
		return p, err
	}
	p.ref = ref
	if p.data, err = readAt(ctx, s, path, ref); err != nil && !errors.Is(err, gate.ErrNotFound) {
		return nil, unreadError{fmt.Errorf("the %s %s cannot be read at the base %s, and by the change's own nothing is "+
			"judged: %w", what, p.name, shortRef(ref), err)}
	}
	now, err := readHere(ctx, s, path)
	p.changed = err == nil && !bytes.Equal(now, p.data)
	if err != nil && !p.there() {
		return nil, usagef("--%s: %s is neither at the base %s nor here", flagOf(what), p.name, shortRef(ref))
	}
	f.pins = append(f.pins, p)
	return p, nil
}

// flagOf is the flag that names such a file.
func flagOf(what string) string {
	if what == "baseline" {
		return "baseline-file"
	}
	return strings.ReplaceAll(what, " ", "-")
}

// file leaves the file as the base has it in a folder, and returns its path; empty where the base has none.
func (p *pinned) file(dir string) (string, error) {
	if !p.there() {
		return "", nil
	}
	path := filepath.Join(dir, strings.ReplaceAll(p.what, " ", "-"), filepath.Base(p.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, p.data, 0o600)
}

// readAt reads a file at a ref: from GitHub, which knows every commit, or by git, which knows those of the checkout.
func readAt(ctx context.Context, s *gate.Session, path, ref string) ([]byte, error) {
	if s != nil {
		b, err := s.File(ctx, path, ref, maxPinned)
		if err == nil || errors.Is(err, gate.ErrNotFound) {
			return b, err
		}
		s.Say(path + " could not be read from GitHub, trying git: " + err.Error())
		if b, err2 := gitfile.Show(ctx, path, ref, maxPinned); err2 == nil || errors.Is(err2, gitfile.ErrNotFound) {
			return found(b, err2)
		}
		return nil, err
	}
	return found(gitfile.Show(ctx, path, ref, maxPinned))
}

// found makes git's way to say that there is no such file GitHub's.
func found(b []byte, err error) ([]byte, error) {
	if errors.Is(err, gitfile.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", gate.ErrNotFound, err)
	}
	return b, err
}

// readHere reads a file of what is judged: as git has it at the commit that a pull request's job was started for, since
// the job may have checked out the base to measure it, else the file that lies here, else, in a job that checks nothing
// out, as GitHub has it.
func readHere(ctx context.Context, s *gate.Session, path string) ([]byte, error) {
	if s != nil && s.Run.Event == "pull_request" && s.Run.SHA != "" {
		if b, err := gitfile.Show(ctx, path, s.Run.SHA, maxPinned); err == nil {
			return b, nil
		}
	}
	b, err := input.ReadText(path)
	if errors.Is(err, os.ErrNotExist) && s != nil && s.HeadSHA() != "" {
		return s.File(ctx, path, s.HeadSHA(), maxPinned)
	}
	return b, err
}

// judgedBy is the line of a comment that says where what decides was read, and what of it the change has changed.
func judgedBy(pins []*pinned) [][]doc.Span {
	var at, changed, added []string
	ref := ""
	for _, p := range pins {
		ref = p.ref
		switch {
		case !p.there():
			added = append(added, p.what)
			continue
		case p.changed:
			changed = append(changed, p.what)
		}
		at = append(at, p.what)
	}
	var parts []string
	if len(at) > 0 {
		parts = append(parts, strings.Join(at, ", ")+": as of "+shortRef(ref))
	}
	if len(changed) > 0 {
		parts = append(parts, "changed here: "+strings.Join(changed, ", "))
	}
	if len(added) > 0 {
		parts = append(parts, "new here, counts once merged: "+strings.Join(added, ", "))
	}
	if len(parts) == 0 {
		return nil
	}
	return [][]doc.Span{{doc.Text(strings.Join(parts, "; "))}}
}

// readPolicy reads the policy file. Where the base has none yet, the default rules judge.
func (f *gateFlags) readPolicy(ctx context.Context, s *gate.Session) (p *policy.Policy, source string, err error) {
	if f.rules.policy == "" {
		source = "default rules"
		if len(f.rules.failOn) > 0 {
			source = "rules of --fail-on"
		}
		return policy.Default(), source, nil
	}
	file, err := f.pin(ctx, s, "policy", f.rules.policy)
	switch {
	case err != nil && errors.As(err, new(unreadError)):
		return nil, "", err
	case err != nil:
		return nil, "", usagef("--policy: %w", err)
	case !file.there():
		return policy.Default(), "default rules", nil
	}
	source = file.name
	if file.ref != "" {
		source += " at " + shortRef(file.ref)
	}
	p, err = policyText(source, file.data)
	return p, source, err
}

// readNoise reads the noise floors; nil where there are none, or the base has none yet.
func (f *gateFlags) readNoise(ctx context.Context, s *gate.Session) (*diff.Noise, error) {
	if f.rules.noise == "" {
		return nil, nil
	}
	file, err := f.pin(ctx, s, "noise", f.rules.noise)
	switch {
	case err != nil && errors.As(err, new(unreadError)):
		return nil, err
	case err != nil:
		return nil, usagef("--noise: %w", err)
	case !file.there():
		return nil, nil
	}
	return noiseText(file.name, file.data)
}

// pinMaps makes the analysis name phases and kernels as the base does.
func (f *gateFlags) pinMaps(ctx context.Context, s *gate.Session, dir string) error {
	for _, m := range []struct {
		what string
		path *string
	}{{"phase map", &f.analysis.phaseMap}, {"kernel map", &f.analysis.kernelMap}} {
		if *m.path == "" {
			continue
		}
		file, err := f.pin(ctx, s, m.what, *m.path)
		if err != nil {
			if errors.As(err, new(unreadError)) {
				return err
			}
			return usagef("--%s: %w", flagOf(m.what), err)
		}
		if *m.path, err = file.file(dir); err != nil {
			return err
		}
	}
	return nil
}

// shortRef shortens a commit as GitHub does, and leaves names alone.
func shortRef(ref string) string {
	if len(ref) == 40 && strings.Trim(ref, "0123456789abcdef") == "" {
		return ref[:7]
	}
	return ref
}
