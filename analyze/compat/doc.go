// Package compat holds the sections on sessions of profilemate and artifacts of llm-perf-opt, and all that is specific
// to their formats. It uses the kit of the sections; only package analyze and the command import it.
package compat

import (
	"embed"

	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
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

// The evidence that sections need.
var (
	ofSession = []file.Kind{session.Kind}
	ofRun     = []file.Kind{perfopt.Kind}
)

func sessionOf(in *kit.Input) *session.Data { return evidence.Of[*session.Data](in.Evidence) }
func runOf(in *kit.Input) *perfopt.Data     { return evidence.Of[*perfopt.Data](in.Evidence) }
