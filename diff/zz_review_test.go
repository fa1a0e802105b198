package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
)

func zzsum(label string, c *diff.Comparison) {
	fmt.Printf("=== %s: %s comparable %v depth %s units %d %d identical %v reasons %v\n    %s\n", label, c.Verdict, c.Comparable, c.Depth, c.Unit.BaseN, c.Unit.HeadN, c.Identical, c.Reasons, c.Cause)
	fmt.Printf("    unit %.0f -> %.0f total %+.1f residual %g\n   ", c.Attribution.Base, c.Attribution.Head, c.Attribution.TotalDelta, c.Attribution.Residual)
	for _, r := range c.Attribution.Rows {
		if r.Kind == diff.KindClass || r.Kind == diff.KindCause {
			fmt.Printf(" %s %+.1f", r.ID, r.Delta)
		}
	}
	fmt.Println()
	n := 0
	for _, k := range c.Kernels {
		b, h := "-", "-"
		if k.BaseName != nil {
			b = *k.BaseName
		}
		if k.HeadName != nil {
			h = *k.HeadName
		}
		if (k.Class != diff.Same || k.PairedBy != "exact") && n < 6 {
			n++
			r := 0.
			if k.Ratio != nil {
				r = *k.Ratio
			}
			fmt.Printf("    K %s by=%s %+.1f (count %.1f percall %.1f) ratio %.4f %s %.50s | %.50s note=%s\n", k.Category, k.PairedBy, k.Delta, k.CountEffect, k.PerCallEffect, r, k.Class, b, h, k.Note)
		}
	}
	for _, s := range c.Structure {
		fmt.Printf("    S %s %s %s\n", s.ID, s.Class, s.Text)
	}
	for _, g := range c.Gates {
		if g.Verdict != diff.Pass {
			fmt.Printf("    G %s %s %.40s: %.160s\n", g.Verdict, g.Metric, g.Labels["kernel"], g.Reason)
		}
	}
	for _, p := range c.Primary {
		if strings.HasPrefix(p.Metric, "unit.time") || p.Class != diff.Same {
			fmt.Printf("    P %s %.1f -> %.1f %s\n", p.Metric, *p.Base, *p.Head, p.Class)
		}
	}
}

func zzpath(name string) string {
	if name == "serving" || name == "serving_graph" {
		return filepath.Join("..", "testdata", name+".sqlite")
	}
	return filepath.Join("/work/shared/traces", name+".sqlite")
}

type zzk struct {
	start, end, dev, corr, tid int64
	name, short        string
}

