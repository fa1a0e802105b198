package explaintest

import (
	"context"
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Edited are copies of the serving trace of testdata, each with one change: again (recorded once more), slow and more
// (gaps of 60 and 61 µs in every step), attention (its kernels slower by a fifth), pageable (copies), a1 to a3 (as
// three captures of one commit differ).
func Edited(t testing.TB) map[string][]byte {
	t.Helper()
	traces, err := edited()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(traces)
}

var edited = sync.OnceValues(func() (map[string][]byte, error) {
	src := Testdata("serving.sqlite")
	steps, err := stepStarts(src)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "edited")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all := func(string) bool { return true }
	traces := map[string][]byte{}
	for name, edit := range map[string]tracetest.Edit{
		"again.sqlite":     tracetest.ScaleKernels(all, 1.0001),
		"worse.sqlite":     tracetest.InsertGaps(120_000, steps...),
		"more.sqlite":      tracetest.InsertGaps(61_000, steps...),
		"slow.sqlite":      tracetest.InsertGaps(60_000, steps...),
		"attention.sqlite": tracetest.ScaleKernels(func(name string) bool { return strings.Contains(name, "FlashAttn") }, 1.2),
		"pageable.sqlite":  tracetest.PageableCopies(),
		"a1.sqlite":        tracetest.ScaleKernels(all, 1.01),
		"a2.sqlite":        tracetest.ScaleKernels(all, 0.98),
		"a3.sqlite":        tracetest.ScaleKernels(all, 1.005),
	} {
		path := filepath.Join(dir, name)
		if err := tracetest.Rewrite(src, path, edit); err != nil {
			return nil, err
		}
		if err := LaterSession(path, int64(len(traces)+1)); err != nil {
			return nil, err
		}
		if traces[name], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return traces, nil
})

// LaterSession makes a trace a recording of its own: its session began so many ns later.
func LaterSession(path string, later int64) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", later)
	return err
}

// stepStarts are moments inside the steps of a trace: a little after each unit of work of the first device began.
func stepStarts(src string) ([]int64, error) {
	res, err := analyze.Run(context.Background(), src, analyze.Options{})
	if err != nil {
		return nil, err
	}
	var at []int64
	units := report.NewIndex(res.Report).Table("unit", "units")
	for i := range units.Len() {
		if units.Whole(i, "device_id") == 0 {
			at = append(at, units.Whole(i, "start")+1)
		}
	}
	return at, nil
}
