package main

import (
	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// facts is what is written about a capture.
func (r *recording) facts(job *capture.Job) *capture.Facts {
	f := &capture.Facts{RunID: r.id, Version: versionText(), When: r.now, Nsys: r.nsysFound, Program: job.Program,
		Reader: r.env.Getenv}
	f.Config = yaml.MapSlice{
		{Key: "trace", Value: r.trace},
		{Key: "graph_trace", Value: job.Trace.Graphs},
		{Key: "cuda_memory", Value: job.Trace.Memory},
		{Key: "fork_trace", Value: job.Trace.Forks},
		{Key: "delay", Value: r.window.Delay.String()},
		{Key: "duration", Value: r.window.Duration.String()},
		{Key: "nvtx", Value: r.window.NVTX},
		{Key: "ready", Value: capture.RedactText(r.window.Ready)},
		{Key: "ready_timeout", Value: r.window.ReadyTimeout.String()},
		{Key: "warmup", Value: r.window.Warmup.String()},
		{Key: "client", Value: shell(r.window.Client)},
		{Key: "timeout", Value: r.limit.String()},
		{Key: "grace", Value: r.grace.String()},
		{Key: "repeat", Value: r.repeat},
		{Key: "pair", Value: r.pair},
		{Key: "report", Value: !r.noReport},
		{Key: "unit", Value: r.unit},
	}
	if r.server != nil {
		r.server.facts(f)
	}
	return f
}

func shell(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return capture.Shell(argv)
}
