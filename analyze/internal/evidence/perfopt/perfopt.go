// Package perfopt reads llm-perf-opt artifacts.
package perfopt

import (
	"context"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
)

// Data is what a run of llm-perf-opt left.
type Data struct{}

// Is reports whether a file that starts with head, and is named name, is of this kind.
func Is(name string, head []byte) bool { return false }

// Read reads the files, in their order. What is odd in them is counted in their tallies and said in Warnings; an error
// is about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) { return &Data{}, nil }

// Warnings are what limits trust in the numbers.
func (d *Data) Warnings() []report.Warning { return nil }

// Environment fills in what the files state and e does not yet.
func (d *Data) Environment(e *report.Environment) {}
