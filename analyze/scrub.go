package analyze

import (
	"context"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Scrubbed says what a scrubbed copy holds.
type Scrubbed = trace.Scrubbed

// Shown says how a scrubbed copy writes names.
type Shown = trace.Shown

// Scrub writes to out, which must not exist, a copy of the capture in path that is safe to share: what explain reads
// and nothing else. Environments, host and user names, command lines, captured output, marks, categories, domains and
// strings that nothing refers to are left behind; names of kernels, API calls, NVTX ranges, programs, GPUs, and of
// threads that wait, stay, without what looks like a token, as shown says. The copy analyses to the same numbers as far
// as they do not go by names that shown changes, nor come out of payloads and events of plugins, which can hold
// anything: power, NCCL's message sizes, Python's stacks. If there is an error, what is at out is no capture.
func Scrub(ctx context.Context, path, out string, shown Shown, opt Options) (Scrubbed, error) {
	return trace.Scrub(ctx, path, out, shown, trace.FileOptions{Progress: opt.Progress, Getenv: opt.Getenv})
}
