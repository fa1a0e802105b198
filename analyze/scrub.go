package analyze

import (
	"context"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Scrubbed says what a scrubbed copy holds.
type Scrubbed struct {
	Tables int
	Rows   int64
}

// Scrub writes to out, which must not exist, a copy of the capture in path that is safe to share: what explain reads
// and nothing else. Environments, host and user names, command lines, captured output and strings that nothing refers
// to are left behind; names of kernels, API calls, NVTX ranges, programs, threads and GPUs stay. The copy analyses to
// the same numbers. It appears whole or not at all.
func Scrub(ctx context.Context, path, out string, opt Options) (Scrubbed, error) {
	tables, rows, err := trace.Scrub(ctx, path, out, trace.Options{Progress: opt.Progress, Nsys: opt.Nsys,
		Getenv: opt.Getenv})
	return Scrubbed{tables, rows}, err
}
