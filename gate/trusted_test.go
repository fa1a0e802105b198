package gate

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestCheckTrusted: a privileged event beside a checkout of the head is refused, however it came about.
func TestCheckTrusted(t *testing.T) {
	head, base, merge, run := sha("a"), sha("b"), sha("c"), sha("d")
	for name, c := range map[string]struct {
		event   string
		files   map[string]string
		refused bool
	}{
		"no_checkout":                 {"pull_request_target", nil, false},
		"base":                        {"pull_request_target", map[string]string{".git/HEAD": base + "\n"}, false},
		"sha_of_the_run":              {"pull_request_target", map[string]string{".git/HEAD": run}, false},
		"base_as_a_branch":            {"pull_request_target", map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": base}, false},
		"base_as_a_packed_branch":     {"pull_request_target", map[string]string{".git/HEAD": "ref: refs/heads/main", ".git/packed-refs": "# pack-refs with: peeled\n" + base + " refs/heads/main\n"}, false},
		"head":                        {"pull_request_target", map[string]string{".git/HEAD": head}, true},
		"merge_commit":                {"pull_request_target", map[string]string{".git/HEAD": merge}, true},
		"head_as_a_branch":            {"pull_request_target", map[string]string{".git/HEAD": "ref: refs/heads/x", ".git/refs/heads/x": head}, true},
		"newer_merge_commit":          {"pull_request_target", map[string]string{".git/HEAD": sha("e")}, true},
		"a_ref_that_leads_out":        {"pull_request_target", map[string]string{".git/HEAD": "ref: ../../base", "base": base}, true},
		"a_branch_that_is_not_there":  {"pull_request_target", map[string]string{".git/HEAD": "ref: refs/heads/x"}, true},
		"head_in_a_folder":            {"pull_request_target", map[string]string{".git/HEAD": base, "head/.git/HEAD": head}, true},
		"another_repository_beside":   {"pull_request_target", map[string]string{".git/HEAD": base, "tool/.git/HEAD": sha("f")}, false},
		"head_as_a_worktree":          {"pull_request_target", map[string]string{".git/HEAD": base, "head/.git": "gitdir: ../.git/worktrees/head\n", ".git/worktrees/head/HEAD": head}, true},
		"head_as_a_branch_worktree":   {"pull_request_target", map[string]string{".git/HEAD": base, "head/.git": "gitdir: ../.git/worktrees/head", ".git/worktrees/head/HEAD": "ref: refs/heads/x", ".git/worktrees/head/commondir": "../..\n", ".git/refs/heads/x": head}, true},
		"head_before_the_base":        {"pull_request_target", map[string]string{".git/HEAD": base, ".git/logs/HEAD": base + " " + head + " x <x@x> 1 +0000\tcheckout: moving from main to " + head + "\n" + head + " " + base + " x <x@x> 2 +0000\tcheckout: moving\n"}, true},
		"unknown_merge_ref_before":    {"pull_request_target", map[string]string{".git/HEAD": base, ".git/logs/HEAD": base + " " + sha("e") + " x <x@x> 1 +0000\tcheckout: moving from main to refs/remotes/pull/7/merge\n"}, true},
		"unknown_merge_ref_in_folder": {"pull_request_target", map[string]string{".git/HEAD": base, "pr/.git/HEAD": sha("e"), "pr/.git/logs/HEAD": base + " " + sha("e") + " x <x@x> 1 +0000\tcheckout: moving from main to refs/remotes/pull/7/merge\n"}, true},
		"only_the_base_before":        {"pull_request_target", map[string]string{".git/HEAD": base, ".git/logs/HEAD": sha("0") + " " + base + " x <x@x> 1 +0000\tcheckout: moving from master to main\n"}, false},
		"pull_request_may":            {"pull_request", map[string]string{".git/HEAD": head}, false},
		"workflow_run_without":        {"workflow_run", map[string]string{".git/HEAD": run}, false},
		"workflow_run_with_the_head":  {"workflow_run", map[string]string{".git/HEAD": head}, true},
		"workflow_run_head_in_folder": {"workflow_run", map[string]string{"x/.git/HEAD": head}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, text := range c.files {
				path := filepath.Join(dir, filepath.FromSlash(f))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &Run{Event: c.event, Repository: "octo/llm", Workspace: dir, SHA: run}
			if c.event == "workflow_run" {
				r.Trigger = &Trigger{HeadSHA: head, HeadRepo: Repo{Name: "mallory/llm"}}
			} else {
				r.Pull = &Pull{Head: Branch{SHA: head}, Base: Branch{SHA: base}, MergeSHA: merge}
			}
			err := r.CheckTrusted()
			if (err != nil) != c.refused {
				t.Errorf("error %v", err)
			}
			if err != nil && (!contains(err.Error(), "refused: "+c.event) || !contains(err.Error(), "gate on pull_request instead") || contains(err.Error(), dir)) {
				t.Errorf("error %v", err)
			}
		})
	}
	if err := (&Run{Event: "pull_request_target"}).CheckTrusted(); err == nil {
		t.Error("a payload without a pull request passes")
	}
	if err := (&Run{Event: "pull_request_target", Pull: &Pull{}}).CheckTrusted(); err != nil {
		t.Errorf("without a workspace: %v", err)
	}
	// A workflow_run of the repository itself measures its own commits.
	own := t.TempDir()
	if err := os.MkdirAll(filepath.Join(own, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, ".git", "HEAD"), []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Run{Event: "workflow_run", Repository: "octo/llm", Workspace: own, Trigger: &Trigger{HeadSHA: head, HeadRepo: Repo{Name: "Octo/LLM"}}}).CheckTrusted(); err != nil {
		t.Errorf("own commit: %v", err)
	}
}

// An artifact in the workspace may hold a .git folder of any content: to look at it takes memory in proportion to its
// size.
func TestCheckTrustedOfHostileFiles(t *testing.T) {
	const size = 8 << 20
	for name, text := range map[string]string{"lines": "\n", "fields": "a ", "one_word": "a"} {
		dir := t.TempDir()
		for _, file := range []string{"x/.git/HEAD", "x/.git/logs/HEAD"} {
			path := filepath.Join(dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.Repeat([]byte(text), size/len(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := &Run{Event: "workflow_run", Repository: "octo/llm", Workspace: dir,
			Trigger: &Trigger{HeadSHA: sha("a"), HeadRepo: Repo{Name: "mallory/llm"}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := r.CheckTrusted(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2*6*size {
			t.Errorf("%s: two files of %d MiB took %d MiB", name, size>>20, took>>20)
		}
	}
}
