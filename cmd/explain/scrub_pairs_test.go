package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestHiddenNamesKeepTheVerdict: a pair of captures and the same pair with hidden names are judged alike: exit code, verdict, reasons and
// gates, or if those of kernels are hidden too, exit code and verdict. Pairs are a capture and a copy of it whose kernels take a quarter longer, and captures of one program; -args
// -long takes every shared capture.
func TestHiddenNamesKeepTheVerdict(t *testing.T) {
	t.Parallel()
	shared := "../../../shared/"
	pairs := [][2]string{{"../../testdata/base.sqlite", "../../testdata/head.sqlite"}, {"../../testdata/serving.sqlite", ""}}
	if longtest.On() {
		var all []string
		for _, glob := range []string{"../../testdata/*.sqlite", shared + "traces/*.sqlite", shared + "traces/ranks/*.sqlite"} {
			found, err := filepath.Glob(glob)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
		for _, path := range all {
			pairs = append(pairs, [2]string{path, ""})
		}
		for _, p := range [][2]string{{"traces/nsysai_mfu_2gpu_before.sqlite", "traces/nsysai_mfu_2gpu_after.sqlite"}, {"traces/aip_baseline_nvtx.sqlite", "traces/aip_opt1.sqlite"},
			{"traces/fuser_h200_report1.sqlite", "traces/fuser_h200_report2.sqlite"}, {"traces/cs336zx_2_7B_clean.sqlite", "traces/cs336zx_2_7B_nvtx.sqlite"},
			{"kineto/hta_control.json.gz", "kineto/hta_test.json.gz"}, {"kineto/h100_qwen.json.gz", "kineto/mi300_qwen.json.gz"},
			{"kineto/vllm_decode_full.json.gz", "kineto/sglang_decode.json.gz"}} {
			if _, err := os.Stat(shared + p[0]); err == nil {
				pairs = append(pairs, [2]string{shared + p[0], shared + p[1]})
			}
		}
	}
	for i, p := range pairs {
		t.Run(fmt.Sprintf("%d %s", i, filepath.Base(p[0])), func(t *testing.T) {
			dir := t.TempDir()
			if p[1] == "" {
				p[1] = slowerCapture(t, p[0], filepath.Join(dir, "slower.sqlite"))
			}
			for _, how := range []string{"hash", "all"} {
				var hidden [2]string
				for k, path := range p {
					hidden[k] = filepath.Join(dir, fmt.Sprintf("%s%d-%s", how, k, strings.TrimSuffix(filepath.Base(path), ".gz")))
					if code, said := runHere(t, "scrub", "--names", how, path, hidden[k]); code != exitOK {
						t.Fatalf("scrub: exit %d: %s", code, said)
					}
				}
				a, b := judgedPair(t, p[0], p[1]), judgedPair(t, hidden[0], hidden[1])
				if how == "all" { // without names a kernel that was replaced pairs less often, and another may be the anchor
					a, _, _ = strings.Cut(a, " Unit:")
					b, _, _ = strings.Cut(b, " Unit:")
				}
				if a != b {
					t.Errorf("as it is\n%s\nwith --names %s\n%s", a, how, b)
				}
			}
		})
	}
}

// slowerCapture is a copy of a capture whose kernels take a quarter longer, for all that follows them.
func slowerCapture(t *testing.T, path, out string) string {
	t.Helper()
	if err := os.WriteFile(out, read(t, path), 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", out)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("select count(*) from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_KERNEL'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		if _, err := db.Exec("update CUPTI_ACTIVITY_KIND_KERNEL set \"end\" = \"end\" + (\"end\" - start) / 4"); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// judgedPair is what a comparison decides and why, without names.
func judgedPair(t *testing.T, base, head string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"diff", base, head, "--format", "json"},
		&env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	var c struct {
		Verdict    string
		Comparable bool
		Unit       struct {
			Kind  string
			BaseN int `json:"base_n"`
			HeadN int `json:"head_n"`
		}
		Reasons []struct{ Code string }
		Gates   []struct{ Rule, Metric, Verdict string }
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &c); err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
	}
	var gates []string
	for _, g := range c.Gates {
		gates = append(gates, fmt.Sprint(g))
	}
	slices.Sort(gates)
	c.Gates = nil
	return fmt.Sprintf("exit %d %+v\n%s", code, c, strings.Join(gates, "\n"))
}
