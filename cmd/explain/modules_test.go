package main

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestModulesHaveAReason: each direct requirement says what it is for, and those that tests alone need do not reach the program.
func TestModulesHaveAReason(t *testing.T) {
	f, err := os.Open("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := strings.Fields(string(out))
	direct := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "require "))
		module, why, _ := strings.Cut(line, "//")
		path, version, ok := strings.Cut(strings.TrimSpace(module), " ")
		if why = strings.TrimSpace(why); !ok || !strings.HasPrefix(version, "v") || strings.HasPrefix(why, "indirect") {
			continue
		}
		direct++
		if len(why) < 10 {
			t.Errorf("%s has no line that says why it is there", path)
		}
		if tests := strings.HasPrefix(why, "tests: "); tests == slices.Contains(linked, path) {
			t.Errorf("%s: %q, and it is in the program: %v", path, why, !tests)
		}
	}
	if direct < 10 {
		t.Errorf("only %d requirements", direct)
	}
}
