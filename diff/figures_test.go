package diff_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

var (
	subjectsOf = flag.String("subjects", "", "captures of the long tests, by name, separated by commas; empty: all")
	reportsIn  = flag.String("reports", "", "folder in which the long tests keep the reports they make, and find those they made before")
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
// mean there, as a ratio. They stand in TestTruths too.
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

// figureCaptures are the captures that known changes are made in, shared ones and those of the mutator.
var figureCaptures = []string{
	"nsysai_healthy_1pct", "nsightful_power_iter", "nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_before", "rodinia_report3_native",
	"cs336zx_2_7B_clean", "cs336_hoponga_exp2024_2", "aip_baseline_nvtx", "aip_opt1", "cs336_tianshi_a", "cs336_jsun_4ae893",
	"jacobi_mpi_report1", "markers", "loop", "graphs", "training",
}

// TestFigures measures what the page statistics says of the verdict on real captures and on edits of them, and prints
// its table. It takes hours where the reports are not there yet:
//
//	go test ./diff -run TestFigures -v -timeout 0 -args -long -reports DIR
func TestFigures(t *testing.T) {
	if !longtest.On() {
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
	for _, name := range figureCaptures {
		if s := newFigureSubject(t, name); s != nil {
			s.edits(at)
			s.several(at)
			s.halves(at)
		}
	}
	var b strings.Builder
	b.WriteString("\n| pairs | n | as it should be | fail | exit 4 | warn | pass |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, f := range table {
		share := func(n int) string { return fmt.Sprintf("%.3g %%", 100*float64(n)/float64(max(1, f.n))) }
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", f.name, f.n, share(f.ok), share(f.fail), share(f.inconc), share(f.wn), share(f.pass))
	}
	for _, f := range table {
		for _, w := range f.wrong {
			fmt.Fprintf(&b, "%s: %.300s\n", f.name, w)
		}
	}
	t.Log(b.String())
}

func figuresOfPairs(t *testing.T, at func(string) *figure) {
	t.Helper()
	for _, p := range realPairs {
		base, head := sharedReport(t, p.base), sharedReport(t, p.head)
		if base == nil || head == nil || *subjectsOf != "" && !strings.Contains(*subjectsOf, p.base) {
			continue
		}
		for _, way := range []struct {
			what       string
			base, head *report.Report
			exit       int
			mean       float64
		}{{p.base + " → " + p.head, base, head, p.there, p.mean}, {p.head + " → " + p.base, head, base, p.back, 1 / p.mean}} {
			if c := tried(t, way.what, way.base, way.head); c != nil {
				row := c.Row("unit.time.mean")
				right := exitOf(c) == way.exit && row != nil && row.Ratio != nil && math.Abs(*row.Ratio-way.mean) <= 0.015*max(1, way.mean)
				at("real pairs in both orders: exit code, and the mean within 1.5 points").count(way.what, c, right)
			}
		}
	}
}

// sharedReport analyses a shared capture; nil where it is not there.
func sharedReport(t *testing.T, name string) *report.Report {
	t.Helper()
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

// figureSubject makes reports of mutants of one capture, or finds them.
type figureSubject struct {
	*testing.T
	subject
	dir   string
	units int
	seed  uint64
}

func newFigureSubject(t *testing.T, name string) *figureSubject {
	t.Helper()
	if *subjectsOf != "" && !slices.Contains(strings.Split(*subjectsOf, ","), name) {
		return nil
	}
	s := &figureSubject{T: t, subject: subject{name: name}, seed: 77}
	for _, r := range mutant.Recipes() {
		if r.Name == name {
			c, err := r.Capture(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			s.capture = c
		}
	}
	for _, dir := range []string{"", "ranks"} {
		if s.capture == nil {
			s.capture = realCapture(t, filepath.Join(dir, name))
		}
	}
	if s.capture == nil {
		return nil // it is not there
	}
	s.keep()
	s.subject.base = []*report.Report{s.report("base", func() ([]mutant.Edit, error) { return nil, nil })}
	for _, k := range s.capture.Kinds() {
		s.units += k.Units
	}
	return s
}

// keep keeps the reports of the capture where -reports says.
func (s *figureSubject) keep() {
	if *reportsIn == "" {
		return
	}
	s.dir = filepath.Join(*reportsIn, s.name)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		s.Fatal(err)
	}
}

// once makes a report where the folder of reports has none of that name; an empty file stands for one that cannot be.
func (s *figureSubject) once(name string, make func() (*report.Report, error)) *report.Report {
	s.Helper()
	if s.dir == "" {
		r, err := make()
		if err != nil {
			return nil
		}
		return r
	}
	path := filepath.Join(s.dir, name+".json")
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() == 0 {
			return nil // it could not be made before
		}
		r, err := report.Read(f)
		if err != nil {
			s.Fatal(err)
		}
		return r
	}
	r, failed := make()
	if f, err = os.Create(path); err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	if failed != nil {
		return nil
	}
	if err := report.Write(f, r); err != nil {
		s.Fatal(err)
	}
	return r
}

// report of a mutant; nil where no strength of the edit does what it should.
func (s *figureSubject) report(name string, edits func() ([]mutant.Edit, error)) *report.Report {
	s.Helper()
	return s.once(name, func() (*report.Report, error) {
		list, err := edits()
		if err != nil {
			return nil, err
		}
		m, err := s.capture.Mutate(list...)
		if err != nil {
			s.Fatal(err)
		}
		trace := m.WriteTB(s.T)
		defer os.Remove(trace)
		return s.analyse(trace, analyze.Options{})
	})
}

// analyse is the report of a trace.
func (s *figureSubject) analyse(trace string, opt analyze.Options) (*report.Report, error) {
	result, err := analyze.Run(context.Background(), trace, opt)
	if err != nil {
		return nil, err
	}
	return result.Report, nil
}

// edits makes known slowdowns, harmless edits and what is faster, one capture a side.
func (s *figureSubject) edits(at func(string) *figure) {
	base := s.subject.base[0]
	names := biggest(base)
	if len(names) == 0 {
		return
	}
	ways := []struct {
		name        string
		none, first float64
		edit        func(on mutant.On, x float64) mutant.Edit
	}{
		{"kernel", 1, 1.2, func(on mutant.On, x float64) mutant.Edit { return mutant.ScaleKernels(on, names[0], x) }},
		{"renamed", 1, 1.2, func(on mutant.On, x float64) mutant.Edit {
			return mutant.Both(mutant.ScaleKernels(on, names[0], x), mutant.Rename(names[0], "another_kernel"))
		}},
		{"allkernels", 1, 1.2, func(on mutant.On, x float64) mutant.Edit { return mutant.ScaleKernels(on, "", x) }},
		{"stall", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Stall(on, x) }},
		{"sync", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Sync(on, x) }},
		{"copy", 0, 10 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Copy(on, true, x) }},
		{"extra", 0, 3 * s.hundredth(), func(on mutant.On, x float64) mutant.Edit { return mutant.Extra(on, 3, loggingKernel, x) }},
	}
	for _, w := range ways {
		for _, size := range []float64{1.055, 1.1, 1.3} {
			for _, every := range []int{1, 7, 12} {
				if every > 1 && (s.units < every || w.name == "renamed") {
					continue
				}
				on := mutant.On{Every: every}
				name := fmt.Sprintf("%s_%d_%.0f", w.name, every, 1000*(size-1))
				head := s.report(name, func() ([]mutant.Edit, error) {
					edit, _, err := s.capture.Sized(size, w.none, w.first, func(x float64) mutant.Edit { return w.edit(on, x) })
					return []mutant.Edit{edit, mutant.Noise(0.003, s.seed+1)}, err
				})
				if head != nil {
					s.seed++
					s.judge(at, name, base, head, every)
				}
			}
		}
	}
	all := mutant.On{}
	for name, edit := range map[string]mutant.Edit{
		"noise05": mutant.Noise(0.005, 3), "noise1": mutant.Noise(0.01, 4), "noise2": mutant.Noise(0.02, 4),
		"up05": mutant.ScaleKernels(all, "", 1.005), "up1": mutant.ScaleKernels(all, "", 1.01),
		"down05": mutant.ScaleKernels(all, "", 0.995), "down1": mutant.ScaleKernels(all, "", 0.99),
		"drift3": mutant.Drift(1.03), "drift97": mutant.Drift(0.97), "justrenamed": mutant.Rename(names[0], "another_kernel"),
	} {
		head := s.report(name, func() ([]mutant.Edit, error) { return []mutant.Edit{edit, mutant.Noise(0.001, 78)}, nil })
		if c := tried(s.T, s.name+" "+name, base, head); c != nil {
			at("noise of 0.5 to 2 %, clocks ±1 %, drift ±3 %, another name: exit 0").count(s.name+" "+name, c, exitOf(c) == 0)
		}
	}
}

// stepTruth is what an edit made of the steps of the device that it hit most: by how much their mean or the median pair of
// them grew, whichever is more; by how much the mean did without the one that grew most; and whether that one carries nine
// tenths of it.
type stepTruth struct {
	ratio, without float64
	one            bool
}

// stepsOf compares the steps that both sides have. Where they cannot be paired, once says that one was hit; ok is false where
// the sides are cut in another way.
func stepsOf(t *testing.T, base, head *report.Report, once bool) (truth stepTruth, ok bool) {
	t.Helper()
	if base.Unit.Kind != head.Unit.Kind || base.Unit.Series == nil || head.Unit.Series == nil {
		return truth, false
	}
	from, err := base.Unit.Series.Decode()
	to, err2 := head.Unit.Series.Decode()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	was, is := map[int64][]float64{}, map[int64][]float64{}
	paired := len(from) == len(to)
	for i, u := range from {
		paired = paired && u.Number == to[i].Number && u.Device == to[i].Device
		if paired && report.UnitStates[u.State] == "kept" && slices.Contains([]string{"kept", "other"}, report.UnitStates[to[i].State]) {
			was[u.Device], is[u.Device] = append(was[u.Device], float64(u.Duration)), append(is[u.Device], float64(to[i].Duration))
		}
	}
	if !paired { // as many but for a few
		b, h := base.Unit.Groups[0], head.Unit.Groups[0]
		x, y := report.NewIndex(base).Metric("unit.time", nil), report.NewIndex(head).Metric("unit.time", nil)
		if math.Abs(float64(h.Count)/float64(b.Count)-1) > 0.05 || x == nil || y == nil {
			return truth, false
		}
		r := max(y.Summary.Mean/x.Summary.Mean, y.Summary.P50/x.Summary.P50)
		return stepTruth{r, r, once}, true
	}
	for device, base := range was {
		var before, after, most float64
		var ratios []float64
		for i, b := range base {
			h := is[device][i]
			before, after, most, ratios = before+b, after+h, max(most, h-b), append(ratios, h/b)
		}
		slices.Sort(ratios)
		if r := max(after/before, ratios[len(ratios)/2]); r > truth.ratio {
			truth = stepTruth{r, (after - most) / before, most > 0.9*(after-before)}
		}
	}
	return truth, truth.ratio > 0
}

// resolved is the least change that a single capture a side resolves: the assumed floor.
const resolved = 1.05

// judge compares both ways. What an edit is counted as is what it made of the steps: work in flight can hide it in all but
// one of them, and a wait for something else in all.
func (s *figureSubject) judge(at func(string) *figure, name string, base, head *report.Report, every int) {
	once := s.units < 2*every
	truth, ok := stepsOf(s.T, base, head, once)
	if !ok {
		truth = stepTruth{resolved, resolved, once}
	}
	name = s.name + " " + name
	there, back := tried(s.T, name, base, head), tried(s.T, name+", back", head, base)
	if there == nil || back == nil {
		return
	}
	switch {
	case truth.ratio < resolved:
		at("mean and median of the steps less than 5 % longer: no fail").count(name, there, there.Verdict != comparison.Fail)
	case truth.one:
		at("one step slower: warn").count(name, there, there.Verdict == comparison.Warn)
	case every > 1 && truth.without < resolved && truth.without-1 < (truth.ratio-1)/2:
		at("some steps slower; without the slowest the mean grows by under 5 % and under half as much: fail or warn").count(name, there, there.Verdict == comparison.Fail || there.Verdict == comparison.Warn)
	case every == 1:
		at("every step slower, +5.5 to +30 %: fail").count(name, there, there.Verdict == comparison.Fail)
		at("and back, faster: exit 0").count(name, back, exitOf(back) == 0)
	default:
		at("each 7th or 12th step slower, two and more: fail").count(name, there, there.Verdict == comparison.Fail)
	}
}

