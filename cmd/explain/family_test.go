package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// familySample are the captures of a short run: of every kind that matters, and quick to read.
var familySample = []string{"alpa_r1_memcpy_nokernel", "nsysai_mfu_2gpu_after", "nsysai_mfu_2gpu_before", "tiny"}

// TestFamily puts every capture against every other, in diff, in gate and by an agent: none ends in anything but pass,
// fail or inconclusive, and gate leaves its comment. -args -long takes all captures.
func TestFamily(t *testing.T) {
	t.Parallel()
	traces := explaintest.Traces(t)
	if more, err := filepath.Glob(explaintest.Shared("traces", "ranks", "*.sqlite")); err == nil {
		traces = append(traces, more...)
	}
	dir := t.TempDir()
	var reports []string
	for _, path := range traces {
		name := explaintest.TraceName(path)
		if !longtest.On() && !sampled(name) {
			continue
		}
		var out, errs bytes.Buffer
		code := run(context.Background(), []string{"report", path, "--format", "json"}, quietEnv(&out, &errs, ""))
		if code != exitOK {
			t.Fatalf("report %s: exit %d: %s", name, code, errs.String())
		}
		file := name + ".json"
		if err := os.WriteFile(filepath.Join(dir, file), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		reports = append(reports, file)
	}
	counts := map[int]int{}
	var questions strings.Builder
	for i, base := range reports {
		for k, head := range reports {
			what := base + " → " + head
			b, h := filepath.Join(dir, base), filepath.Join(dir, head)
			var errs bytes.Buffer
			var out bytes.Buffer
			diffed := run(context.Background(), []string{"diff", b, h}, quietEnv(&out, &errs, ""))
			folder := filepath.Join(dir, "gate")
			gated := run(context.Background(), []string{"gate", "--base", b, "--head", h, "--out", folder}, quietEnv(&out, &errs, ""))
			if diffed != exitOK && diffed != exitFail && diffed != exitInconclusive || gated != diffed || strings.Contains(errs.String(), "internal error") {
				t.Errorf("%s: diff exit %d, gate exit %d: %s", what, diffed, gated, errs.String())
			}
			if comment, err := os.ReadFile(filepath.Join(folder, "comment.md")); err != nil || len(comment) < 100 {
				t.Errorf("%s: comment of %d bytes, %v", what, len(comment), err)
			}
			counts[diffed]++
			fmt.Fprintf(&questions, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"compare","arguments":{"base":%q,"head":%q}}}`+"\n",
				i*len(reports)+k, base, head)
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"mcp", dir}, quietEnv(&out, &errs, questions.String())); code != exitOK {
		t.Fatalf("mcp: exit %d: %s", code, errs.String())
	}
	answers := 0
	for d := json.NewDecoder(&out); d.More(); answers++ {
		var a struct {
			ID     int
			Error  any
			Result struct{ IsError bool }
		}
		if err := d.Decode(&a); err != nil || a.Error != nil || a.Result.IsError {
			t.Errorf("mcp: %s → %s: %+v, %v", reports[a.ID/len(reports)], reports[a.ID%len(reports)], a, err)
		}
	}
	if answers != len(reports)*len(reports) {
		t.Errorf("mcp: %d answers to %d questions", answers, len(reports)*len(reports))
	}
	t.Logf("%d captures, %d pairs: exit 0 %d, exit 1 %d, exit 4 %d", len(reports), answers, counts[exitOK], counts[exitFail], counts[exitInconclusive])
}

func sampled(name string) bool {
	for _, s := range familySample {
		if s == name {
			return true
		}
	}
	return false
}

func quietEnv(out, errs *bytes.Buffer, in string) *env {
	return &env{In: strings.NewReader(in), Out: out, Err: errs, Getenv: func(string) string { return "" }}
}
