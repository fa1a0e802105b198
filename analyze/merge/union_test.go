package merge

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// tiny is a capture with one kernel, of one rank.
func tiny(n int) *Capture {
	value := func(id string, v float64, labels report.Labels) report.Metric {
		return report.Metric{ID: id, Labels: labels, Value: &v, Unit: report.Nanoseconds, Better: report.Lower,
			Assume: report.Noisy, Scale: report.Total, N: 1, Lifecycle: report.Stable,
			Source: report.Source{Tables: []string{"KERNEL"}, Columns: []string{"start"}, Rows: 1}}
	}
	text := fmt.Sprint(n)
	r := &report.Report{Schema: report.SchemaID, Tool: report.Tool{Name: "explain", Version: "devel"},
		Window:  report.Window{Start: 0, End: 1000, Length: 1000, Mode: "capture"},
		Unit:    report.Unit{Kind: "none"},
		Capture: report.Capture{Content: &text},
		Metrics: []report.Metric{value("kernel.total_time", float64(100+n), report.Labels{}),
			value("kernel.total_time", float64(100+n), report.Labels{"kernel": "gemm"})}}
	r.Trace.Tables = []report.TableCount{{Name: "KERNEL", Rows: 1}}
	r.Trace.Kind = "nsys-sqlite"
	r.Environment.GPUs = []report.GPU{{Device: 0}}
	r.Fill()
	tr := &ranks.Track{Rank: int64(n), World: -1, From: "flag", PID: int64(1000 + n)}
	return &Capture{Head: Head{Key: fmt.Sprintf("%08x", n*2654435761%(1<<32)), Name: "rank" + text + ".sqlite", Host: "h", Session: 5},
		Report: r, Counts: []Counts{NewCounts("kernel", "gemm", []int64{int64(100 + n)})}, Tracks: []*ranks.Track{tr}}
}

func written(t interface{ Fatal(...any) }, c *Capture) []byte {
	b, err := c.Partial()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func from(list ...[]byte) []Source {
	var out []Source
	for i, b := range list {
		out = append(out, Source{Name: fmt.Sprintf("%d.partial", i),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }})
	}
	return out
}

func union(t interface{ Fatal(...any) }, list ...[]byte) []byte {
	var b bytes.Buffer
	if err := Union(context.Background(), &b, from(list...)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever tree of merges, in whatever order, with captures in several branches: the same bytes, and the same report.
func TestMergeIsAssociativeCommutativeAndIdempotent(t *testing.T) {
	longtest.Draws(t, 30)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "captures")
		var parts [][]byte
		for i := range n {
			parts = append(parts, written(t, tiny(i)))
		}
		want := union(t, parts...)
		nodes := append([][]byte{}, parts...)
		for range rapid.IntRange(0, 3).Draw(t, "again") {
			nodes = append(nodes, parts[rapid.IntRange(0, n-1).Draw(t, "which")])
		}
		shuffled := func(list [][]byte) [][]byte {
			out := make([][]byte, 0, len(list))
			places := make([]int, len(list))
			for i := range places {
				places[i] = i
			}
			for _, at := range rapid.Permutation(places).Draw(t, "order") {
				out = append(out, list[at])
			}
			return out
		}
		for len(nodes) > 1 {
			take := rapid.IntRange(2, min(3, len(nodes))).Draw(t, "take")
			nodes = shuffled(nodes)
			nodes = append(nodes[take:], union(t, nodes[:take]...))
		}
		got := union(t, nodes[0])
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
		one, err := Report(context.Background(), from(shuffled(parts)...), Options{Rules: testRules})
		if err != nil {
			t.Fatal(err)
		}
		other, err := Report(context.Background(), from(got), Options{Rules: testRules})
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := report.Write(&a, one); err != nil {
			t.Fatal(err)
		}
		if err := report.Write(&b, other); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatal("reports differ")
		}
	})
}

