// Package compat holds what only the formats of profilemate and llm-perf-opt tell, and nobody else has to know: sections on
// their sessions and artifacts. It knows the kit of the sections; only package analyze and the command know it.
package compat

import "embed"

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS
