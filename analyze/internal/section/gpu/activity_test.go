package gpu_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A window of 0 to 1000 in steps of 10. The kernel 0-5 fills half of the first step; a copy of 64 bytes at 20-40 fills the
// steps 2 and 3; the kernel 990-1000 fills the last one. A blocking call 15-35 takes 5, 10 and 5 of the steps 1 to 3.
func TestActivity(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 5})
	th.Memcpy(2, 3, tracetest.Memcpy{Start: 20, End: 40, Bytes: 64, Kind: tracetest.HtoD})
	th.DeviceSynchronize(15, 35, 0)
	th.Launch("gemm", 981, 982, tracetest.Kernel{Start: 990, End: 1000})
	l := sectiontest.Look(t, b, analyze.Options{})
	tab := l.Table("activity", "activity")
	l.Row(tab, 0, "start", "0", "busy", "0.5", "launches", "1", "sync", "0", "copied", "0", "in_graphs", "0", "phase", "null")
	l.Row(tab, 1, "start", "10", "busy", "0", "launches", "0", "sync", "5", "in_graphs", "null")
	l.Row(tab, 2, "start", "20", "busy", "1", "sync", "10", "copied", "64")
	l.Row(tab, 3, "start", "30", "busy", "1", "sync", "5", "copied", "0")
	l.Row(tab, 98, "launches", "1", "busy", "0")
	l.Row(tab, 99, "start", "990", "busy", "1", "launches", "0")
	if tab.TotalRows != 100 {
		t.Errorf("%d rows", tab.TotalRows)
	}
	l.CsvHas(tab, "activity.csv", "start_ns", "launch_count", "pct_gpu_use")
}

func TestActivityNeedsAWindow(t *testing.T) {
	b := tracetest.New()
	b.Process(5, "p").Thread(5, "").Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 50})
	l := sectiontest.Look(t, b, analyze.Options{})
	for _, s := range l.Report.Sections {
		if s.ID == "activity" && s.Status != "not_applicable" {
			t.Errorf("status %s", s.Status)
		}
	}
}
