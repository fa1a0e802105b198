// Package cpu holds the sections about what the host's threads did while the devices waited for them. It knows the kit
// and no other family.
package cpu

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
