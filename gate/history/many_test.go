package history_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

var (
	filled = flag.String("filled", "", "where TestPageOfManyRuns leaves its store, for explain history page")
)

// TestPageOfManyRuns: a page of all branches, each with a change of its own, is bounded. What it allocates grows with the runs, by a few kB for each, and it
// draws no more than the newest nights of the newest series, whatever there is.
func TestPageOfManyRuns(t *testing.T) {
	t.Parallel()
	branches, runs := longtest.N(10, 40), longtest.N(250, 100_000)
	place := *filled
	if place == "" {
		place = filepath.Join(t.TempDir(), "h.db")
	}
	s, ctx := open(t, place), context.Background()
	r := historytest.Report(t, historytest.Capture{Seed: 1})
	for b := range branches {
		p := night(0)
		p.Branch = fmt.Sprintf("team/%d", b)
		if err := s.FillForTest(ctx, r, p, runs/branches, 1.05); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := s.Check(ctx, history.CheckOptions{Today: now})
	if err != nil {
		t.Fatal(err)
	}
	d := c.Page(nil)
	var size counted
	if err := render.HTML(&size, d, "explain: history"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / uint64(runs)
	t.Logf("%d runs, %d series, %d changes: %d bytes of page, %d bytes and %d objects allocated for each run",
		runs, len(c.Series), len(c.Changes), size, each, (after.Mallocs-before.Mallocs)/uint64(runs))
	if len(c.Changes) != branches {
		t.Errorf("%d changes in %d series that each have one", len(c.Changes), branches)
	}
	if size > 8_000_000 {
		t.Errorf("the page has %d bytes", size)
	}
	if longtest.On() && each > 20_000 {
		t.Errorf("%d bytes are allocated for each run", each)
	}
}

type counted int64

func (c *counted) Write(b []byte) (int, error) {
	*c += counted(len(b))
	return len(b), nil
}