// Three ranks, by hand: times add up, and percentiles are of all events together.
func TestReportAddsUp(t *testing.T) {
	r, err := Report(context.Background(), from(written(t, tiny(0)), written(t, tiny(1)), written(t, tiny(5))), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []report.Labels{{}, {"kernel": "gemm"}} {
		m := r.Find("kernel.total_time", l)
		if m == nil || *m.Value != 100+101+105 || m.N != 3 || m.Source.Rows != 3 || m.Coverage != nil {
			t.Errorf("%v: %+v", l, m)
		}
	}
	if s := r.Find("kernel.total_time", report.Labels{"kernel": "gemm"}).Summary; s == nil || s.P50 != 101 || s.N != 3 || s.Mean != 102 {
		t.Errorf("%+v", s)
	}
	if m := r.Find("ranks.count", nil); *m.Value != 3 {
		t.Errorf("%+v", m)
	}
	if len(r.Environment.GPUs) != 3 || r.Environment.GPUs[2].Device != 2 || r.Window.Length != 1000 {
		t.Errorf("%+v %+v", r.Environment.GPUs, r.Window)
	}
}

// What cannot be merged is refused in one sentence that says what to do.
// Every field of the environment that two captures agree on is of the run. Where they differ it is unknown, and the warning names it.
func TestEnvironmentOfARun(t *testing.T) {
	fill := func(e *report.Environment, text string, number int64) {
		for i := range reflect.TypeFor[report.Environment]().NumField() {
			switch p := reflect.ValueOf(e).Elem().Field(i).Addr().Interface().(type) {
			case **string:
				*p = &text
			case **int64:
				*p = &number
			}
		}
	}
	run := func(change func(e *report.Environment)) *report.Report {
		a, b := tiny(0), tiny(1)
		fill(&a.Report.Environment, "as it was", 8)
		fill(&b.Report.Environment, "as it was", 8)
		change(&b.Report.Environment)
		r, err := Report(context.Background(), from(written(t, a), written(t, b)), Options{Rules: testRules})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := report.Environment{GPUs: []report.GPU{{Device: 0}, {Device: 1}}, TraceSet: []string{}}
	fill(&want, "as it was", 8)
	if diff := cmp.Diff(want, run(func(*report.Environment) {}).Environment); diff != "" {
		t.Error(diff)
	}
	other, nine := "other", int64(9)
	want.Packages, want.MaxModelLen, want.Clocks, want.ExporterVersion, want.Engine = nil, nil, nil, nil, nil
	r := run(func(e *report.Environment) {
		e.Packages, e.MaxModelLen, e.Clocks, e.ExporterVersion, e.Engine = &other, &nine, &other, &other, nil
	})
	if diff := cmp.Diff(want, r.Environment); diff != "" {
		t.Error(diff)
	}
	i := slices.IndexFunc(r.Warnings, func(w report.Warning) bool { return w.Code == "mixed_environment" })
	if i < 0 || r.Warnings[i].Text != "The captures of this run differ in the longest sequence, packages, the clocks of GPUs." {
		t.Errorf("%+v", r.Warnings)
	}
}

func TestBadInput(t *testing.T) {
	good := written(t, tiny(1))
	pack := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	changed := func(edit func(c *Capture)) []byte {
		c := tiny(2)
		edit(c)
		return written(t, c)
	}
	z, err := gzip.NewReader(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	unnamed := strings.Replace(string(text), `{"captures":1}`, `{"key":"~"}`+"\n{}\n"+`{"captures":2}`, 1)
	for _, c := range []struct {
		name, want string
		parts      [][]byte
	}{
		{"nothing", "no capture to merge", nil},
		{"text", "not a partial: it is not packed with gzip", [][]byte{[]byte("SQLite format 3")}},
		{"other gzip", "it holds something else", [][]byte{pack("hello\n")}},
		{"next version", `has format "explain.partial/2", this version reads explain.partial/1: make it again`, [][]byte{pack(`{"schema":"explain.partial/2"}` + "\n")}},
		{"cut off", "it was cut off or is damaged", [][]byte{good[:len(good)/2]}},
		{"without its end", "it was cut off or is damaged", [][]byte{pack(`{"schema":"explain.partial/1","heads":[{"key":"a"}]}` + "\n")}},
		{"without heads and end", "it was cut off or is damaged", [][]byte{good, pack(`{"schema":"explain.partial/1"}` + "\n")}},
		{"without heads", "captures that its first line does not name", [][]byte{good, pack(`{"schema":"explain.partial/1"}` + "\n" + `{"key":"a"}` + "\n{}\n" + `{"captures":1}` + "\n")}},
		{"one head for two", "captures that its first line does not name", [][]byte{pack(unnamed)}},
		{"no report", "it holds no report", [][]byte{pack(`{"schema":"explain.partial/1","heads":[{"key":"a"}]}` + "\n" + `{"key":"a"}` + "\n{}\n" + `{"captures":1}` + "\n")}},
		{"miscounted", "it holds 0 captures and says 1", [][]byte{pack(`{"schema":"explain.partial/1","heads":[{"key":"a"}]}` + "\n" + `{"captures":1}` + "\n")}},
		{"the same rank twice", "rank 1 is there twice, in rank", [][]byte{good, changed(func(c *Capture) { c.Tracks[0].Rank = 1 })}},
		{"another run", "to a run of 4 ranks", [][]byte{changed(func(c *Capture) { c.Key, c.Tracks[0].World = "0", 4 }),
			changed(func(c *Capture) { c.Tracks[0].World, c.Tracks[0].Rank = 8, 7 })}},
		{"another time", "belong to different runs: one was captured 2h46m40s after", [][]byte{good, changed(func(c *Capture) { c.Session += 10_000 * 1e9 })}},
		{"one capture, two opinions", "hold the same capture and do not agree", [][]byte{good, changed(func(c *Capture) { c.Head = tiny(1).Head })}},
	} {
		_, err := Report(context.Background(), from(c.parts...), Options{Rules: testRules})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A rank that only communicators number is not known where they number two alike.
	nccl := func(n int) []byte {
		c := tiny(n)
		c.Tracks[0].Rank, c.Tracks[0].World, c.Tracks[0].From = 0, 2, "nccl"
		return written(t, c)
	}
	r, err := Report(context.Background(), from(nccl(1), nccl(2)), Options{Rules: testRules, Rank: regexp.MustCompile(`rank(\d+)`)})
	if err != nil || len(r.Warnings) == 0 || r.Warnings[len(r.Warnings)-1].Code == "" {
		t.Errorf("%v", err)
	}
}

// A file that cannot be read is not called something else than a partial, wherever the reading ends.
func TestPartialThatCannotBeRead(t *testing.T) {
	good := written(t, tiny(1))
	for _, n := range []int{0, 2, len(good) / 2} {
		failed := &fs.PathError{Op: "read", Path: "a.partial", Err: errors.New("input/output error")}
		p, err := NewReader("a.partial", io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(failed)))
		for h := (*Head)(nil); err == nil; {
			if h, err = p.Next(); h == nil {
				break
			}
		}
		if !errors.Is(err, failed.Err) || errors.Is(err, errPartial) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// Ranks come from names where nothing else tells them, and those that are missing are named.
func TestRankFromNameAndMissing(t *testing.T) {
	var parts [][]byte
	for i := range 3 {
		c := tiny(i)
		c.Tracks[0].Rank, c.Tracks[0].World, c.Tracks[0].From = -1, 5, ""
		parts = append(parts, written(t, c))
	}
	r, err := Report(context.Background(), from(parts...), Options{Rules: testRules, Rank: regexp.MustCompile(`rank(\d+)`),
		Roles: []Role{{"decode", regexp.MustCompile(`rank[12]`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Find("ranks.missing", nil); *m.Value != 2 {
		t.Errorf("%+v", m)
	}
	if m := r.Find("ranks.count", report.Labels{"role": "decode"}); m == nil || *m.Value != 2 {
		t.Errorf("%+v", m)
	}
	s := r.Sections[0]
	if s.Status != report.Partial || s.Reason != "3 of 5 ranks: ranks 3, 4" {
		t.Errorf("%s: %s", s.Status, s.Reason)
	}
}

// Bytes that nobody wrote give an error, never a panic.
func FuzzPartial(f *testing.F) {
	f.Add(written(f, tiny(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := Report(context.Background(), from(b), Options{Rules: testRules})
		if err != nil && errors.Is(err, io.ErrUnexpectedEOF) {
			t.Skip()
		}
	})
}

// A damaged track may state any size of its run: the ranks that are missing are counted, and only the first are named.
func TestMissingRanksOfARunWithoutEnd(t *testing.T) {
	c := tiny(1)
	c.Tracks[0].World = 1 << 60
	r, err := Report(context.Background(), from(written(t, c)), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("1 of %d ranks were merged; no capture of ranks 0, 2, 3, 4, 5, 6, 7, 8, 9, 10 and %d more.", 1<<60, 1<<60-11)
	if !slices.ContainsFunc(r.Warnings, func(w report.Warning) bool { return strings.HasPrefix(w.Text, want) }) {
		t.Errorf("%+v, want %q", r.Warnings, want)
	}
}

// Counts that say nothing, as a damaged or hostile partial holds them, give no summary and end nothing.
func TestCoarseCountsOfNothing(t *testing.T) {
	c := tiny(1)
	c.Counts = []Counts{{Family: "kernel", Key: "gemm", Coarse: true}}
	r, err := Report(context.Background(), from(written(t, c)), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Metrics {
		if m.ID == "kernel.total_time" && (m.Summary != nil || *m.Value != 101) {
			t.Errorf("%v: %v, %+v", m.Labels, *m.Value, m.Summary)
		}
	}
}
