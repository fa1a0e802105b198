package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/gate/gitfile"
)

// Files that decide about a change (policy, noise floors, checked-in baseline, maps of phases and kernels) are read as
// they are at the base of the change, or the run is not a pass.

// Pins reads the files that decide, and notes them for the comment.
type Pins struct {
	Session *Session            // nil outside of GitHub Actions
	Ref     string              // where to read: a ref, HeadRef, or empty for the base of the change
	Getenv  func(string) string // names the base on other CI systems; may be nil
	read    []*Pinned
}

// Pinned is a file that decides.
type Pinned struct {
	What, Name string // "policy", ".github/explain.yml"
	Ref        string // at which it was read; empty: no change is judged, and the local file decides
	Data       []byte // nil: the base has no such file
	changed    bool   // the local file differs
}

// There reports whether the base has the file.
func (p *Pinned) There() bool { return p.Data != nil }

// UnreadError says that a deciding file could not be read at the base: nothing is judged.
type UnreadError struct{ Err error }

func (e UnreadError) Error() string { return e.Err.Error() }
func (e UnreadError) Unwrap() error { return e.Err }

// ErrNowhere says that a deciding file is neither at the base nor here.
var ErrNowhere = errors.New("no such file")

// HeadRef as Pins.Ref reads deciding files as they are here.
const HeadRef = "head"

// maxPinned bounds a deciding file in bytes: a checked-in baseline is the largest.
const maxPinned = 32 << 20

// at is the ref at which to read: Ref, else the base of the change. here is true if the local files decide.
func (l *Pins) at(ctx context.Context) (ref string, here bool, err error) {
	change := false
	switch ref = l.Ref; {
	case ref != "":
	case l.Session != nil:
		ref, change = l.Session.Of.Base()
	case l.Getenv != nil:
		if ref, err = baseElsewhere(ctx, l.Getenv); err != nil {
			return "", false, err
		}
	}
	if change && ref == "" {
		return "", false, UnreadError{fmt.Errorf(
			"GitHub does not say what the base of the change is; the change's own files do not count, so nothing is judged")}
	}
	return ref, ref == "" || ref == HeadRef, nil
}

// OfChange reports whether a change is judged, whose own files do not decide.
func (l *Pins) OfChange(ctx context.Context) (bool, error) {
	if l.Session != nil {
		_, change := l.Session.Of.Base()
		return change && l.Ref != HeadRef, nil
	}
	_, here, err := l.at(ctx)
	return !here, err
}

// Read reads a deciding file. If the local files decide, a missing baseline is no error either. Errors are
// [UnreadError], [ErrNowhere], or those of reading the local file.
func (l *Pins) Read(ctx context.Context, what, path string) (*Pinned, error) {
	s, p := l.Session, &Pinned{What: what, Name: filepath.ToSlash(path)}
	ref, here, err := l.at(ctx)
	if err != nil {
		return nil, err
	}
	if here {
		p.Data, err = readHere(ctx, s, path)
		if (errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNotFound)) && what == "baseline" {
			return p, nil
		}
		return p, err
	}
	p.Ref = ref
	if p.Data, err = readAt(ctx, s, path, ref); err != nil && !errors.Is(err, ErrNotFound) {
		return nil, UnreadError{fmt.Errorf("the %s %s cannot be read at the base %s; the change's own does not count, "+
			"so nothing is judged: %w", what, p.Name, ShortRef(ref), err)}
	}
	now, err := readHere(ctx, s, path)
	p.changed = err == nil && !bytes.Equal(now, p.Data)
	if err != nil && !p.There() {
		return nil, fmt.Errorf("%w: %s is neither at the base %s nor here", ErrNowhere, p.Name, ShortRef(ref))
	}
	l.read = append(l.read, p)
	return p, nil
}

// File writes the file of the base into a folder and returns its path; empty if the base has none.
func (p *Pinned) File(dir string) (string, error) {
	if !p.There() {
		return "", nil
	}
	path := filepath.Join(dir, strings.ReplaceAll(p.What, " ", "-"), filepath.Base(p.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, p.Data, 0o600)
}

// readAt reads a file at a ref: from GitHub, which knows every commit, or by git, which knows those of the checkout.
func readAt(ctx context.Context, s *Session, path, ref string) ([]byte, error) {
	var refused error
	if s != nil {
		b, err := fileOf(ctx, s, path, ref)
		if err == nil || errors.Is(err, ErrNotFound) {
			return b, err
		}
		s.Say(path + " could not be read from GitHub, trying git: " + err.Error())
		refused = err
		if ref == s.Of.Run.DefaultBranch { // for git a tag of that name would come first
			ref = "refs/remotes/origin/" + ref
		}
	}
	b, err := gitfile.Show(ctx, path, ref, maxPinned)
	if err != nil && !errors.Is(err, ErrNotFound) && refused != nil {
		return nil, refused
	}
	return b, err
}

// fileOf reads a file of the repository at a ref. name is a path as the step sees it. The error
// is [ErrNotFound] if the ref has no such file.
func fileOf(ctx context.Context, s *Session, name, ref string) ([]byte, error) {
	rel, err := s.Of.Run.inCheckout(name)
	if err != nil {
		return nil, err
	}
	return s.client.file(ctx, rel, ref, maxPinned)
}

// inCheckout is the path of a file from the workspace; name is one as the step sees it.
func (r *Run) inCheckout(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.Workspace, full)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", fmt.Errorf("%s is not in the checkout", name)
	}
	return filepath.ToSlash(rel), nil
}

// readHere reads a file of the change that is judged: as git has it at the commit that started the pull request's job,
// since the job may have checked out the base to measure it; else the local file; else, in a job without a checkout,
// from GitHub.
func readHere(ctx context.Context, s *Session, path string) ([]byte, error) {
	if s != nil && s.Of.Run.Event == "pull_request" && s.Of.Run.SHA != "" {
		if b, err := gitfile.Show(ctx, path, s.Of.Run.SHA, maxPinned); err == nil {
			return b, nil
		}
	}
	b, err := limit.Text.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && s != nil && s.Of.HeadSHA() != "" {
		return fileOf(ctx, s, path, s.Of.HeadSHA())
	}
	return b, err
}

// Added names the deciding files that only the change has.
func (l *Pins) Added() []string { return l.which(func(p *Pinned) bool { return !p.There() }) }

// which names the deciding files of which is holds.
func (l *Pins) which(is func(p *Pinned) bool) []string {
	return lists.Map(lists.Filter(l.read, is), func(p *Pinned) string { return p.What })
}

// Said is the line of a comment that says at which ref the deciding files were read, and which of them the change has
// changed; empty if none was read at a base.
func (l *Pins) Said() string {
	var parts []string
	if at := l.which((*Pinned).There); len(at) > 0 {
		parts = append(parts, strings.Join(at, ", ")+": as of "+ShortRef(l.read[len(l.read)-1].Ref))
	}
	if changed := l.which(func(p *Pinned) bool { return p.There() && p.changed }); len(changed) > 0 {
		parts = append(parts, "changed here: "+strings.Join(changed, ", "))
	}
	if added := l.Added(); len(added) > 0 {
		parts = append(parts, "new here, counts once merged: "+strings.Join(added, ", "))
	}
	return strings.Join(parts, "; ")
}
