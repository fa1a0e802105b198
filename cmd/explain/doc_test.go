package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/comparison"
)

// documented are names that strangers asked explain doc for.
var documented = strings.Split("analyze bisect bubble calibrate capture comment compare coverage dep. diff exit 3 fail "+
	"gate graph history host ITL kernel launch load mcp merge NCCL nvtx OOM partial pass policy prefill preset rank_bubbles "+
	"rank_experts rank_straggler report scrub since steady step straggler stream suspected TP tpot ttft unit unknown "+
	"waiver warn whatif window --fail-on --steady", " ")

// TestEveryShownNameIsExplained takes every id, title and label from reports and comparisons, as data and as text, and asks explain
// doc for each. -args -long takes all captures.
func TestEveryShownNameIsExplained(t *testing.T) {
	names := map[string]string{}
	add := func(from string, list ...string) {
		for _, n := range list {
			if n = strings.TrimSpace(n); n != "" {
				names[n] = from
			}
		}
	}
	add("asked by strangers", documented...)
	asked := func(args ...string) []byte {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, quietEnv(&out, &errs, "")); code == exitUsage || code == exitInput {
			t.Fatalf("explain %q: exit %d: %s", args, code, errs.String())
		}
		return out.Bytes()
	}
	dir := t.TempDir()
	var folders []string
	for _, path := range explaintest.Traces(t) {
		name := explaintest.TraceName(path)
		if !longtest.On() && !slices.Contains([]string{"base", "head", "serving", "nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, name) {
			continue
		}
		folders = append(folders, filepath.Join(dir, name))
		text := asked(path, "--out", folders[len(folders)-1])
		add("text of "+name, labels(text)...)
		var r report.Report
		if err := json.Unmarshal(asked(folders[len(folders)-1], "--format", "json"), &r); err != nil {
			t.Fatal(err)
		}
		for i := range r.Metrics {
			add("metrics of "+name, r.Metrics[i].ID)
			add("metrics of "+name, slices.Collect(maps.Keys(r.Metrics[i].Labels))...)
		}
		for i := range r.Findings {
			add("findings of "+name, r.Findings[i].ID)
		}
		for i := range r.Warnings {
			add("warnings of "+name, r.Warnings[i].Code)
		}
		for i := range r.Sections {
			s := &r.Sections[i]
			add("sections of "+name, s.ID, s.Title, string(s.Status))
			for j := range s.Tables {
				add("tables of "+name, s.Tables[j].ID, s.Tables[j].Title)
				for _, c := range s.Tables[j].Columns {
					add("columns of "+name, c.ID, c.Title)
				}
			}
		}
	}
	for i := 1; i < len(folders); i++ {
		pair := filepath.Base(folders[i-1]) + " and " + filepath.Base(folders[i])
		add("comparison of "+pair, labels(asked("diff", folders[i-1], folders[i]))...)
		var c comparison.Comparison
		if err := json.Unmarshal(asked("diff", folders[i-1], folders[i], "--format", "json"), &c); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Reasons {
			add("reasons of "+pair, string(r.Code))
		}
		for _, r := range c.Warnings {
			add("warnings of "+pair, string(r.Code))
		}
		for _, g := range c.Gates {
			add("gates of "+pair, g.Rule, string(g.Verdict))
		}
	}
	if len(names) < 500 {
		t.Fatalf("only %d names", len(names))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"doc", "--", name}, quietEnv(&out, &errs, "")); code != exitOK || out.Len() == 0 {
			t.Errorf("%q (%s): exit %d: %s", name, names[name], code, errs.String())
		}
	}
	t.Logf("%d names", len(names))
}

// fact is a line that begins with a label: "GPU idle    10.9 %  …".
var fact = regexp.MustCompile(`(?m)^([A-Z][A-Za-z ()]+?) {2,}\S`)

// labels are the labels and the table headings of a text, and the ids that it prints in brackets.
func labels(text []byte) []string {
	var list []string
	for _, m := range fact.FindAllSubmatch(text, -1) {
		list = append(list, string(m[1]))
	}
	for _, m := range regexp.MustCompile(`\[([a-z_]+)\]`).FindAllSubmatch(text, -1) {
		list = append(list, string(m[1]))
	}
	return list
}
