package analyze_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Three kernels of 10, 20 and 30 µs whose names say nothing or something else, and a map for them.
func TestKernelMapNamesKernels(t *testing.T) {
	for name, text := range map[string]string{
		"map.yml": "# ours\nPUSH_rows: comm\nre:^stage[0-9]: moe_gemm\nstage: norm\n",
		"map.csv": "pattern,category\npush_rows,comm\nre:^stage[0-9],moe_gemm\nstage,norm\n",
	} {
		m, err := analyze.ParseKernelMap(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		th.Launch("acme_push_rows", 0, 1, tracetest.Kernel{Start: 0, End: 10_000})
		th.Launch("stage1", 10_000, 10_001, tracetest.Kernel{Start: 10_000, End: 30_000})
		th.Launch("gemm_stage", 30_000, 30_001, tracetest.Kernel{Start: 30_000, End: 60_000})
		res, err := analyze.Run(t.Context(), b.WriteTB(t), analyze.Options{Kernels: m})
		if err != nil {
			t.Fatal(err)
		}
		for category, want := range map[string]float64{"comm": 10_000, "moe_gemm": 20_000, "norm": 30_000} {
			got := res.Report.Find("kernel.total_time", report.Labels{"category": category})
			if got == nil || *got.Value != want {
				t.Errorf("%s: %s = %+v, want %v ns", name, category, got, want)
			}
		}
		if got := res.Report.Find("gpu.comm_time", report.Labels{"device": "0"}); got == nil || *got.Value != 10_000 {
			t.Errorf("%s: gpu.comm_time = %+v, want 10000 ns", name, got)
		}
	}
}

func TestKernelMapErrorsSayWhatToWrite(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"m.yml", "router: moe_rout", `no category "moe_rout"; the categories are comm, memory`},
		{"m.yml", "", "my_router: moe_route"},
		{"m.yml", "- a\n- b\n", "pattern: category"},
		{"m.yml", "a: [gemm]\n", "one category"},
		{"m.yml", "\"\": gemm\n", "a pattern is empty"},
		{"m.yml", "re:(: gemm\n", "pattern \"re:(\""},
		{"m.csv", "a,b,c\n", "pattern,category"},
		{"m.csv", "pattern,category\n", "my_router: moe_route"},
	} {
		_, err := analyze.ParseKernelMap(c.name, []byte(c.text))
		if !errors.Is(err, analyze.ErrOptions) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

// A report says which maps it was made with. The hash is that of the file, so that two maps of one name differ.
func TestReportNamesItsMaps(t *testing.T) {
	text := []byte("my_router: moe_route\n")
	kernels, err := analyze.ParseKernelMap("kernels.yml", text)
	if err != nil {
		t.Fatal(err)
	}
	phases, err := analyze.ParsePhaseMap("phases.json", []byte(`{"decode": ["step"]}`))
	if err != nil {
		t.Fatal(err)
	}
	b := tracetest.New()
	b.Process(1, "p").Thread(1, "").Launch("my_router", 0, 1, tracetest.Kernel{Start: 0, End: 10_000})
	path := b.WriteTB(t)
	maps := func(opt analyze.Options) []report.MapFile {
		res, err := analyze.Run(t.Context(), path, opt)
		if err != nil {
			t.Fatal(err)
		}
		return res.Report.Trace.Maps
	}
	sum := sha256.Sum256(text)
	got := maps(analyze.Options{Kernels: kernels, Phases: phases})
	if len(got) != 2 || got[0].Kind != "phase" || got[0].Name != "phases.json" ||
		got[1] != (report.MapFile{Kind: "kernel", Name: "kernels.yml", Hash: hex.EncodeToString(sum[:8])}) {
		t.Errorf("%+v", got)
	}
	if got := maps(analyze.Options{}); got != nil {
		t.Errorf("without a map: %+v", got)
	}
}
