// Package gpu holds the sections about the devices: their work, their idle time and its causes. It uses the kit and no
// other family of sections.
package gpu

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
