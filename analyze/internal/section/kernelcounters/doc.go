// Package kernelcounters holds the sections about Nsight Compute's measurements of single kernels. It uses the kit and
// no other family of sections.
package kernelcounters

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