// several compares captures whose times differ by a factor with a standard deviation of 1 %, and 0.5 % a kernel: one a side
// that did not change, and three a side, drawn from ten captures without a change and six with one, eight draws each.
func (s *figureSubject) several(at func(string) *figure) {
	all := mutant.On{}
	rng := rand.New(rand.NewPCG(1, uint64(len(s.name))))
	pool := func(group string, n int, more func() (mutant.Edit, error)) (list []*report.Report) {
		for i := range n {
			factor := math.Exp(0.01 * rng.NormFloat64())
			r := s.report(fmt.Sprint(group, i), func() ([]mutant.Edit, error) {
				edits := []mutant.Edit{mutant.ScaleKernels(all, "", factor), mutant.Noise(0.005, 1000+s.seed+1)}
				if more == nil {
					return edits, nil
				}
				edit, err := more()
				return slices.Insert(edits, 0, edit), err
			})
			if r == nil {
				return nil
			}
			s.seed++
			list = append(list, r)
		}
		return list
	}
	same := pool("pool0", 10, nil)
	names := biggest(s.subject.base[0])
	if len(names) == 0 {
		return
	}
	// slower are captures that a larger kernel, or a stall, makes longer by size, and whether the mean of their steps grows
	// as much: a wait for something else can hide a part of it.
	slower := func(size float64) ([]*report.Report, bool) {
		name := fmt.Sprintf("pool%.0f", 100*(size-1))
		edit := sync.OnceValues(func() (mutant.Edit, error) {
			edit, _, err := s.capture.Sized(size, 1, 1.2, func(x float64) mutant.Edit { return mutant.ScaleKernels(all, names[0], x) })
			if err != nil {
				edit, _, err = s.capture.Sized(size, 0, 10*s.hundredth(), func(x float64) mutant.Edit { return mutant.Stall(all, x) })
			}
			return edit, err
		})
		alone := s.report(name+"alone", func() ([]mutant.Edit, error) {
			edit, err := edit()
			return []mutant.Edit{edit}, err
		})
		if alone == nil {
			return nil, false
		}
		truth, ok := stepsOf(s.T, s.subject.base[0], alone, false)
		return pool(name, 6, edit), !ok || truth.ratio-1 > 0.95*(size-1)
	}
	five, whole := slower(1.05)
	ten, _ := slower(1.1)
	s.seed++
	odd := s.report("odd0", func() ([]mutant.Edit, error) {
		return []mutant.Edit{mutant.ScaleKernels(all, "", 1.2), mutant.Noise(0.005, 1000+s.seed)}, nil
	})
	judged := func(what string, base, head []*report.Report, ok func(c *comparison.Comparison) bool) {
		c, err := diff.Compare(base, head, diff.Options{})
		if err != nil {
			s.Fatal(err)
		}
		at(what).count(s.name, c, ok(c))
	}
	pass := func(c *comparison.Comparison) bool { return c.Verdict == comparison.Pass }
	fails := func(c *comparison.Comparison) bool { return c.Verdict == comparison.Fail }
	for i := range same {
		for k := range same {
			if i != k && (i+k)%4 == 0 {
				judged("captures of one program, clocks with a deviation of 1 %: pass", one(same[i]), one(same[k]), pass)
			}
		}
	}
	draws := rand.New(rand.NewPCG(7, 7))
	some := func(of []*report.Report, n int) (list []*report.Report) {
		for _, i := range draws.Perm(len(of))[:n] {
			list = append(list, of[i])
		}
		return list
	}
	for range 8 {
		six := some(same, 6)
		judged("three a side, no change: pass", six[:3], six[3:], pass)
		if head := "three a side, +5 %: fail"; five != nil {
			if !whole {
				head = "three a side, +5 % of which a wait for something else hides a part: fail or warn"
			}
			judged(head, six[:3], some(five, 3), func(c *comparison.Comparison) bool { return fails(c) || !whole && c.Verdict == comparison.Warn })
		}
		if ten != nil {
			head := some(ten, 3)
			judged("three a side, +10 %: fail", six[:3], head, fails)
			judged("three a side, +10 %, one base capture × 1.2: fail", append(one(odd), six[:2]...), head, fails)
		}
		judged("three a side, no change, one head capture × 1.2: no fail", six[:3], append(one(odd), six[3:5]...), func(c *comparison.Comparison) bool { return !fails(c) })
	}
}

