package diff_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
)

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	pairs := [][2]string{
		{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, {"nsysai_mfu_2gpu_after", "nsysai_mfu_2gpu_before"},
		{"cs336zx_2_7B", "cs336zx_2_7B_clean"}, {"cs336zx_2_7B", "cs336zx_2_7B_nvtx"}, {"cs336zx_2_7B_clean", "cs336zx_2_7B_compile_cudagraph"}, {"cs336zx_2_7B_compile_cudagraph", "cs336zx_2_7B_clean"},
		{"rodinia_report2_native", "rodinia_report3_native"}, {"fuser_h200_report1", "fuser_h200_report2"}, {"nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_before"},
		{"nsysai_mfu_2gpu_before", "alpa_r1_memcpy_nokernel"}, {"nsysai_mfu_2gpu_before", "pycnv_2023_4_1_nocuda"}, {"mordred_native_old_b", "mordred_exp2023_4"}, {"cs336_hoponga_exp2023_4", "cs336_hoponga_exp2024_2"},
		{"alpa_r1_memcpy_nokernel", "alpa_r1_memcpy_nokernel"}, {"sglang_baseline_report", "sglang_baseline_report"}, {"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_before"}, {"cs336zx_2_7B", "sglang_baseline_report"},
	}
	for _, p := range pairs {
		read := func(n string) *report.Report {
			f, err := os.Open("/tmp/core/r_" + n + "/report.json")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := report.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		c, err := diff.Compare([]*report.Report{read(p[0])}, []*report.Report{read(p[1])}, diff.Options{})
		fmt.Printf("==== %s → %s: %s comparable %v depth %s identical %v err %v\n  %s\n", p[0], p[1], c.Verdict, c.Comparable, c.Depth, c.Identical, err, c.Cause)
		for _, r := range c.Reasons {
			fmt.Println("  reason", r.Code, r.Text)
		}
		if c.Unit.Overlap != nil {
			fmt.Println("  overlap", *c.Unit.Overlap)
		}
		for _, r := range c.Primary {
			fmt.Printf("  %-20s %.1f %.1f %s | %s\n", r.Metric, *r.Base, *r.Head, r.Class, r.Why)
		}
		for i, r := range c.Attribution.Rows {
			if i < 18 {
				fmt.Printf("    %s %s %.0f\n", r.Kind, r.ID[:min(50, len(r.ID))], r.Delta)
			}
		}
		fmt.Println("  residual", c.Attribution.Residual, "total", c.Attribution.TotalDelta)
		for _, s := range c.Structure {
			fmt.Println("  structure", s.ID, s.Text, s.Class)
		}
		n := 0
		for _, k := range c.Kernels {
			if k.Class == diff.Regressed || k.Class == diff.Improved || k.Class == diff.Added || k.Class == diff.Removed {
				fmt.Println("  kernel", k.Class, k.Why, k.Note)
				n++
			}
		}
		for _, g := range c.Gates {
			if g.Verdict != diff.Pass {
				fmt.Println("  gate", g.Rule, g.Verdict, g.Reason)
			}
		}
	}
}
