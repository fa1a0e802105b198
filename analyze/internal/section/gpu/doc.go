// Package gpu holds the sections about the devices: what they ran, how long they idled and why. It knows the kit and no
// other family.
package gpu

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
