package analyze_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
)

// captureOf analyses a shared capture, or skips where it is not there.
func captureOf(t *testing.T, name string, w analyze.WindowOptions) report.Capture {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the real captures are not here")
	}
	r, err := analyze.Run(context.Background(), path, analyze.Options{Window: w})
	if err != nil {
		t.Fatal(err)
	}
	return r.Report.Capture
}

// Two exports of one capture are one capture, across the oldest schema too; other captures are others.
func TestExportsOfOneCapture(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"cs336_hoponga_exp2023_4", "mordred_native_old_b", "fuser_h200_report1", "fuser_h200_report2", "rodinia_report2_native",
		"rodinia_report3_native", "nsysai_healthy_1pct", "alpa_r1_memcpy_nokernel", "centerformer_baseline_nvtxonly",
	} {
		id := captureOf(t, name, analyze.WindowOptions{})
		if id.Content == nil {
			t.Fatalf("%s has no identity", name)
		}
		if other := seen[*id.Content]; other != "" {
			t.Errorf("%s and %s are one", other, name)
		}
		seen[*id.Content] = name
	}
	for _, pair := range [][2]string{
		{"cs336_hoponga_exp2023_4", "cs336_hoponga_exp2024_2"}, {"mordred_native_old_b", "mordred_exp2023_4"},
	} {
		a, b := captureOf(t, pair[0], analyze.WindowOptions{}), captureOf(t, pair[1], analyze.WindowOptions{})
		if *a.Content != *b.Content {
			t.Errorf("%s and %s are not the same capture", pair[0], pair[1])
		}
		if a.SessionStart != nil && b.SessionStart != nil && *a.SessionStart != *b.SessionStart {
			t.Errorf("%s and %s are not of one session", pair[0], pair[1])
		}
	}
}

// Two windows of one session have their own events and one session.
func TestWindowsOfOneSession(t *testing.T) {
	at := func(ms int) *time.Duration { d := time.Duration(ms) * time.Millisecond; return &d }
	a := captureOf(t, "nsysai_mfu_2gpu_before", analyze.WindowOptions{To: at(150)})
	b := captureOf(t, "nsysai_mfu_2gpu_before", analyze.WindowOptions{From: at(150)})
	if *a.Content == *b.Content {
		t.Error("windows of other events have the same content")
	}
	if *a.SessionStart != *b.SessionStart {
		t.Error("windows of one session are of two")
	}
}
