package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/gate/gatetest"
)

// TestTheDefaultBranchIsThatOfTheRemote: where GitHub cannot be asked, git knows a tag called main, which anybody who
// may push has made, before the branch of the remote.
func TestTheDefaultBranchIsThatOfTheRemote(t *testing.T) {
	s, _, _ := sessionOf(t, gatetest.New(gatetest.Scenario{Denied: []string{"contents: read"}}), SessionOptions{Mode: Never})
	dir := s.Of.Run.Workspace
	s.Of = Subject{Run: &Run{Event: "push", Workspace: dir, Ref: "refs/heads/feature", DefaultBranch: "main", Push: &Push{Before: sha("e"), After: sha("f"), Ref: "feature"}}}
	t.Chdir(dir)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	policy := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "p.yml")
		git("commit", "-qm", text)
	}
	git("init", "-q", "-b", "feature")
	policy("strict")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	policy("lax")
	git("tag", "main")
	pins := Pins{Session: s}
	if p, err := pins.Read(t.Context(), "policy", "p.yml"); err != nil || string(p.Data) != "strict" {
		t.Errorf("%+v, %v; want strict", p, err)
	}
	git("update-ref", "-d", "refs/remotes/origin/main")
	if p, err := pins.Read(t.Context(), "policy", "p.yml"); err == nil {
		t.Errorf("%+v without the branch of the remote", p)
	}
}
