// Package steps holds the section about the unit of work: what one step costs, kernel by kernel and call by call. It
// knows the kit and no other family.
package steps

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
