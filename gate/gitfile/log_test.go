package gitfile

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOwners(t *testing.T) {
	const text = `# who to ask
*            @all
*.py         @python   # of any folder
/kernels/    @kernels @gpu
docs/*       @docs
apps/**/gen  @gen
nobody.txt
[Section]
`
	for file, want := range map[string][]string{
		"README":              {"@all"},
		"a/b/c.py":            {"@python"},
		"kernels/x/y.py":      {"@kernels", "@gpu"},
		"other/kernels/y":     {"@all"},
		"docs/a.md":           {"@docs"},
		"docs/deep/a.md":      {"@all"},
		"apps/x/y/gen/f.go":   {"@gen"},
		"deep/nobody.txt":     nil,
		"kernels":             {"@all"},
		"nobody.txtx":         {"@all"},
		"apps/gen/kernels.py": {"@gen"},
	} {
		if got := Owners(text, []string{file}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	if got := Owners(text, []string{"a.py", "b.py", "docs/x"}); !slices.Equal(got, []string{"@python", "@docs"}) {
		t.Errorf("each owner once: %v", got)
	}
}

func TestLog(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		c := exec.Command("git", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	var shas []string
	for _, name := range []string{"one", "two words", "three"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", "adds "+name)
		shas = append(shas, git("rev-parse", "HEAD"))
	}
	got, err := Log(context.Background(), dir, shas[0], shas[2])
	if err != nil || len(got) != 2 || got[0].SHA != shas[1] || got[1].Subject != "adds three" || !slices.Equal(got[0].Files, []string{"two words"}) {
		t.Errorf("%q %v", got, err)
	}
	if _, err := Log(context.Background(), dir, "--all", shas[0]); err == nil {
		t.Error("an option was taken for a commit")
	}
	if _, err := Log(context.Background(), dir, strings.Repeat("a", 40), shas[0]); err == nil {
		t.Error("an unknown commit is an error")
	}
}

// A folder that is no checkout, or a git that is not there, is no missing commit.
func TestAFailureOfGitIsNoAnswer(t *testing.T) {
	missing := errors.New("fetch it")
	ctx, dir := context.Background(), t.TempDir()
	c := exec.Command("git", "init", "-q")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := Resolve(ctx, dir, "v1", missing); err != missing {
		t.Errorf("a checkout without the commit: %v", err)
	}
	for name, set := range map[string][2]string{"not a git repository": {"GIT_DIR", t.TempDir()}, "not found in": {"PATH", ""}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(set[0], set[1])
			_, err := Resolve(ctx, dir, "v1", missing)
			if err == nil || errors.Is(err, missing) || !strings.Contains(err.Error(), name) {
				t.Errorf("Resolve: %v", err)
			}
			if _, err := Known(ctx, dir, "v1", missing); err != missing {
				t.Errorf("Known: %v", err)
			}
			if _, err := FirstParents(ctx, dir, "aaaaaaa", "bbbbbbb"); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("FirstParents: %v", err)
			}
		})
	}
}

// TestTrackedWhereGitFails: a history whose checkout git refuses to read may be one that the change wrote; outside of
// any checkout nobody's change is.
func TestTrackedWhereGitFails(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	run := exec.Command("git", "init", "-q", dir)
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	in, beside := filepath.Join(dir, "history.db"), filepath.Join(out, "history.db")
	for _, file := range []string{in, beside} {
		if err := os.WriteFile(file, []byte("a history"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	if Tracked(ctx, in) || Tracked(ctx, beside) {
		t.Error("tracked, before anything was added")
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[no config"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Tracked(ctx, in) {
		t.Error("not tracked, says a git that cannot read its config")
	}
	if Tracked(ctx, filepath.Join(dir, "missing.db")) || Tracked(ctx, beside) {
		t.Error("tracked, and not there or not in the checkout")
	}
}

// TestATagIsNoBranchOfARemote: whoever may push tags could call one refs/remotes/…, which git takes where no branch of a
// remote has that name: also for a base that is named by its commit.
func TestATagIsNoBranchOfARemote(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)
		out, err := run(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(policy string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(policy), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-qm", policy)
		return git("rev-parse", "HEAD")
	}
	git("init", "-q", "-b", "main")
	base := commit("strict")
	git("checkout", "-q", "-b", "change", "--track", "main")
	commit("lax")
	git("tag", "refs/remotes/"+base)
	git("tag", "refs/remotes/origin/main")
	for _, ref := range []string{base, base + "~0", "main", "change~1", "@{upstream}"} {
		if b, err := Show(t.Context(), filepath.Join(dir, "p.yml"), ref, 100); err != nil || string(b) != "strict" {
			t.Errorf("%s: %q %v; want strict", ref, b, err)
		}
	}
	for _, ref := range []string{"origin/main", "refs/remotes/origin/main", "refs/remotes/origin/main~0"} {
		if b, err := Show(t.Context(), filepath.Join(dir, "p.yml"), ref, 100); err == nil {
			t.Errorf("%s: %q without such a branch", ref, b)
		}
	}
	if c, err := Fork(t.Context(), dir, "main"); err == nil {
		t.Errorf("Fork: %s without such a branch", c)
	}
	git("update-ref", "refs/remotes/origin/main", base)
	for _, ref := range []string{"origin/main", "refs/remotes/origin/main~0"} {
		if b, err := Show(t.Context(), filepath.Join(dir, "p.yml"), ref, 100); err != nil || string(b) != "strict" {
			t.Errorf("%s: %q %v; want strict", ref, b, err)
		}
	}
	if c, err := Fork(t.Context(), dir, "main"); err != nil || c != base {
		t.Errorf("Fork: %s %v", c, err)
	}
}
