package kit

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// ncuMatch finds Nsight Compute's measurements of the trace's kernels.
type ncuMatch struct {
	// Kernels by spelling, the strictest first: as it is, canonical, without namespaces. If several match, the one with
	// most time. Namespaces are left out only if ncu left them out.
	by       [3]map[string]*ncu.Kernel
	function map[string]*ncu.Kernel // kernels whose name is a bare function's, see ncu --print-kernel-base
	shared   map[string]int         // how many of the trace's kernels have a function of that name
}

// ncuSpellings of a name, the strictest first.
var ncuSpellings = [3]func(string) string{kernelname.Uncast, kernelname.Canonical, kernelname.Unqualified}

// NewNcuMatch is nil without evidence of Nsight Compute. It needs all names of the trace: a bare function name matches
// only if exactly one kernel can have it.
func NewNcuMatch(beside *evidence.Set, kernels []trace.KernelName) *ncuMatch {
	if beside == nil || beside.NCU == nil || len(beside.NCU.Kernels) == 0 {
		return nil
	}
	m := &ncuMatch{function: map[string]*ncu.Kernel{}, shared: map[string]int{}}
	for s := range m.by {
		m.by[s] = map[string]*ncu.Kernel{}
	}
	for _, k := range beside.NCU.Kernels {
		name := k.Full
		for s, spell := range ncuSpellings {
			if n := spell(name); n != "" && (s < 2 || n == kernelname.Canonical(name)) {
				m.by[s][n] = cmp.Or(m.by[s][n], k)
			}
		}
		if kernelname.Function(name) == name {
			m.function[name] = k
		}
	}
	if len(m.function) > 0 {
		for _, n := range kernels {
			m.shared[kernelname.Function(n.Name)]++
		}
	}
	return m
}

// Find is the measured kernel for a name of the trace, or nil.
func (m *ncuMatch) Find(name string) *ncu.Kernel {
	for s, spell := range ncuSpellings {
		if k := m.by[s][spell(name)]; k != nil {
			return k
		}
	}
	if function := kernelname.Function(name); m.shared[function] == 1 {
		return m.function[function]
	}
	return nil
}

// NcuColumns are what Nsight Compute adds to a table of the trace's kernels.
var NcuColumns = []report.Column{TextCol("bound", "Bound"), RatioCol("dram_ratio", "DRAM", "dram_throughput_pct"),
	RatioCol("sm_ratio", "SM", "sm_throughput_pct")}

// Cells of ncuColumns; none without evidence, unknown for a kernel that was not measured.
func (m *ncuMatch) Cells(name string) []Field {
	if m == nil {
		return nil
	}
	k := m.Find(name)
	if k == nil {
		return []Field{Put("bound", report.Null), Put("dram_ratio", report.Null), Put("sm_ratio", report.Null)}
	}
	return []Field{
		Text("bound", string(k.Bound())), Maybe("dram_ratio", k.Get(ncu.DRAMRatio)),
		Maybe("sm_ratio", k.Get(ncu.SMRatio)),
	}
}
