package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// restRows are rows about what is said, left out, or done by another program.
func (s *seedRun) restRows(row func(string, func(*testing.T))) {
	const serving = "../../testdata/serving.sqlite"
	row("005_no_benchmark_claims", func(t *testing.T) {
		help, _ := said("--help")
		claim := regexp.MustCompile(`(?i)faster than|\b[0-9]+([.,][0-9]+)? ?(x|×|times) (faster|speed-?up|quicker)`)
		for name, text := range map[string]string{"README.md": fileOf(t, "../../README.md"), "--help": help} {
			if found := claim.FindString(text); found != "" {
				t.Errorf("%s claims %q", name, found)
			}
		}
	})
	row("076_the_example_says_it_is_synthetic", func(t *testing.T) {
		if !strings.Contains(fileOf(t, "../../README.md"), "(examples/serving/report.md) | of a synthetic vLLM server") {
			t.Error("the README does not say whose the report of examples/serving is")
		}
	})
	row("159_load_and_store_efficiency", func(t *testing.T) {
		const column = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
		cells := []string{`,"` + column + `"`, `,"%"`}
		var wide strings.Builder
		for line := range strings.Lines(fileOf(t, "../../testdata/evidence/ncu/raw.csv")) {
			if strings.HasPrefix(line, `"`) {
				cell := `,"87.5"`
				if len(cells) > 0 {
					cell, cells = cells[0], cells[1:]
				}
				line = strings.TrimRight(line, "\r\n") + cell + "\n"
			}
			wide.WriteString(line)
		}
		path := filepath.Join(t.TempDir(), "raw.csv")
		if err := os.WriteFile(path, []byte(wide.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, m := range seedReport(t, serving, "--ncu", path).Metrics {
			if m.ID == "ncu.sector_use_ratio" && m.Labels["access"] == "load" {
				if read++; *m.Value != 0.875 {
					t.Errorf("%v: %v of each sector, want 87.5 %%", m.Labels, *m.Value)
				}
			}
		}
		if read == 0 {
			t.Error("the column is not read")
		}
	})
	row("182_qdrep_is_exported_by_nsys", func(t *testing.T) {
		dir := t.TempDir()
		abs, err := filepath.Abs(serving)
		if err != nil {
			t.Fatal(err)
		}
		write := func(name, text string, mode os.FileMode) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
			return path
		}
		nsys := write("nsys", "#!/bin/sh\n"+`while [ $# -gt 0 ]; do [ "$1" = --output ] && cp "`+abs+`" "$2"; shift; done`+"\n", 0o755)
		timeline := write("timeline.qdrep", "a report of nsys 2020", 0o644)
		var b, errs bytes.Buffer
		code := run(context.Background(), []string{timeline}, &env{In: strings.NewReader(""), Out: &b, Err: &errs,
			Getenv: func(k string) string { return map[string]string{"NSYS": nsys}[k] }})
		if code != exitOK || !strings.Contains(b.String(), "353.3 ms") {
			t.Errorf("exit %d, want the window of 353.3 ms: %s%s", code, b.String(), errs.String())
		}
	})
}

// The key one-liners of profilemate's page read lists and objects, whatever the capture holds: none of them is null.
func TestSummaryKeepsItsShapeWithoutKernels(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	says(t, exitOK, "", tracetest.Tiny(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_KERNEL")).WriteTB(t), "--out", out)
	var s map[string]json.RawMessage
	if err := json.Unmarshal([]byte(fileOf(t, filepath.Join(out, "summary.json"))), &s); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"components": "{}", "top_kernels": "[]"} {
		if string(s[key]) != want {
			t.Errorf("%s is %s, want %s", key, s[key], want)
		}
	}
	var p struct {
		PrefillDecode map[string]map[string]*float64 `json:"prefill_decode"`
	}
	if err := json.Unmarshal([]byte(fileOf(t, filepath.Join(out, "summary.json"))), &p); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"prefill", "decode"} {
		if total, ok := p.PrefillDecode[phase]["total_ms"]; !ok || total != nil && *total <= 0 {
			t.Errorf("%s: %v", phase, p.PrefillDecode[phase])
		}
	}
}