func TestZZ(t *testing.T) {
	names := []string{"cs336_hoponga_exp2024_2", "cs336zx_2_7B_clean", "nsysai_mfu_2gpu_before", "rodinia_report2_native", "serving"}
	if v := os.Getenv("ZZ"); v != "" {
		names = strings.Split(v, ",")
	}
	for _, name := range names {
		src := zzpath(name)
		base := reportOfFile(t, src, analyze.Options{})
		self := diffOf(t, base, base, diff.Options{})
		fmt.Printf("\n######## %s unit %s %q n %d\n", name, base.Unit.Kind, base.Unit.Name, self.Unit.BaseN)
		// kernels
		var ks []zzk
		dir := t.TempDir()
		if err := tracetest.Rewrite(src, filepath.Join(dir, "x.sqlite"), tracetest.EditRows("CUPTI_ACTIVITY_KIND_KERNEL", func(r tracetest.Row, text func(tracetest.Value) string) bool {
			s, _ := r["start"].AsInt()
			e, _ := r["end"].AsInt()
			d, _ := r["deviceId"].AsInt()
			c, _ := r["correlationId"].AsInt()
			ks = append(ks, zzk{s, e, d, c, 0, text(r["demangledName"]), text(r["shortName"])})
			return true
		})); err != nil {
			t.Fatal(err)
		}
		sort.Slice(ks, func(i, j int) bool { return ks[i].start < ks[j].start })
		apis := map[int64]int64{}
		_ = tracetest.Rewrite(src, filepath.Join(dir, "x.sqlite"), tracetest.EditRows("CUPTI_ACTIVITY_KIND_RUNTIME", func(r tracetest.Row, text func(tracetest.Value) string) bool {
			s, _ := r["start"].AsInt()
			c, _ := r["correlationId"].AsInt()
			apis[c] = s
			return true
		}))
		// biggest compute kernel
		type big struct {
			name string
			cat  string
			t    float64
		}
		var bigs []big
		for _, k := range self.Kernels {
			if k.BaseName != nil && k.Base != nil && k.Category != "communication" {
				bigs = append(bigs, big{*k.BaseName, k.Category, *k.Base})
			}
		}
		sort.Slice(bigs, func(i, j int) bool { return bigs[i].t > bigs[j].t })
		for i, b := range bigs {
			if i < 4 {
				fmt.Printf("  big %s %.0f %.90s\n", b.cat, b.t, b.name)
			}
		}
		target := bigs[0]
		for _, b := range bigs {
			if b.cat == "gemm" {
				target = b
				break
			}
		}
		run := func(label string, edits ...tracetest.Edit) *diff.Comparison {
			if v := os.Getenv("ZZL"); v != "" && !strings.Contains(label, v) {
				return nil
			}
			p := filepath.Join(dir, strings.ReplaceAll(label, " ", "_")+".sqlite")
			if err := tracetest.Rewrite(src, p, edits...); err != nil {
				fmt.Println("!!!", label, err)
				return nil
			}
			r := reportOfFile(t, p, analyze.Options{})
			c := diffOf(t, base, r, diff.Options{})
			zzsum(name+" "+label, c)
			if os.Getenv("ZZB") != "" {
				zzsum(name+" BACK "+label, diffOf(t, r, base, diff.Options{}))
			}
			return c
		}
		fmt.Printf("EXPECT family +8%%: %.1f on %.60s\n", target.t*.08, target.name)
		run("family +8", tracetest.ScaleKernels(func(n string) bool { return n == target.name }, 1.08))
		busyc := 0.0
		for _, b := range bigs {
			busyc += b.t
		}
		fmt.Printf("EXPECT all +4%%: about %.1f\n", busyc*.04)
		run("all +4", tracetest.ScaleKernels(func(n string) bool { return true }, 1.04))
		// gaps: before api of anchor kernels
		var at, at2 []int64
		if base.Unit.Kind == "kernel" {
			last := int64(-1)
			for _, k := range ks {
				if (k.name == base.Unit.Name || k.short == base.Unit.Name) && k.dev == ks[0].dev {
					if a, ok := apis[k.corr]; ok && a > last {
						at = append(at, a)
						last = a
					}
					at2 = append(at2, k.start)
				}
			}
		}
		fmt.Println("anchors", len(at), len(at2))
		if len(at) > 0 {
			run("gap300 at api", tracetest.InsertGaps(300_000, at...))
			run("gap300 at kernel", tracetest.InsertGaps(300_000, at2...))
		}
		run("rename", tracetest.RenameKernel(target.name, zztile(target.name)))
		run("pageable", tracetest.PageableCopies())
		run("shift", tracetest.ShiftTime(123_456_789))
		first, lastT := ks[0].start, ks[len(ks)-1].end
		cut := lastT - (lastT-first)/3
		for _, to := range []int64{cut, first + (lastT-first)/2} {
			p := filepath.Join(dir, "cut.sqlite")
			if err := tracetest.Rewrite(src, p, tracetest.Cut(0, to)); err != nil {
				t.Fatal(err)
			}
			cb := reportOfFile(t, p, analyze.Options{})
			zzsum(name+" orig vs cut", diffOf(t, base, cb, diff.Options{}))
			q := filepath.Join(dir, "cut2.sqlite")
			if err := tracetest.Rewrite(p, q, tracetest.ScaleKernels(func(n string) bool { return n == target.name }, 1.15)); err != nil {
				t.Fatal(err)
			}
			zzsum(name+" cut vs cut+15% family", diffOf(t, cb, reportOfFile(t, q, analyze.Options{}), diff.Options{}))
		}
	}
}

func zztile(n string) string {
	for _, p := range [][2]string{{"128x128", "128x64"}, {"256x128", "128x256"}, {"128x64", "64x64"}, {"64x64", "128x64"}, {"128x256", "256x128"}, {"192x", "128x"}} {
		if strings.Contains(n, p[0]) {
			return strings.Replace(n, p[0], p[1], 1)
		}
	}
	return n + "_v2"
}
