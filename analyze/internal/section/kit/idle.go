package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// NoWork says why there is no GPU work to lay out.
func (in *Input) NoWork() string {
	if !in.Has(trace.RoleKernel) {
		return in.Lack(trace.RoleKernel)
	}
	return "the capture holds no GPU work"
}

// IdleAdvice is what idle time means and what to do about it, by its main cause.
var IdleAdvice = [attrib.Causes][]string{
	attrib.CauseSync: {
		"The launching thread sits in a blocking call: the synchronisation section names it and the NVTX range it happens in.",
		"Remove per-step barriers (.item(), .cpu(), torch.cuda.synchronize()), copy results asynchronously to pinned memory and wait on an event one step later.",
	},
	attrib.CauseHost: {
		"The launching thread does something other than launching: scheduling, sampling on the CPU, Python between kernels, waiting for requests. The idle gaps section names it where it can.",
		"Batch more work per step, launch steps as CUDA graphs, or move scheduling off the critical path (vLLM: --async-scheduling; SGLang: without --disable-overlap-schedule).",
	},
	attrib.CauseLaunch: {
		"The launch calls themselves take the time: use CUDA graphs, fuse small kernels, and check that nothing (debugger, profiler options, lazy module loading) slows the driver.",
	},
	attrib.CauseDependency: {
		"Work was launched and waited for an event, another stream or the device: look at stream-wait calls and at which stream the previous work ran on.",
	},
	attrib.CauseUnknown: {
		"The capture does not hold the launching calls of this time (it was cut, or API rows were dropped), or nothing ran after it. Capture with --trace=cuda,nvtx and a longer window.",
	},
}
