package main

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/comparison"
)

// documented are names that strangers asked explain doc for.
var documented = strings.Split("analyze bisect bubble calibrate capture comment compare coverage dep. diff exit 3 fail "+
	"gate graph history host ITL kernel launch load mcp merge NCCL nvtx OOM partial pass policy prefill preset rank_bubbles "+
	"rank_experts rank_straggler report scrub since steady step straggler stream suspected TP tpot ttft unit unknown "+
	"waiver warn whatif window --fail-on --steady", " ")

// printedLabels are phrases in outputs that newcomers asked for.
var printedLabels = []string{"its own code", "other calls", "transfer in SendRecv", "files of this job", "Peak TFLOPs", "Peak TFLOPs of device 0", "Due to that", "Passed on by", "alike",
	"equal work", "Waiting", "kernel ncclDevKernel_SendRecv"}

// TestEveryShownNameIsExplained takes every id, title and label from reports and comparisons, as data and as text, and asks explain
// doc for each. -args -long takes all captures.
func TestEveryShownNameIsExplained(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	add := func(from string, list ...string) {
		for _, n := range list {
			if n = strings.TrimSpace(n); n != "" {
				names[n] = from
			}
		}
	}
	add("asked by strangers", documented...)
	add("a label", printedLabels...)
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
	printed := map[string]string{}
	labelled := func(from string, text []byte) {
		for _, l := range shown(text) {
			printed[l] = from
		}
	}
	read := func(path ...string) []byte {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, dir := range folders {
		for _, file := range []string{"report.md", "report.html"} {
			labelled(file+" of "+filepath.Base(dir), read(dir, file))
		}
	}
	for i := 1; i < len(folders); i++ {
		pair := filepath.Base(folders[i-1]) + " and " + filepath.Base(folders[i])
		out := filepath.Join(dir, "pair", pair)
		add("comparison of "+pair, labels(asked("diff", folders[i-1], folders[i], "--out", out))...)
		labelled("comparison.md of "+pair, read(out, "comparison.md"))
		labelled("diff.html of "+pair, read(out, "diff.html"))
		labelled("comment on "+pair, asked("gate", "comment", filepath.Join(out, "comparison.json")))
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
	for label, from := range printed {
		whole := found(label)
		for _, part := range strings.Split(label, ", ") { // one summary for several tables
			whole = whole || found(part) && strings.Contains(label, ", ")
			if !whole {
				break
			}
		}
		if !whole {
			t.Errorf("the label %q (%s) has no entry of its own", label, from)
		}
	}
	if len(printed) < 200 {
		t.Errorf("only %d labels", len(printed))
	}
	t.Logf("%d names, %d labels", len(names), len(printed))
}

// found reports whether a name is that of a page, or has an entry of its own, beyond being a word of some text.
func found(name string) bool {
	_, page := docs.ByName(name)
	return page || len(docs.Find(name)) > 0
}

var (
	// tags hold the labels of a page: headings, heads of tables and folded parts.
	tags   = regexp.MustCompile(`(?s)<(?:th|h[2-4]|summary|dt)\b[^>]*>(.*?)</(?:th|h[2-4]|summary|dt)>`)
	markup = regexp.MustCompile(`<[^>]*>`)
	// heads hold those of markdown: headings, and tables by their first line.
	heads = regexp.MustCompile(`(?m)^##+ (.*)$|<summary>(.*?)</summary>|^\*\*([^*]+)\*\*$`)
	table = regexp.MustCompile(`(?m)^\| (.*) \|\n\| :?-.*((?:\n\|.*)*)`)
)

// shown are the labels that a page or a markdown text prints in words of explain: no names of a capture, no numbers, no
// sentences.
func shown(text []byte) (list []string) {
	add := func(s string) {
		if s = strings.TrimSpace(html.UnescapeString(s)); s != "" && !strings.ContainsAny(s, "`<0123456789…") &&
			!strings.Contains(s, "**") && !strings.HasSuffix(s, ".") && len(s) < 100 && s != "–" && s != "(unnamed)" {
			list = append(list, s)
		}
	}
	for _, m := range tags.FindAllSubmatch(text, -1) {
		if !bytes.Contains(m[1], []byte("<code")) {
			add(markup.ReplaceAllString(string(m[1]), ""))
		}
	}
	for _, m := range heads.FindAllSubmatch(text, -1) {
		add(string(m[1]) + string(m[2]) + string(m[3]))
	}
	for _, m := range table.FindAllSubmatch(text, -1) {
		for _, head := range strings.Split(string(m[1]), " | ") {
			add(head)
		}
		for row := range strings.Lines(string(m[2])) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			add(cell)
		}
	}
	return list
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
