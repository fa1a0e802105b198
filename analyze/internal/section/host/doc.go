// Package host holds the sections about the processes that drive the devices: launches, blocking calls, NVTX ranges and
// phases, and the completeness of the capture. It uses the kit and no other family of sections.
package host

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
