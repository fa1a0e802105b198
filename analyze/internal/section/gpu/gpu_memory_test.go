package gpu_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// allocation adds an event of memory: of 2 kinds, 2 device and 1 pinned; operation 0 allocates and 1 frees.
func allocation(b *tracetest.Builder, at, operation, address, bytes, kind, pool, used int64) {
	row := tracetest.Row{
		"start": tracetest.Int(at), "globalPid": tracetest.Int(1 << 24), "deviceId": tracetest.Int(0),
		"contextId": tracetest.Int(1), "address": tracetest.Int(address), "pc": tracetest.Int(0), "bytes": tracetest.Int(bytes),
		"memKind": tracetest.Int(kind), "memoryOperationType": tracetest.Int(operation),
	}
	if pool > 0 {
		row["localMemoryPoolAddress"], row["localMemoryPoolSize"], row["localMemoryPoolUtilizedSize"] =
			tracetest.Int(7), tracetest.Int(pool), tracetest.Int(used)
	}
	b.Row("CUDA_GPU_MEMORY_USAGE_EVENTS", row)
}

// The window is 100 to 900 µs. Before it 1000 bytes at A. In it 500 at B (1500 held: the peak), A freed (500), 300 at C
// from a pool of 4096 with 300 in use, and a free of something unknown. After it nothing counts. Growth: 500 - 1000 + 300.
func TestGPUMemory(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	p := b.Process(1, "p")
	th := p.Thread(1, "")
	th.Launch("gemm", 90*us, 91*us, tracetest.Kernel{Start: 100 * us, End: 200 * us})
	th.Launch("gemm", 300*us, 301*us, tracetest.Kernel{Start: 800 * us, End: 900 * us})
	allocation(b, 10*us, 0, 0xA, 1000, 2, 0, 0)
	allocation(b, 20*us, 0, 0xF, 9999, 1, 0, 0) // pinned: on the host
	allocation(b, 300*us, 0, 0xB, 500, 2, 0, 0)
	allocation(b, 400*us, 1, 0xA, 1000, 2, 0, 0)
	allocation(b, 500*us, 0, 0xC, 300, 2, 4096, 300)
	allocation(b, 600*us, 1, 0xD, 77, 2, 0, 0)
	allocation(b, 950*us, 0, 0xE, 1<<40, 2, 0, 0)
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	for id, want := range map[string]float64{
		"gpu_memory.peak": 1500, "gpu_memory.growth": -200, "gpu_memory.allocations": 2, "gpu_memory.unknown_frees": 1,
		"gpu_memory.pool_peak": 4096, "gpu_memory.pool_used_peak": 300,
	} {
		sectiontest.Metric(t, r, want, id, "device", "0")
	}
	rows := sectiontest.FindTable(t, r, "gpu_memory", "allocations").Rows
	if len(rows) != 4 || !rows[0][2].Equal(report.S("pinned")) || !rows[1][3].Equal(report.I(1000)) || !rows[1][5].Equal(report.I(400*us)) ||
		!rows[2][5].IsNull() || !rows[3][6].Equal(report.S("yes")) {
		t.Errorf("%v", rows)
	}
}
