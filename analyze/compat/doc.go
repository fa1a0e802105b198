// Package compat holds what only the formats of profilemate and llm-perf-opt tell, and nobody else has to know:
// sections on their sessions and artifacts. It knows the kit of the sections; only package analyze and the command know
// it.
package compat

import (
	"embed"

	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
)

// Pages are the documentation of the sections, as ID.md.
//
//go:embed *.md
var Pages embed.FS

// Readers read the evidence that other tools wrote.
var Readers = []evidence.Reader{
	{Kind: session.Kind, Title: "a file of a profilemate session", Is: session.Is,
		Read: evidence.Reading(session.Read)},
	{Kind: perfopt.Kind, Title: "an artifact of llm-perf-opt", Is: perfopt.Is, Read: evidence.Reading(perfopt.Read)},
}
