package gitfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShowFollowsNoFolderOfTheChange holds that a file is read by its path at the ref: a change that makes its folder a
// link, or a submodule, would else choose what is read, and so would one with a tag that is called as the ref.
func TestShowFollowsNoFolderOfTheChange(t *testing.T) {
	root := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always"}, args...)
		out, err := run(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(dir string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git(dir, "add", "-A")
		git(dir, "commit", "-qm", "x")
	}
	theirs, ours := filepath.Join(root, "theirs"), filepath.Join(root, "ours")
	git(root, "init", "-q", "-b", "main", theirs)
	git(root, "init", "-q", "-b", "main", ours)
	commit(theirs, map[string]string{"policy.yml": "lax"})
	commit(ours, map[string]string{"ci/policy.yml": "strict", "examples/policy.yml": "example"})
	base := git(ours, "rev-parse", "HEAD")

	read := func(path, ref string) string {
		t.Helper()
		b, err := Show(t.Context(), path, ref, 100)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	check := func(what string) {
		t.Helper()
		for _, here := range []string{ours, root} { // inside of the checkout and outside
			t.Chdir(here)
			for _, ref := range []string{base, "main"} {
				path, err := filepath.Rel(here, filepath.Join(ours, "ci", "policy.yml"))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range []string{path, filepath.Join(ours, "ci", "policy.yml")} {
					if got := read(path, ref); got != "strict" {
						t.Errorf("%s: %s at %s: %q, want strict", what, path, ref, got)
					}
				}
			}
		}
	}
	check("as it is")
	git(ours, "checkout", "-q", "-b", "change")
	git(ours, "rm", "-rq", "ci")
	check("without the folder")
	if err := os.Symlink("examples", filepath.Join(ours, "ci")); err != nil {
		t.Skip(err)
	}
	check("a link to another folder")
	for _, err := range []error{os.Remove(filepath.Join(ours, "ci")), os.Symlink(theirs, filepath.Join(ours, "ci"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check("a link to another checkout")
	if err := os.Remove(filepath.Join(ours, "ci")); err != nil {
		t.Fatal(err)
	}
	git(ours, "submodule", "add", "-q", theirs, "ci")
	git(ours, "commit", "-qam", "x")
	check("a submodule")

	git(ours, "update-ref", "refs/remotes/origin/main", base)
	git(ours, "rm", "-rqf", "ci")
	commit(ours, map[string]string{"ci/policy.yml": "lax"})
	git(ours, "tag", "origin/main")
	git(ours, "branch", "origin/main")
	t.Chdir(ours)
	if got := read("ci/policy.yml", "origin/main"); got != "strict" {
		t.Errorf("a tag called as the branch of the remote: %q, want strict", got)
	}
	if _, err := Show(t.Context(), filepath.Join(root, "policy.yml"), "main", 100); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a file outside of all checkouts: %v, want an error: no ref is without it", err)
	}
	git(root, "clone", "-q", theirs, filepath.Join(ours, "nested")) // a checkout of its own, as jobs put beside others
	if got := read("nested/policy.yml", "main"); got != "lax" {
		t.Errorf("a nested checkout: %q, want its own file, lax", got)
	}
}

// TestShowFollowsLinksOfTheRef: a repository may keep its policy behind a link. That of the ref counts.
func TestShowFollowsLinksOfTheRef(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)
		if _, err := run(t.Context(), dir, args...); err != nil {
			t.Fatal(args, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"strict": "strict", "lax": "lax"} {
		must(os.Mkdir(name, 0o755))
		must(os.WriteFile(filepath.Join(name, "p.yml"), []byte(text), 0o644))
	}
	link := func(to string) {
		t.Helper()
		for name, to := range map[string]string{"ci": to, "p.yml": filepath.Join(to, "p.yml")} {
			_ = os.Remove(name)
			if err := os.Symlink(to, name); err != nil {
				t.Skip(err)
			}
		}
		git("add", "-A")
		git("commit", "-qm", to)
	}
	git("init", "-q", "-b", "main", ".")
	link("strict")
	git("checkout", "-q", "-b", "change")
	link("lax")
	for _, path := range []string{"ci/p.yml", "p.yml"} {
		for ref, want := range map[string]string{"main": "strict", "change": "lax"} {
			if b, err := Show(t.Context(), path, ref, 100); err != nil || string(b) != want {
				t.Errorf("%s at %s: %q %v; want %s", path, ref, b, err, want)
			}
		}
	}
	for _, path := range []string{"ci/no.yml", "no folder/p.yml", "a\nb", "strict/p.yml/x"} {
		if _, err := Show(t.Context(), path, "main", 100); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := Show(t.Context(), "strict", "main", 100); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Show(t.Context(), "ci/p.yml", "main", 5); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is too large: %v", err)
	}
}
