package capturesession

import (
	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// facts is what is written about a capture.
func (r *Session) facts(job *capture.Job) *capture.Facts {
	f := &capture.Facts{RunID: r.ID, Version: r.Analysis.Version, When: r.Began, Nsys: r.Tool, Program: job.Program,
		Reader: r.Getenv}
	f.Config = yaml.MapSlice{
		{Key: "trace", Value: r.Trace},
		{Key: "graph_trace", Value: job.Trace.Graphs},
		{Key: "cuda_memory", Value: job.Trace.Memory},
		{Key: "fork_trace", Value: job.Trace.Forks},
		{Key: "delay", Value: r.Window.Delay.String()},
		{Key: "duration", Value: r.Window.Duration.String()},
		{Key: "nvtx", Value: r.Window.NVTX},
		{Key: "ready", Value: capture.RedactText(r.Window.Ready)},
		{Key: "ready_timeout", Value: r.Window.ReadyTimeout.String()},
		{Key: "warmup", Value: r.Window.Warmup.String()},
		{Key: "client", Value: shell(r.Window.Client)},
		{Key: "timeout", Value: r.Limit.String()},
		{Key: "grace", Value: r.Grace.String()},
		{Key: "repeat", Value: r.Repeat},
		{Key: "pair", Value: r.Pair},
		{Key: "report", Value: !r.NoReport},
		{Key: "unit", Value: r.Unit},
		{Key: "phase_map", Value: r.PhaseMap},
		{Key: "kernel_map", Value: r.KernelMap},
	}
	if r.Server != nil {
		r.Server.facts(r, f)
	}
	return f
}

func shell(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return capture.Shell(argv)
}