// halves compares the first half of the steps with the second, in both orders.
func (s *figureSubject) halves(at func(string) *figure) {
	middle, ok := middleStep(s.subject.base[0])
	if !ok {
		return
	}
	trace := ""
	half := func(name string, from, to time.Duration) *report.Report {
		return s.once(name, func() (*report.Report, error) {
			if trace == "" {
				m, err := s.capture.Mutate(mutant.Noise(0.0001, 9))
				if err != nil {
					return nil, err
				}
				trace = m.WriteTB(s.T)
			}
			return s.analyse(trace, analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}})
		})
	}
	first := half("steps1", 0, middle)
	second := half("steps2", middle, time.Duration(s.subject.base[0].Window.Length))
	if trace != "" {
		defer os.Remove(trace)
	}
	if first == nil || second == nil {
		return
	}
	mean := func(r *report.Report) (sum float64) { // of the steps but the longest and the shortest
		list, err := r.Unit.Series.Decode()
		if err != nil {
			s.Fatal(err)
		}
		var times []float64
		for _, u := range list {
			if report.UnitStates[u.State] == "kept" {
				times = append(times, float64(u.Duration))
			}
		}
		slices.Sort(times)
		for _, v := range times[1 : len(times)-1] {
			sum += v / float64(len(times)-2)
		}
		return sum
	}
	for _, way := range [][2]*report.Report{{first, second}, {second, first}} {
		c := tried(s.T, s.name+", halves", way[0], way[1])
		if c == nil {
			continue
		}
		if d := math.Log(mean(way[1]) / mean(way[0])); math.Abs(d) > math.Log(1.05) { // other work, or the same in another way
			at("halves of the steps that differ by 5 % and more: no pass if slower, no fail if faster").count(s.name, c, c.Verdict != comparison.Fail && d < 0 || exitOf(c) != 0 && d > 0)
			continue
		}
		at("first half of the steps against the second: pass").count(s.name, c, c.Verdict == comparison.Pass)
	}
}

// middleStep is when the middle step starts, from the start of the window; ok is false where a half has too few.
func middleStep(r *report.Report) (time.Duration, bool) {
	t := report.NewIndex(r).Table("unit", "units")
	var starts []int64
	for k := range t.Len() {
		if t.Str(k, "state") == "kept" {
			starts = append(starts, t.Whole(k, "start"))
		}
	}
	if len(starts) < fewSteps {
		return 0, false
	}
	slices.Sort(starts)
	return time.Duration(starts[len(starts)/2] - r.Window.Start), true
}
