package look

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Two captures have the same verdict as traces and as reports and, if they can be compared, the same figures. With
// -long it is asked of all pairs of real captures.
func TestTracesAndReportsAgree(t *testing.T) {
	e := &cmdenv.Env{Getenv: os.Getenv, Out: io.Discard, Err: io.Discard, Version: "test"}
	traces := longtest.Captures(t)
	for _, name := range []string{"base", "head", "serving", "serving_graph", "graph_hidden"} {
		traces = append(traces, filepath.Join("..", "..", "..", "..", "testdata", name+".sqlite"))
	}
	dir, reports := t.TempDir(), map[string]string{}
	var pairs [][2]string
	for i, a := range traces {
		reports[a] = filepath.Join(dir, fmt.Sprint(i), strings.TrimSuffix(filepath.Base(a), ".sqlite"))
		report := newReport(e)
		report.SetContext(t.Context())
		report.SetArgs([]string{a, "--out", reports[a], "--quiet"})
		if err := report.Execute(); err != nil {
			t.Fatal(err)
		}
		for _, b := range traces {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	compared := func(base, head string) *comparison.Comparison {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		c, err := ComparePair(cmd, e, rulesfile.Flags{}, true, []string{base}, []string{head})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	differ := 0
	pairs = longtest.Some(pairs, 24)
	for _, p := range pairs {
		x, y := compared(p[0], p[1]), compared(reports[p[0]], reports[p[1]])
		if x.Verdict != y.Verdict || x.Comparable && !reflect.DeepEqual(x.Primary, y.Primary) {
			differ++
			t.Errorf("%s → %s: traces %s, reports %s: %s | %s", p[0], p[1], x.Verdict, y.Verdict, x.Cause, y.Cause)
		}
	}
	t.Logf("%d of %d pairs differ", differ, len(pairs))
}
