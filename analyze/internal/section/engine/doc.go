// Package engine holds the sections about the serving engine: its log, its Prometheus metrics, and the load that
// explain sent. It knows the kit and no other family.
package engine

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
