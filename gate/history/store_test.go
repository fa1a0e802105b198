package history_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

var now = time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)

// night is the place of the run of a night.
func night(n int) history.Place {
	return history.Place{Repository: "team/server", Branch: "main", Commit: historytest.Commit(n), Time: now.AddDate(0, 0, n-200)}
}

// dump is all that a store says of itself, but for ids of rows.
func dump(t testing.TB, s *history.Store) string {
	t.Helper()
	var b strings.Builder
	if err := s.Points(context.Background(), history.Filter{}, func(p *history.Point) error {
		return json.NewEncoder(&b).Encode(p)
	}); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Runs(context.Background(), history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		r, err := s.Report(context.Background(), &runs[i])
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := report.Write(&text, r); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %d\n", runs[i].Key, runs[i].Name, text.Len())
	}
	acks, err := s.Acks(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	tags, err := s.Tags(context.Background(), "team/server")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, acks, tags)
	return b.String()
}

func add(t testing.TB, s *history.Store, p history.Place, reports ...*report.Report) *history.Added {
	t.Helper()
	added, err := s.Add(context.Background(), p, reports, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func TestAddTwiceChangesNothing(t *testing.T) {
	a, b := historytest.Report(t, historytest.Capture{Seed: 1}), historytest.Report(t, historytest.Capture{Seed: 2})
	beside := historytest.Report(t, historytest.Capture{Seed: 3, Level: 0.5})
	var dumps []string
	onEach(t, func(t *testing.T, place string) {
		s := open(t, place)
		p := night(1)
		p.Tags = []string{"v1"}
		pinned := &history.Pinned{Commit: historytest.Commit(99), Reports: []*report.Report{beside}}
		for i, want := range []history.Added{{Merged: history.Merged{Runs: 2}, Pinned: true},
			{Merged: history.Merged{Known: 2}}} {
			got, err := s.Add(context.Background(), p, []*report.Report{a, b, a}, pinned, now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Runs != want.Runs || got.Known != want.Known || got.Pinned != want.Pinned {
				t.Errorf("time %d: %+v, want %+v", i+1, got, want)
			}
		}
		text := dump(t, s)
		// of hand: a step of level 1 takes 400 µs, the reference half of it
		if n := strings.Count(text, `"metric":"unit.time.p50"`); n != 2 {
			t.Errorf("%d medians of the step, want one of each capture", n)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Contains(line, `"metric":"unit.time.p50"`) && (!strings.Contains(line, `"value":400`) && !strings.Contains(line, `"value":399`) ||
				!strings.Contains(line, `"pinned":200`) && !strings.Contains(line, `"pinned":199`)) {
				t.Error(line)
			}
		}
		dumps = append(dumps, text)
	})
	if len(dumps) == 2 {
		if d := cmp.Diff(dumps[0], dumps[1]); d != "" {
			t.Errorf("the two databases differ: %s", d)
		}
	}
}

func TestBadInput(t *testing.T) {
	a := historytest.Report(t, historytest.Capture{Seed: 1})
	other := historytest.Report(t, historytest.Capture{Seed: 2, GPU: "NVIDIA H200"})
	empty := *a
	empty.Metrics, empty.Findings, empty.Remarks = []report.Metric{}, []report.Finding{}, []report.Remark{}
	with := func(p history.Place, edit func(*history.Place)) history.Place {
		edit(&p)
		return p
	}
	onEach(t, func(t *testing.T, place string) {
		s := open(t, place)
		add(t, s, night(7), a)
		before := dump(t, s)
		for name, x := range map[string]struct {
			place   history.Place
			reports []*report.Report
			pinned  *history.Pinned
			want    string
		}{
			"two workloads":     {night(8), []*report.Report{a, other}, nil, `1.sqlite and 2.sqlite ran different workloads: gpu is "NVIDIA H100 80GB HBM3" and "NVIDIA H200"`},
			"short commit":      {with(night(8), func(p *history.Place) { p.Commit = "c0ffee" }), []*report.Report{other}, nil, "is not a full id"},
			"no branch":         {with(night(8), func(p *history.Place) { p.Branch = "" }), []*report.Report{other}, nil, "name the branch"},
			"hostile branch":    {with(night(8), func(p *history.Place) { p.Branch = "a\x1b[31m" }), []*report.Report{other}, nil, "letters, digits"},
			"future":            {with(night(8), func(p *history.Place) { p.Time = now.AddDate(1, 0, 0) }), []*report.Report{other}, nil, "still to come"},
			"long ago":          {with(night(8), func(p *history.Place) { p.Time = time.Unix(7, 0) }), []*report.Report{other}, nil, "before 2000"},
			"one capture twice": {night(8), []*report.Report{a}, nil, "cannot be of " + historytest.Commit(8) + " as well"},
			"no numbers":        {night(8), []*report.Report{&empty}, nil, "no number"},
			"reference elsewhere": {night(8), []*report.Report{other}, &history.Pinned{Commit: historytest.Commit(0), Reports: []*report.Report{a}},
				"another workload than the runs"},
			"tag moves": {with(night(7), func(p *history.Place) { p.Tags = []string{"v1"} }), []*report.Report{a}, nil, ""},
			"tag moved": {with(night(8), func(p *history.Place) { p.Tags = []string{"v9"} }), []*report.Report{other}, nil, "tag v9 names commit"},
		} {
			if name == "tag moved" {
				p := night(7)
				p.Tags = []string{"v9"}
				add(t, s, p, a)
				before = dump(t, s)
			}
			if name == "tag moves" {
				continue // a tag that is added is no error
			}
			_, err := s.Add(context.Background(), x.place, x.reports, x.pinned, now)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v, want %q", name, err, x.want)
			}
			if after := dump(t, s); after != before {
				t.Errorf("%s: something was changed", name)
			}
		}
	})
}

func TestClockGoesBack(t *testing.T) {
	a, b := historytest.Report(t, historytest.Capture{Seed: 1}), historytest.Report(t, historytest.Capture{Seed: 2})
	onEach(t, func(t *testing.T, place string) {
		s := open(t, place)
		add(t, s, night(7), a)
		p := night(8)
		p.Time = time.Time{}
		_, err := s.Add(context.Background(), p, []*report.Report{b}, nil, night(7).Time.Add(-time.Hour))
		if err == nil || !strings.Contains(err.Error(), "name the time of this one with --time") {
			t.Errorf("the clock went back: %v", err)
		}
		if got := add(t, s, p, b); got.Runs != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// Commits that are added within one second keep their order, and all but the first are told to be of the same minute.
func TestAddsOfOneSecondKeepTheirOrder(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		s := open(t, place)
		order := []int{9, 3, 7, 1}
		now := night(20).Time
		for i, n := range order {
			p := night(n)
			p.Time = time.Time{}
			r := historytest.Report(t, historytest.Capture{Seed: uint64(n)})
			got, err := s.Add(context.Background(), p, []*report.Report{r}, nil, now)
			if err != nil || got.Near != (i > 0) {
				t.Fatalf("%d: %+v %v", i, got, err)
			}
		}
		runs, err := s.Runs(context.Background(), history.Filter{})
		if err != nil || len(runs) != len(order) {
			t.Fatal(len(runs), err)
		}
		for i, n := range order {
			if runs[i].Commit != night(n).Commit {
				t.Errorf("run %d is of %s", i, runs[i].Commit)
			}
		}
	})
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	const writers, each = 4, 3
	var reports [writers * each]*report.Report
	for i := range reports {
		reports[i] = historytest.Report(t, historytest.Capture{Seed: uint64(i + 1), Steps: 4})
	}
	onEach(t, func(t *testing.T, place string) {
		var wg sync.WaitGroup
		errs := make(chan error, writers*each)
		for w := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				s, err := history.Open(context.Background(), place, history.Create)
				if err != nil {
					errs <- err
					return
				}
				defer s.Close()
				for i := range each {
					_, err := s.Add(context.Background(), night(w*each+i+1), []*report.Report{reports[w*each+i]}, nil, now)
					errs <- err
				}
			}()
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		runs, err := open(t, place).Runs(context.Background(), history.Filter{})
		if err != nil || len(runs) != writers*each {
			t.Errorf("%d runs, want %d (%v)", len(runs), writers*each, err)
		}
	})
}

// writeUntilKilled is another process: it begins a transaction, says so, and waits for its end.
func writeUntilKilled(place string) {
	db, err := sql.Open("sqlite", "file:"+place+"?_pragma=cache_size(1)")
	if err == nil {
		var tx *sql.Tx
		if tx, err = db.Begin(); err == nil {
			if _, err = tx.Exec("DELETE FROM points"); err == nil {
				_, err = tx.Exec("UPDATE runs SET report = zeroblob(2000000)")
			}
		}
	}
	fmt.Println("killable", err)
	select {}
}

func TestKilledWriterLeavesTheOldState(t *testing.T) {
	place := filepath.Join(t.TempDir(), "history.db")
	s := open(t, place)
	for i := range 3 {
		add(t, s, night(i+1), historytest.Report(t, historytest.Capture{Seed: uint64(i + 1)}))
	}
	before := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	bytesBefore, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "HISTORY_TEST_KILL="+place)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said [64]byte
	n, err := out.Read(said[:])
	if err != nil || string(said[:n]) != "killable <nil>\n" {
		t.Fatalf("%q, %v", said[:n], err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if half, err := os.ReadFile(place); err != nil || bytes.Equal(half, bytesBefore) {
		t.Fatalf("the writer had not written a thing when it was killed: %v", err)
	}
	if after := dump(t, open(t, place)); after != before {
		t.Error("the store is not as it was")
	}
}

func TestStoresThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	foreign := historytest.Trace(t, historytest.Capture{Seed: 1})
	newer := filepath.Join(dir, "newer.db")
	if err := open(t, newer).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE explain_history SET schema = 7"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	broken := filepath.Join(dir, "broken.db")
	whole, _ := os.ReadFile(newer)
	for i := 200; i < 4096; i++ {
		whole[i] = 0xff
	}
	for name, content := range map[string][]byte{"text.db": []byte(strings.Repeat("no database ", 100)), "broken.db": whole} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		place string
		mode  history.Mode
		want  string
	}{
		{filepath.Join(dir, "none.db"), history.Read, "there is no history"},
		{dir, history.Create, "is a folder"},
		{os.DevNull, history.Create, "is not a regular file"},
		{filepath.Join(dir, "text.db"), history.Create, "is broken"},
		{broken, history.Read, "is broken"},
		{newer, history.Create, fmt.Sprintf("has schema 7, and this explain knows up to %d", history.Schema)},
		{foreign, history.Create, "not a history of explain"},
		{"postgres://nobody:secret@127.0.0.1:1/none?sslmode=disable", history.Read, "//nobody@127"},
		{"postgres://nobody@127.0.0.1:1/none?password=secret&sslmode=disable", history.Read, "none?sslmode=disable"},
		{"postgres://nobody:sec%ret@127.0.0.1/secret", history.Read, "write a file, or postgres://"},
		{"postgresql+psycopg2://nobody:secret@127.0.0.1/none", history.Create, "write a file, or postgres://"},
		{"host=127.0.0.1 user=nobody password=secret", history.Read, "write a file, or postgres://"},
		{"host = 127.0.0.1 user = nobody password = secret", history.Read, "write a file, or postgres://"},
		{"Host=127.0.0.1;Username=nobody;Password=secret", history.Read, "write a file, or postgres://"},
	} {
		was, _ := os.ReadFile(x.place)
		s, err := history.Open(ctx, x.place, x.mode)
		if err == nil {
			_, err = s.Runs(ctx, history.Filter{})
			err = errors.Join(err, s.Close())
		}
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", filepath.Base(x.place), err, x.want)
		}
		if is, _ := os.ReadFile(x.place); !bytes.Equal(was, is) {
			t.Errorf("%s was changed", filepath.Base(x.place))
		}
	}
}

