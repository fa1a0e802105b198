// Package steps holds the section about the unit of work: the cost of one step, kernel by kernel and call by call. It
// uses the kit and no other family of sections.
package steps

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
