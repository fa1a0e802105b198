package diff_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// figure counts what came of comparisons of one kind.
type figure struct {
	name             string
	n, ok, fail      int // ok: as it should be
	inconc, pass, wn int
	wrong            []string
}

func (f *figure) count(what string, c *comparison.Comparison, ok bool) {
	f.n++
	switch c.Verdict {
	case comparison.Fail:
		f.fail++
	case comparison.Inconclusive:
		f.inconc++
	case comparison.Pass:
		f.pass++
	case comparison.Warn:
		f.wn++
	case comparison.Error:
	}
	if ok {
		f.ok++
	} else {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: %s | %s", what, c.Verdict, c.Cause))
	}
}

// realPairs are the pairs of shared captures whose truth was worked out by hand: exit code there, and the change of the
// mean there, as a ratio.
var realPairs = []struct {
	base, head  string
	there, back int
	mean        float64
}{
	{"aip_baseline_nvtx", "aip_opt1", 0, 1, 0.7600},
	{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after", 1, 0, 1.138},
	{"cs336zx_2_7B", "cs336zx_2_7B_clean", 0, 0, 1},
	{"cs336zx_2_7B", "cs336zx_2_7B_nvtx", 0, 0, 1},
	{"rodinia_report2_native", "rodinia_report3_native", 0, 1, 0.29},
}

// TestFigures measures what the statistics page says of the verdict on real captures and on edits of them, and prints
// the table. It takes many minutes: go test ./diff -run TestFigures -v -timeout 0 -args -long
func TestFigures(t *testing.T) {
	if !*long {
		t.Skip("only with -args -long")
	}
	var table []*figure
	at := func(name string) *figure {
		if i := slices.IndexFunc(table, func(f *figure) bool { return f.name == name }); i >= 0 {
			return table[i]
		}
		table = append(table, &figure{name: name})
		return table[len(table)-1]
	}
	figuresOfPairs(t, at)
	for _, s := range figureSubjects(t) {
		figuresOfEdits(t, s, at)
		figuresOfSeveral(t, s, at)
		figuresOfHalves(t, s, at)
	}
	var b strings.Builder
	b.WriteString("\n| what | n | as it should be | fail | inconclusive | warn | pass |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, f := range table {
		fmt.Fprintf(&b, "| %s | %d | %d (%.0f %%) | %d | %d | %d | %d |\n", f.name, f.n, f.ok, 100*float64(f.ok)/float64(max(1, f.n)), f.fail, f.inconc, f.wn, f.pass)
	}
	for _, f := range table {
		for _, w := range f.wrong {
			fmt.Fprintf(&b, "%s: %.400s\n", f.name, w)
		}
	}
	t.Log(b.String())
	for _, f := range table {
		if strings.HasPrefix(f.name, "faster") && f.fail > 0 {
			t.Errorf("%s: %d fail", f.name, f.fail)
		}
	}
}

// figureSubjects are captures of three steps and more: shared ones, else those of the mutator.
func figureSubjects(t *testing.T) []*subject {
	t.Helper()
	var list []*subject
	for _, name := range []string{
		"aip_baseline_nvtx", "aip_opt1", "cs336_hoponga_exp2024_2", "cs336_tianshi_a", "cs336zx_2_7B_clean", "nsightful_power_iter",
		"nsysai_h100_2gpu_1s", "nsysai_healthy_1pct", "nsysai_mfu_2gpu_before", "rodinia_report3_native",
	} {
		if c := realCapture(t, name); c != nil && (*subjectsOf == "" || strings.Contains(*subjectsOf, name)) {
			list = append(list, &subject{name: name, capture: c, base: []*report.Report{mutantReport(t, c, nil)}, pair: c.Pair()})
		}
	}
	if *subjectsOf != "" {
		return list
	}
	return append(list, syntheticSubjects(t)...)
}

func figuresOfPairs(t *testing.T, at func(string) *figure) {
	t.Helper()
	get := func(name string) *report.Report {
		path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		result, err := analyze.Run(context.Background(), path, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return result.Report
	}
	for _, p := range realPairs {
		base, head := get(p.base), get(p.head)
		if base == nil || head == nil {
			continue
		}
		for _, way := range []struct {
			what       string
			base, head *report.Report
			exit       int
			mean       float64
		}{{p.base + " → " + p.head, base, head, p.there, p.mean}, {p.head + " → " + p.base, head, base, p.back, 1 / p.mean}} {
			c := tried(t, way.what, way.base, way.head)
			if c == nil {
				continue
			}
			row := c.Row("unit.time.mean")
			right := exitOf(c) == way.exit && row != nil && row.Ratio != nil && math.Abs(*row.Ratio-way.mean) <= 0.015*max(1, way.mean)
			at("real pairs, both orders").count(way.what, c, right)
		}
	}
}

// figuresOfEdits makes known slowdowns, harmless edits and what is faster, one capture a side.
func figuresOfEdits(t *testing.T, s *subject, at func(string) *figure) {
	t.Helper()
	names := biggest(s.base[0])
	if len(names) == 0 {
		return
	}
	ways := []struct {
		name        string
		none, first float64
		edit        func(on mutant.On, x float64) mutant.Edit
	}{
		{"a kernel slower", 1, 1.2, func(on mutant.On, x float64) mutant.Edit { return mutant.ScaleKernels(on, names[0], x) }},
		{"a kernel renamed and slower", 1, 1.2, func(on mutant.On, x float64) mutant.Edit {
			return mutant.Both(mutant.ScaleKernels(on, names[0], x), mutant.Rename(names[0], "another_kernel"))
		}},
		{"host stall", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Stall(on, x) }},
		{"new sync", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Sync(on, x) }},
		{"new copy", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Copy(on, true, x) }},
		{"three more kernels", 0, 3 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Extra(on, 3, loggingKernel, x) }},
	}
	units := 0
	for _, k := range s.capture.Kinds() {
		units += k.Units
	}
	for _, w := range ways {
		for _, size := range []float64{1.055, 1.1, 1.3} {
			for _, every := range []int{1, 7, 12} {
				if every > 1 && units < every {
					continue
				}
				on := mutant.On{Every: every}
				edit, truth, err := s.capture.Sized(size, w.none, w.first, func(x float64) mutant.Edit { return w.edit(on, x) })
				if err != nil {
					continue // no strength does it
				}
				what := fmt.Sprintf("%s, %s every %d, %+.1f %%", s.name, w.name, every, 100*(truth.Work-1))
				head := mutantReport(t, s.capture, []mutant.Edit{edit, mutant.Noise(0.001, 77)})
				if there := tried(t, what, s.base[0], head); there != nil {
					switch {
					case every == 1:
						at("injected in every step, +5.5, +10, +30 %: fail").count(what, there, there.Verdict == comparison.Fail)
					case units >= 2*every:
						at("injected in each 7th or 12th step, two and more: fail").count(what, there, there.Verdict == comparison.Fail)
					default:
						at("injected in one step of many: warn").count(what, there, there.Verdict == comparison.Warn)
					}
				}
				if every > 1 {
					continue
				}
				if back := tried(t, what+", back", head, s.base[0]); back != nil {
					at("faster, the way back: exit 0").count(what, back, exitOf(back) == 0)
				}
			}
		}
	}
	for name, edit := range map[string]mutant.Edit{
		"noise 0.5 %": mutant.Noise(0.005, 3), "noise 1 %": mutant.Noise(0.01, 4), "+0.5 %": mutant.ScaleKernels(mutant.On{}, "", 1.005),
		"renamed": mutant.Rename(names[0], "another_kernel"), "-0.5 %": mutant.ScaleKernels(mutant.On{}, "", 0.995),
	} {
		head := mutantReport(t, s.capture, []mutant.Edit{edit, mutant.Noise(0.001, 78)})
		if c := tried(t, s.name+", "+name, s.base[0], head); c != nil {
			at("harmless: exit 0").count(s.name+", "+name, c, exitOf(c) == 0)
		}
	}
}

