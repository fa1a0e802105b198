package kernelcounters

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// findings name the limits of the measured kernels, and the advice for them.
func (s *ncuRun) findings(coverage *float64) {
	all := ncu.All(s.data)
	if v := all.Get(ncu.DRAMRatio); v != nil {
		switch ref := []report.MetricRef{kit.Ref("ncu.dram_ratio"), kit.Ref("ncu.sm_ratio")}; {
		case *v > highDRAM:
			s.out.Find("high_dram", ref,
				"They are bound by memory: quantise weights or the KV cache, fuse kernels that pass tensors through memory, or raise the batch so that weights are read once for more tokens.")
		case *v < lowDRAM:
			s.out.Find("low_dram",
				ref,
				"Memory is not what limits them on average: see which are bound by compute and which by latency, and whether a larger batch fills the GPU.")
		}
	}
	if s.total != nil && *s.total > 0 {
		if m := s.boundTime(ncu.Latency); m/(*s.total) >= latencyShare {
			s.out.Find("latency_bound",
				[]report.MetricRef{kit.Ref("ncu.bound_time", "bound", string(ncu.Latency)), kit.Ref("ncu.duration")},
				"Neither SMs nor memory are busy in them: give a launch more work (a larger batch, split-K, more blocks), or have fewer of them (fusion).",
				"If the possible occupancy is low, registers or shared memory limit it; the sections Warp State Statistics and Scheduler Statistics say what warps wait for.")
		}
	}
	s.topFinding()
	if coverage != nil && *coverage < fewMeasuredShare {
		s.out.Find("few_measured",
			[]report.MetricRef{kit.Ref("ncu.trace_coverage")},
			"`explain report TRACE --ncu-targets kernels.yaml` lists the kernels that take the time, and writes the command that measures them.")
	}
}

func (s *ncuRun) boundTime(b ncu.Bound) float64 {
	var sum float64
	for i := range s.data.Kernels {
		if k := &s.data.Kernels[i]; k.Bound() == b {
			sum += orZero(k.Duration)
		}
	}
	return sum
}

// boundAdvice is the advice for a kernel, by its limit.
var boundAdvice = map[ncu.Bound][]string{
	ncu.Memory:   {"It waits for memory: move fewer bytes (a narrower data type for weights, activations or the KV cache, fusion with its neighbours), or use each byte for more (a larger batch, a kernel that tiles better)."},
	ncu.Compute:  {"It is limited by arithmetic: a narrower data type (fp8 instead of bf16), tensor cores if it does not use them, or less to compute."},
	ncu.Balanced: {"Arithmetic and memory are about equally busy: only less work makes it faster, by a better algorithm or a narrower data type for both."},
	ncu.Latency:  {"Neither arithmetic nor memory is busy: give it more parallel work (a larger batch, more and smaller blocks, split-K or split-KV), or fuse it into its neighbours."},
}

// cacheAdvice is for kernels that wait for memory other than DRAM.
var cacheAdvice = []string{"Its data comes from the caches or shared memory, and they are busy: make accesses contiguous across a warp (coalesced), load wider words, and keep values in registers."}

// topFinding reports the kernel with most time: in the trace if there is one, else as measured.
func (s *ncuRun) topFinding() {
	top, share := -1, 0.0
	for i := range s.data.Kernels {
		var v float64
		switch {
		case s.shares != nil:
			v = s.shares[i]
		case s.total != nil && *s.total > 0:
			v = orZero(s.data.Kernels[i].Duration) / *s.total
		}
		if v > share {
			top, share = i, v
		}
	}
	if share < topKernelShare || !s.emitted[top] || s.data.Kernels[top].Bound() == ncu.Unknown {
		return
	}
	k := &s.data.Kernels[top]
	advice, words := boundAdvice[k.Bound()], boundWords[k.Bound()]
	dram, sm := kit.Ref("ncu.dram_ratio", "kernel", k.Name), kit.Ref("ncu.sm_ratio", "kernel", k.Name)
	evidence := []report.MetricRef{sm, dram}
	if k.Bound() == ncu.Memory {
		evidence = []report.MetricRef{dram, sm}
		if v := k.Get(ncu.MemoryRatio); v != nil && *v > orZero(k.Get(ncu.DRAMRatio)) && top < maxNCUDetails &&
			!k.DRAMBound() {
			evidence = append([]report.MetricRef{kit.Ref("ncu.memory_ratio", "kernel", k.Name)}, evidence...)
			advice, words = cacheAdvice, "the caches"
		}
	}
	evidence = append(evidence, kit.Ref("ncu.duration", "kernel", k.Name))
	if access, use := worstAccess(k); k.Bound() == ncu.Memory && use < fewUsed && top < maxNCUDetails {
		words += ", and its " + access + "s use " + unit.Percent(use) + " of each sector"
		evidence = append(evidence, kit.Ref("ncu.sector_use_ratio", "kernel", k.Name, "access", access))
		advice = []string{"It moves bytes that nothing asks for: have neighbouring threads touch neighbouring addresses (the innermost index along a warp, structures of arrays), or go through shared memory."}
	}
	if v := k.Get(ncu.OccupancyPossible); k.Bound() == ncu.Latency && v != nil && *v < lowOccupancy &&
		top < maxNCUDetails {
		evidence = append(evidence, kit.Ref("ncu.occupancy_limit", "kernel", k.Name))
		advice = append(advice[:len(advice):len(advice)],
			"Few of its warps fit on an SM: it needs fewer registers or less shared memory per block.")
	}
	s.out.FindAs("top_kernel_bound", "The top kernel is bound by "+words, evidence, advice...)
}

// fewUsed is the share of the bytes moved, 0..1, below which unused bytes are a finding.
const fewUsed = 0.80

// worstAccess is the kind of access to global memory that uses the smallest part of the bytes that it moves; all kinds
// together if they were not measured apart.
func worstAccess(k *ncu.Kernel) (access string, use float64) {
	use = 1
	for _, c := range sectors {
		if v := k.Get(c.from.field); c.id == "ncu.sector_use_ratio" && v != nil && *v > 0 && *v < use {
			access, use = c.access, *v
		}
	}
	return access, use
}

var boundWords = map[ncu.Bound]string{ncu.Compute: "compute", ncu.Memory: "memory",
	ncu.Balanced: "compute and memory alike", ncu.Latency: "latency"}
