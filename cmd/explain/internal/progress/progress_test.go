package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Stages that read count bytes and have a rate, others rows or files.
func TestLines(t *testing.T) {
	p := New(&bytes.Buffer{}, false, false)
	now := p.start.Add(2 * time.Second)
	p.began["read"] = p.start
	for _, x := range []struct {
		stage string
		count int64
		want  string
	}{
		{"attribute", 0, "attribute"}, {"evidence", 3, "evidence, 3 files"}, {"kernels", 1200, "kernels, 1,200 rows"},
		{"read", 4_194_304, "read, 4.194 MB at 2.097 MB/s"}, {"read: done", 4_194_304, "read: done, 4.194 MB at 2.097 MB/s"},
	} {
		if got := strings.ReplaceAll(p.line(x.stage, x.count, now), "\u202f", " "); got != x.want {
			t.Errorf("%s: %q, want %q", x.stage, got, x.want)
		}
	}
}

// In a pipe nothing is shown; with --verbose each stage has a line when it begins.
func TestPipesStayQuiet(t *testing.T) {
	var quiet, verbose bytes.Buffer
	for _, p := range []*Bar{New(&quiet, false, false), New(&verbose, false, true)} {
		p.Update("read", 10)
		p.Update("read", 20)
		p.Update("attribute", 0)
		p.Stop()
	}
	if quiet.Len() > 0 || strings.Count(verbose.String(), "\n") != 2 || !strings.Contains(verbose.String(), "attribute") {
		t.Errorf("%q, %q", quiet.String(), verbose.String())
	}
}

func TestLoadSaysALineEachTenSeconds(t *testing.T) {
	var b bytes.Buffer
	p := NewLoad(&b, false, true)
	for s := range 25 {
		p.Update(load.Progress{Stage: "load", Elapsed: time.Duration(s) * time.Second, Done: int64(s), Sent: int64(s + 2), Total: 100})
	}
	p.Stop()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "load: 10 of 100 requests, 2 in flight, 0 failed") {
		t.Errorf("%q", lines)
	}
}

// In a pipe a wait for the server is said once, unless it is short or --quiet is given.
func TestWaitIsSaidOnce(t *testing.T) {
	for quiet, want := range map[bool]string{false: "waiting for the server (--health-timeout)\n", true: ""} {
		var b bytes.Buffer
		p := NewLoad(&b, quiet, false)
		for s := range 25 {
			p.Update(load.Progress{Stage: "wait", Elapsed: time.Duration(s) * time.Second})
			if s == 9 && b.Len() > 0 {
				t.Errorf("after 9 s: %q", b.String())
			}
		}
		if p.Stop(); b.String() != want {
			t.Errorf("quiet %v: %q, want %q", quiet, b.String(), want)
		}
	}
}
