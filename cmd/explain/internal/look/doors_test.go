package look

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Two captures have the same verdict, headline and figures as traces and as reports: unlike captures, windows cut from
// one run, and captures with an edit. With -long it is asked of all pairs, windows and edits of the real captures.
func TestTracesAndReportsAgree(t *testing.T) {
	traces := longtest.Captures(t)
	for _, name := range []string{"base", "head", "serving", "serving_graph", "graph_hidden"} {
		traces = append(traces, filepath.Join("..", "..", "..", "..", "testdata", name+".sqlite"))
	}
	t.Run("pairs", func(t *testing.T) {
		d := newDoors(t)
		var pairs [][2]string
		for _, a := range traces {
			for _, b := range traces {
				if a != b {
					pairs = append(pairs, [2]string{a, b})
				}
			}
		}
		for _, p := range longtest.Some(pairs, 14) {
			d.agree(filepath.Base(p[0])+" → "+filepath.Base(p[1]), p[0], p[1])
		}
	})
	t.Run("windows", func(t *testing.T) {
		d := newDoors(t)
		for _, path := range longtest.Some(traces, 4) {
			var cut []string
			for i, w := range [][2]float64{{0, 0.5}, {0.37, 0.91}, {0.25, 0.5}, {0.5, 0.75}, {0.1, 1}}[:longtest.N(2, 5)] {
				to := filepath.Join(t.TempDir(), fmt.Sprint("window", i, ".sqlite"))
				if tracetest.Window(t, path, to, w[0], w[1]) {
					cut = append(cut, to)
				}
			}
			d.both(filepath.Base(path), cut)
		}
	})
	t.Run("edits", func(t *testing.T) {
		d := newDoors(t)
		for _, path := range longtest.Some(traces, 4) {
			c, err := mutant.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.FindUnits() != nil {
				continue
			}
			edited := []string{d.edited(c, "base")}
			for i, e := range longtest.Some(editsOf(d.kernels(edited[0])), 5) {
				if to := d.edited(c, fmt.Sprint("edit", i), e); to != "" {
					d.both(filepath.Base(path)+", "+e.Name, []string{edited[0], to})
				}
			}
		}
	})
}

// editsOf are edits of the units, and of the kernels with most time.
func editsOf(kernels []string) []mutant.Edit {
	all, half := mutant.On{}, mutant.On{Every: 2}
	list := []mutant.Edit{mutant.Again(all, false), mutant.Again(all, true), mutant.Halve(half), mutant.Repeat(half), mutant.Drop(mutant.On{Every: 4}),
		mutant.Extra(half, 1, "void probe<float>(T1 *)", 10_000), mutant.ScaleKernels(all, "", 1.1), mutant.Stall(all, 200_000),
		mutant.Sync(all, 50_000), mutant.Copy(all, true, 20_000), mutant.Noise(0.01, 3), mutant.Lose(5, 9, false)}
	for _, k := range kernels {
		list = append(list, mutant.Remove(all, k), mutant.Rename(k, k+"_v2"), mutant.OtherStream(k), mutant.ScaleKernels(all, k, 1.5))
	}
	return list
}

// doors compares captures as traces and as reports.
type doors struct {
	*testing.T
	env       *cmdenv.Env
	dir       string
	reports   map[string]string // by trace
	differ, n int
}

func newDoors(t *testing.T) *doors {
	d := &doors{T: t, dir: t.TempDir(), reports: map[string]string{}}
	d.env = &cmdenv.Env{Getenv: os.Getenv, Out: io.Discard, Err: io.Discard, Version: "test"}
	t.Cleanup(func() { t.Logf("%d of %d pairs differ", d.differ, d.n) })
	return d
}

// report is the folder of a trace's report.
func (d *doors) report(trace string) string {
	if d.reports[trace] == "" {
		d.reports[trace] = filepath.Join(d.dir, fmt.Sprint(len(d.reports)), strings.TrimSuffix(filepath.Base(trace), ".sqlite"))
		cmd := newReport(d.env)
		cmd.SetContext(d.Context())
		cmd.SetArgs([]string{trace, "--out", d.reports[trace], "--quiet"})
		if err := cmd.Execute(); err != nil {
			d.Fatal(err)
		}
	}
	return d.reports[trace]
}

// kernels are short names of the two kernels of a unit with most time.
func (d *doors) kernels(trace string) (list []string) {
	r, err := input.ReadReport(filepath.Join(d.report(trace), "report.json"))
	if err != nil {
		d.Fatal(err)
	}
	table := report.NewIndex(r).Table("unit", "unit_kernels")
	for i := range min(table.Len(), 2) {
		list = append(list, mutant.Short(table.Str(i, "kernel_name")))
	}
	return list
}

// edited is the path of a capture with edits; empty if it has nothing to edit.
func (d *doors) edited(c *mutant.Capture, name string, edits ...mutant.Edit) string {
	m, err := c.Mutate(edits...)
	if err != nil {
		return ""
	}
	path := m.WriteTB(d)
	to := filepath.Join(filepath.Dir(path), name+".sqlite")
	if err := os.Rename(path, to); err != nil {
		d.Fatal(err)
	}
	return to
}

// both compares all pairs of captures, from both sides.
func (d *doors) both(what string, traces []string) {
	for _, a := range traces {
		for _, b := range traces {
			if a != b {
				d.agree(fmt.Sprintf("%s: %s → %s", what, filepath.Base(a), filepath.Base(b)), a, b)
			}
		}
	}
}

func (d *doors) agree(what, base, head string) {
	x, y := d.compared(base, head), d.compared(d.report(base), d.report(head))
	if d.n++; x.Verdict != y.Verdict || x.Cause != y.Cause || !reflect.DeepEqual(x.Primary, y.Primary) {
		d.differ++
		d.Errorf("%s: traces %s, reports %s: %s | %s", what, x.Verdict, y.Verdict, x.Cause, y.Cause)
	}
}

func (d *doors) compared(base, head string) *comparison.Comparison {
	c, err := ComparePair(d.Context(), d.env, rulesfile.Flags{}, true, []string{base}, []string{head})
	if err != nil {
		d.Fatal(err)
	}
	return c
}
