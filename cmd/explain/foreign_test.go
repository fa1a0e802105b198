//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestForeignFilesStay: no command replaces a file that explain did not write, and each replaces its own.
func TestForeignFilesStay(t *testing.T) {
	trace, err := filepath.Abs("../../testdata/tiny.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		file string // of somebody else
		args func(out string) []string
		code int // where nothing is in the way
	}{
		{"report", "report.md", func(out string) []string { return []string{"report", trace, "--out", out} }, exitOK},
		{"report over another tool's", "report.json", func(out string) []string { return []string{"report", trace, "--out", out} }, exitOK},
		{"diff", "comparison.md", func(out string) []string { return []string{"diff", trace, trace, "--out", out} }, exitInconclusive},
		{"gate", "summary.md", func(out string) []string {
			return []string{"gate", "--base", trace, "--head", trace, "--out", out}
		}, exitInconclusive},
		{"load", "load.json", func(out string) []string {
			return []string{"load", "--url", "http://127.0.0.1:1", "--health-timeout", "200ms", "--out", out + string(filepath.Separator)}
		}, exitInput},
	} {
		out := filepath.Join(t.TempDir(), "out")
		file := filepath.Join(out, x.file)
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		const precious = "my own words"
		if err := os.WriteFile(file, []byte(precious), 0o644); err != nil {
			t.Fatal(err)
		}
		code, said := runHere(t, x.args(out)...)
		if code != exitUsage || !strings.Contains(said, x.file+" is there, and explain did not write it") {
			t.Errorf("%s: exit code %d: %s", x.name, code, said)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != precious {
			t.Errorf("%s: the file is %q now: %v", x.name, b, err)
		}
		if names := explaintest.FilesIn(t, out); len(names) != 1 {
			t.Errorf("%s: %q are there", x.name, names)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time over its own
			if code, said := runHere(t, x.args(out)...); code != x.code {
				t.Errorf("%s: exit code %d: %s", x.name, code, said)
			}
		}
	}
}

// runHere runs explain in this process, outside of GitHub.
func runHere(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }})
	return code, out.String()
}
