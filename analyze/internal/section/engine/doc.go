// Package engine holds the sections about the serving engine: its log, its Prometheus metrics, and the load that
// explain sent. It uses the kit and no other family of sections.
package engine

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
