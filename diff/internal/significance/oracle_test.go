package significance_test

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/student"
)

// TestOracle holds the statistics to R: testdata/oracle.tsv, made by testdata/oracle.R.
func TestOracle(t *testing.T) {
	data, err := os.ReadFile("testdata/oracle.tsv")
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(s string) (list []float64) {
		for _, f := range strings.Fields(s) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		return list
	}
	// close is relative, and absolute below 1e-300.
	check := func(what string, got, want []float64, tolerance float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d results, not %d", what, len(got), len(want))
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= tolerance*math.Abs(want[i])+1e-300) {
				t.Errorf("%s: %.15g, R says %.15g", what, got[i], want[i])
			}
		}
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(data)) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(part) != 3 {
			t.Fatalf("not three columns: %q", line)
		}
		what, in, out := part[0], numbers(part[1]), numbers(part[2])
		seen[what]++
		name := what + " " + part[1]
		switch {
		case what == "pt":
			check(name, []float64{student.Tail(in[0], in[1])}, out, 1e-10)
		case what == "qt":
			check(name, []float64{student.Quantile(in[0], in[1])}, out, 1e-10)
		case what == "holm":
			check(name, significance.Holm(in), out, 1e-13)
		case what == "BH":
			check(name, significance.BH(in), out, 1e-13)
		case what == "quantile":
			check(name, []float64{significance.Statistic(in[0]).Of(in[1:])}, out, 1e-13)
		case what == "power":
			p := significance.Plan{Captures: int(in[0]), SD: in[1], Alpha: in[3]}
			if got := p.Power(in[2]); math.Abs(got-out[0]) > 5e-4 { // of Simpson's rule
				t.Errorf("%s: %.6f, R says %.6f", name, got, out[0])
			}
		case what == "welch":
			// Judge works in ln, where the standard errors are relative to each side's own mean.
			vb, vh := in[1]*in[1]/in[2]/(in[0]*in[0]), in[4]*in[4]/in[5]/(in[3]*in[3])
			v := judge(significance.Number{Tolerance: 0.03, Base: []significance.Capture{{Value: in[0], SD: in[1], N: int(in[2])}},
				Head: []significance.Capture{{Value: in[3], SD: in[4], N: int(in[5])}}})
			half := (math.Log(v.High) - math.Log(v.Low)) / 2
			// R's half width over its standard error is the quantile for its degrees of freedom; ours differ by as much as the
			// relative variances do, which is little.
			se := math.Sqrt(in[1]*in[1]/in[2] + in[4]*in[4]/in[5])
			if got, want := half/math.Sqrt(vb+vh), (out[1]-out[0])/2/se; math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s: the interval is %.4f standard errors wide, R's is %.4f", name, got, want)
			}
		default:
			t.Errorf("nobody checks %q", what)
		}
	}
	for _, what := range []string{"pt", "qt", "holm", "BH", "quantile", "power", "welch"} {
		if seen[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// The golden file is what the script makes, where R is installed.
func TestOracleIsWhatTheScriptMakes(t *testing.T) {
	const versions = `stopifnot(startsWith(as.character(getRversion()), "4.2"))`
	r, err := exec.LookPath("Rscript")
	if err != nil || exec.Command(r, "-e", versions).Run() != nil {
		t.Skip("R 4.2 is not installed")
	}
	want, err := os.ReadFile("testdata/oracle.tsv")
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(r, "testdata/oracle.R").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("testdata/oracle.tsv is not what testdata/oracle.R makes")
	}
}
