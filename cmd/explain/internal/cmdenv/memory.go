package cmdenv

import (
	"os"
	"runtime/debug"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// leastMemory is the least that --max-memory accepts, in bytes.
const leastMemory = 128 << 20

// OwnProcess says that this process runs commands one by one, so that how it uses memory is theirs to set: main does. Tests
// run many at once in a process.
var OwnProcess bool

const (
	// usualHeap is enough Go heap for captures of usualFiles bytes together; each byte more has one byte of heap more.
	usualHeap  = 400 << 20
	usualFiles = 50 << 20
	// smallFiles is the total size of input files, in bytes, up to which garbage is collected rarely.
	smallFiles = 256 << 20
)

// HoldMemory limits the Go heap to what captures of these files' size need, so that a small file with very many devices
// or processes, or two of them, stay below 500 MB. Up to smallFiles bytes, garbage is collected rarely.
func HoldMemory(paths ...string) {
	var size int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	limitHeap(min(usualHeap+max(0, size-usualFiles), debug.SetMemoryLimit(-1)))
	percent := rarely
	if size > smallFiles {
		percent = 40
	}
	collectAt(percent)
}

// limitHeap limits the Go heap to so many bytes.
func limitHeap(bytes int64) {
	if OwnProcess {
		debug.SetMemoryLimit(bytes)
	}
}

// collectAt collects garbage when the heap has grown by so many percent.
func collectAt(percent int) {
	if OwnProcess {
		debug.SetGCPercent(percent)
	}
}

// rarely is the percentage where memory is not scarce, and often the one with the reports of more than fewReports inputs.
const (
	rarely, often = 400, 25
	fewReports    = 16
)

// Analysed says that the analysis that [HoldMemory] prepared is over: what is written of it takes little memory.
func Analysed() { collectAt(rarely) }

// memoryOf reads --max-memory: the memory of each analysis, if traces of them run at once, in bytes. It limits the Go
// heap to half of the total: columns are outside the heap.
func memoryOf(text string, traces int) (int64, error) {
	limit := analyze.DefaultMaxMemory()
	if text != "" {
		q, err := unit.Parse(text)
		switch {
		case err != nil:
			return 0, usage.Errorf("--max-memory: %w", err)
		case q.Unit != report.Bytes:
			return 0, usage.Errorf("--max-memory %s is not a size; use e.g. 1GiB or 800MB", text)
		case q.Value < leastMemory:
			return 0, usage.Errorf("--max-memory %s is too little; allow 128MiB or more", text)
		case q.Value > 1<<60:
			return 0, usage.Errorf("--max-memory %s is more than any machine has", text)
		}
		limit = int64(q.Value)
	}
	if limit > 0 {
		limitHeap(limit / 2)
	}
	return limit / int64(max(1, traces)), nil
}
