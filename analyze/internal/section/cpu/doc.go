// Package cpu holds the sections about the host's threads while the devices waited for them. It uses the kit and no
// other family of sections.
package cpu

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
