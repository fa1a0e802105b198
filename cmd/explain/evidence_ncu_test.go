package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// Hundreds of measured kernels, with long names and with all that is measured, leave the report valid, equal between runs and small beside
// a trace.
func TestNCUReportKeepsTheContract(t *testing.T) {
	t.Parallel()
	published := explaintest.Schema(t, "report")
	raw := strings.Split(string(read(t, "../../testdata/evidence/ncu/raw.csv")), "\n")
	head, row := strings.Join(raw[4:6], "\n"), raw[6]
	const launches = 300
	for what, name := range map[string]func(i int) string{
		"many":  func(i int) string { return fmt.Sprintf("kernel_%d<%s>", i, strings.Repeat("T", 300)) },
		"long":  func(i int) string { return fmt.Sprintf("kernel_%d<%s>", i, strings.Repeat("T", 20000)) },
		"moved": func(i int) string { return fmt.Sprintf("moe_%d", i) },
	} {
		t.Run(what, func(t *testing.T) {
			var page bytes.Buffer
			page.WriteString(head + "\n")
			for i := range launches {
				page.WriteString(strings.Replace(strings.Replace(row, `"0"`, fmt.Sprintf("%q", fmt.Sprint(i)), 1), "fused_moe_kernel", name(i), 1) + "\n")
			}
			path := filepath.Join(t.TempDir(), "ncu.csv")
			if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			files := explainTrace(t, "../../testdata/serving.sqlite", "--ncu", path)
			body := files["report.json"]
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := published.Validate(value); err != nil {
				t.Errorf("schema: %v", err)
			}
			if len(body) >= 2e6 {
				t.Errorf("report.json has %d bytes", len(body))
			}
			r, err := report.Read(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if m := r.Find("ncu.launches", nil); m == nil || *m.Value != launches {
				t.Errorf("launches %+v", m)
			}
			if lines := strings.Count(files["tables/classification_summary.csv"], "\n"); lines != launches+1 {
				t.Errorf("classification_summary.csv has %d lines", lines)
			}
			if lines := strings.Count(files["stdout"], "\n"); lines > 51 {
				t.Errorf("the summary has %d lines", lines)
			}
			if what != "many" && !longtest.On() {
				return
			}
			again := explainTrace(t, "../../testdata/serving.sqlite", "--ncu", path)
			for name, content := range files {
				if name != "stdout" && name != "stderr" && content != again[name] {
					t.Errorf("%s differs between two runs", name)
				}
			}
		})
	}
}
