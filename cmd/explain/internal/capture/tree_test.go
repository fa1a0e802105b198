//go:build linux

package capture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell starts a script as a process of this name, in a session of its own, with the mark.
func shell(t *testing.T, dir, name, marker, script string) *exec.Cmd {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, name)
	if err := os.Symlink(sh, path); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "-c", script)
	c.Dir, c.Env = dir, append(os.Environ(), marker)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it does not come")
}

// An agent of nsys that is about to end removes its file; one that hangs is killed, and so is a program at once.
func TestAgentsOfNsysRemoveTheirFiles(t *testing.T) {
	dir := t.TempDir()
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	marker := fmt.Sprintf("%s=test-%d-", markerName, time.Now().UnixNano())
	agent := shell(t, dir, "nsys", marker, "touch agent wait; sleep 0.3; rm agent; while [ -e wait ]; do sleep 0.1; done")
	hangs := shell(t, dir, "nsys-hangs", marker, "touch hangs; while :; do sleep 0.1; done")
	program := shell(t, dir, "program", marker, "touch runs; while :; do sleep 0.1; done; touch late")
	for _, name := range []string{"agent", "hangs", "runs"} {
		waitUntil(t, func() bool { return there(name) || name == "agent" && there("wait") })
	}
	if err := os.Remove(filepath.Join(dir, "wait")); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	killTree(0, marker)
	if err := agent.Wait(); err != nil || there("agent") {
		t.Errorf("the agent: %v, its file is there: %t", err, there("agent"))
	}
	for _, c := range []*exec.Cmd{hangs, program} {
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s: %v", c.Path, err)
		}
	}
	if took := time.Since(begun); took < settleLimit {
		t.Errorf("killed after %s", took)
	}
}

// The agent of nsys leads a session below nsys too, and is there before the program.
func TestAgentIsNotTheProgram(t *testing.T) {
	dir := t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(sh, filepath.Join(dir, "nsys-agent")); err != nil {
		t.Fatal(err)
	}
	c := shell(t, dir, "profiler", "X=1", "setsid ./nsys-agent -c 'sleep 60; :' & sleep 0.3; setsid sh -c 'sleep 60; :' & wait")
	defer killTree(c.Process.Pid, "X=never")
	var p process
	waitUntil(t, func() bool {
		p = programBelow(c.Process.Pid)
		return p.pid > 0 && !strings.HasPrefix(p.String(), "setsid")
	})
	if name := p.String(); !strings.HasPrefix(name, "sh (pid ") {
		t.Errorf("the program is %s", name)
	}
}