func TestMergeIsIdempotentAndCommutes(t *testing.T) {
	var reports [4]*report.Report
	for i := range reports {
		reports[i] = historytest.Report(t, historytest.Capture{Seed: uint64(i + 1)})
	}
	pinned := &history.Pinned{Commit: historytest.Commit(99), Reports: reports[3:]}
	fill := func(s *history.Store, from, to int) {
		for i := from; i < to; i++ {
			p := night(i)
			if i == 1 {
				p.Tags = []string{"v1"}
			}
			if _, err := s.Add(context.Background(), p, reports[i:i+1], pinned, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	onEach(t, func(t *testing.T, place string) {
		ctx := context.Background()
		local := func(name string) *history.Store { return open(t, filepath.Join(t.TempDir(), name)) }
		a, b, ba := local("a"), local("b"), local("ba")
		fill(a, 0, 2)
		fill(b, 1, 3)
		if _, err := b.Acknowledge(ctx, history.Ack{Repository: "team/server", Commit: historytest.Commit(2), Reason: "fp8", Expires: "2026-12-31"}); err != nil {
			t.Fatal(err)
		}
		ab := open(t, place)
		for i, x := range []struct {
			to, from    *history.Store
			runs, known int
		}{{ab, a, 2, 0}, {ab, b, 1, 1}, {ab, b, 0, 2}, {ab, a, 0, 2}, {ba, b, 2, 0}, {ba, a, 1, 1}} {
			got, err := x.to.Merge(ctx, x.from)
			if err != nil || got.Runs != x.runs || got.Known != x.known {
				t.Errorf("merge %d: %+v, %v; want %d new, %d known", i, got, err, x.runs, x.known)
			}
		}
		if d := cmp.Diff(dump(t, ab), dump(t, ba)); d != "" {
			t.Errorf("a then b and b then a differ: %s", d)
		}
	})
}

// TestAcknowledgeWithoutARepository: it holds in each repository that has the commit, and in no other.
func TestAcknowledgeWithoutARepository(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		s := open(t, place)
		for i, repository := range []string{"team/server", "team/fork", "other"} {
			p := night(i / 2) // the first two of one commit
			p.Repository = repository
			add(t, s, p, historytest.Report(t, historytest.Capture{Seed: uint64(i + 1), Steps: 4}))
		}
		if _, err := s.Acknowledge(t.Context(), history.Ack{Commit: historytest.Commit(0), Reason: "r", Expires: "2026-12-31"}); err != nil {
			t.Fatal(err)
		}
		acks, err := s.Acks(t.Context(), "")
		var of []string
		for _, a := range acks {
			of = append(of, a.Repository)
		}
		if d := cmp.Diff([]string{"team/fork", "team/server"}, of); d != "" || err != nil {
			t.Errorf("%s %v", d, err)
		}
		// the beginning that both commits share is one of them in the repository other
		if got, err := s.Resolve(t.Context(), "other", historytest.Commit(1)[:12]); got != historytest.Commit(1) || err != nil {
			t.Errorf("%s %v", got, err)
		}
		if _, err := s.Acknowledge(t.Context(), history.Ack{Repository: "team/none", Commit: historytest.Commit(0), Reason: "r", Expires: "2026-12-31"}); !errors.Is(err, history.ErrUnknown) {
			t.Errorf("a repository without runs: %v", err)
		}
	})
}

func TestPrune(t *testing.T) {
	var reports [6]*report.Report
	for i := range reports {
		reports[i] = historytest.Report(t, historytest.Capture{Seed: uint64(i + 1), Steps: 4})
	}
	onEach(t, func(t *testing.T, place string) {
		ctx := context.Background()
		s := open(t, place)
		for i, r := range reports {
			p := night(i)
			if i == 1 {
				p.Tags = []string{"v1"}
			}
			add(t, s, p, r)
		}
		if _, err := s.Acknowledge(ctx, history.Ack{Repository: "team/server", Commit: historytest.Commit(2)[:12], Reason: "r", Expires: "2026-12-31"}); err == nil {
			t.Error("the beginning that all commits share was taken for one")
		}
		if _, err := s.Acknowledge(ctx, history.Ack{Repository: "team/server", Commit: historytest.Commit(2), Reason: "r", Expires: "2026-12-31"}); err != nil {
			t.Fatal(err)
		}
		// older than night 5 are 0 to 4; 4 and 5 are the newest two, 1 has a tag, 2 is acknowledged: 0 and 3 go
		n, err := s.Prune(ctx, night(5).Time, 2)
		if err != nil || n != 2 {
			t.Fatalf("%d runs removed, want 2 (%v)", n, err)
		}
		var left []string
		runs, err := s.Runs(ctx, history.Filter{})
		for _, r := range runs {
			left = append(left, r.Commit)
		}
		if d := cmp.Diff([]string{historytest.Commit(1), historytest.Commit(2), historytest.Commit(4), historytest.Commit(5)}, left); d != "" || err != nil {
			t.Errorf("%s %v", d, err)
		}
		if n, err := s.Prune(ctx, night(5).Time, 2); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
	})
}

// TestKeptReportsCompareAsWholeOnesDo holds what the store keeps to the comparison that the whole reports give.
func TestKeptReportsCompareAsWholeOnesDo(t *testing.T) {
	a := historytest.Report(t, historytest.Capture{Seed: 1})
	b := historytest.Report(t, historytest.Capture{Seed: 2, Kernels: map[string]float64{"attention": 1.3}, Gap: 1.5})
	text := func(a, b *report.Report) string {
		c, err := diff.Compare([]*report.Report{a}, []*report.Report{b}, diff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Verdict != comparison.Fail {
			t.Fatalf("%s: %s", c.Verdict, c.Cause)
		}
		var out bytes.Buffer
		if err := comparison.Write(&out, c); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if d := cmp.Diff(text(a, b), text(history.Keep(a), history.Keep(b))); d != "" {
		t.Error(d)
	}
}

// TestSizeOfARun holds what a run adds to a file to 100 kB, for the largest reports there are.
func TestSizeOfARun(t *testing.T) {
	own, err := filepath.Glob("../../testdata/*.sqlite")
	if err != nil || len(own) == 0 {
		t.Fatalf("no traces (%v)", err)
	}
	for _, trace := range append(own, longtest.Captures(t)...) {
		res, err := analyze.Run(context.Background(), trace, analyze.Options{})
		if err != nil {
			continue // of no use to a history either
		}
		s := open(t, filepath.Join(t.TempDir(), "history.db"))
		size := func() int64 {
			info, err := os.Stat(s.Name())
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		empty := size()
		if _, err := s.Add(context.Background(), night(1), []*report.Report{res.Report}, nil, now); err != nil {
			if !strings.Contains(err.Error(), "no number") {
				t.Errorf("%s: %v", filepath.Base(trace), err)
			}
			continue
		}
		if took := size() - empty; took > 100_000 {
			t.Errorf("%s takes %d bytes", filepath.Base(trace), took)
		} else {
			t.Logf("%s: %d bytes", filepath.Base(trace), took)
		}
	}
}