// figuresOfSeveral compares three captures a side, all times of a capture by a factor of its own around 1 %.
func figuresOfSeveral(t *testing.T, s *subject, at func(string) *figure) {
	t.Helper()
	names := biggest(s.base[0])
	if len(names) == 0 {
		return
	}
	session := uint64(0)
	capture := func(factor float64, more ...mutant.Edit) *report.Report {
		session++
		return mutantReport(t, s.capture, append(more, mutant.ScaleKernels(mutant.On{}, "", factor), mutant.Noise(0.005, 1000+session)))
	}
	three := func(f [3]float64, more ...mutant.Edit) (list []*report.Report) {
		for _, x := range f {
			list = append(list, capture(x, more...))
		}
		return list
	}
	base, other := [3]float64{0.992, 1.001, 1.009}, [3]float64{1.008, 0.993, 1.001}
	b := three(base)
	judge := func(what string, base, head []*report.Report, ok func(c *comparison.Comparison) bool) {
		c, err := diff.Compare(base, head, diff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		at("three a side, "+what).count(s.name, c, ok(c))
	}
	judge("no change: pass", b, three(other), func(c *comparison.Comparison) bool { return c.Verdict == comparison.Pass })
	for _, size := range []float64{1.05, 1.1} {
		edit, _, err := s.capture.Sized(size, 1, 1.2, func(x float64) mutant.Edit { return mutant.ScaleKernels(mutant.On{}, names[0], x) })
		if err != nil {
			continue
		}
		head := three(other, edit)
		judge(fmt.Sprintf("%+.0f %%: fail", 100*(size-1)), b, head, func(c *comparison.Comparison) bool { return c.Verdict == comparison.Fail })
		if size == 1.1 {
			odd := append([]*report.Report{capture(1.2)}, b[1:]...)
			judge("one odd base capture × 1.2, +10 %: not exit 0", odd, head, func(c *comparison.Comparison) bool { return exitOf(c) != 0 })
		}
	}
}

// figuresOfHalves compares the first half of a capture with the second.
func figuresOfHalves(t *testing.T, s *subject, at func(string) *figure) {
	t.Helper()
	m, err := s.capture.Mutate(mutant.Noise(0.0001, 9))
	if err != nil {
		t.Fatal(err)
	}
	path := m.WriteTB(t)
	defer os.Remove(path)
	whole, err := analyze.Run(context.Background(), path, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	length := time.Duration(whole.Report.Window.Length)
	half := func(from, to time.Duration) *report.Report {
		result, err := analyze.Run(context.Background(), path, analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Report
	}
	first, second := half(0, length/2), half(length/2, length)
	for _, way := range [][2]*report.Report{{first, second}, {second, first}} {
		if c := tried(t, s.name+", halves", way[0], way[1]); c != nil {
			at("A/A halves: pass").count(s.name, c, c.Verdict == comparison.Pass)
		}
	}
}
