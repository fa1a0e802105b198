// Package kernelcounters holds the sections about what Nsight Compute measured of single kernels. It knows the kit and
// no other family.
package kernelcounters

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
