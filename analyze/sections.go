package analyze

import (
	"embed"

	"github.com/nsys-llm/explain/analyze/compat"
	"github.com/nsys-llm/explain/analyze/internal/section/cpu"
	"github.com/nsys-llm/explain/analyze/internal/section/engine"
	"github.com/nsys-llm/explain/analyze/internal/section/gpu"
	"github.com/nsys-llm/explain/analyze/internal/section/host"
	"github.com/nsys-llm/explain/analyze/internal/section/kernelcounters"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/section/steps"
)

// sections of the report, in its order: the one list that a new section is added to.
var sections = []*kit.Section{
	&host.Overview,
	&gpu.Time,
	&gpu.Kernels,
	&kernelcounters.Kernels,
	&kernelcounters.Roofline,
	&gpu.Categories,
	&gpu.Components,
	&steps.Section,
	&steps.CriticalPath,
	&steps.Positions,
	&gpu.Steady,
	&cpu.HostIdle,
	&host.Launches,
	&host.Sync,
	&gpu.Memcpy,
	&gpu.Memory,
	&gpu.Graphs,
	&gpu.Comm,
	&gpu.Streams,
	&gpu.Idle,
	&gpu.Activity,
	&gpu.Counters,
	&gpu.Power,
	&host.NVTX,
	&host.TorchOps,
	&host.Regions,
	&host.Phases,
	&host.Processes,
	&host.Quality,
	&engine.Load,
	&engine.Serving,
	&engine.Iterations,
	&engine.DeviceSteps,
	&engine.Scheduler,
	&engine.Requests,
	&engine.EngineStart,
	&engine.GraphStats,
	&engine.Speculative,
	&engine.EstimatedFLOPs,
	&engine.Model,
	&engine.ExpertLoad,
	&engine.Errors,
	&engine.Latency,
	&engine.Counters,
	&engine.Power,
	&engine.Cost,
	&compat.ForwardPass,
	&compat.BatchUtilization,
	&compat.Preemptions,
	&compat.KVCache,
	&compat.CUDAGraphUsage,
	&compat.CPUOperations,
	&compat.EncoderDecoder,
	&compat.MoE,
	&compat.MFU,
	&compat.Operators,
	&compat.NCURegions,
}

func init() { gpu.Steady.Metrics = append(gpu.Steady.Metrics, kit.QuotedOfSteady(sections)...) }

// pages of the sections, by family.
var pages = []embed.FS{gpu.Pages, host.Pages, cpu.Pages, kernelcounters.Pages, engine.Pages, steps.Pages, compat.Pages}
