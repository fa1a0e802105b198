package gate

import (
	"errors"
	"io"
)

// SummaryLimit is the size of a step summary in bytes: over 1 MiB GitHub drops it whole.
const SummaryLimit = 900_000

// Log writes what the runner reads: workflow commands on standard output, and the files of GITHUB_OUTPUT and
// GITHUB_STEP_SUMMARY. Where a file is not set, as outside of GitHub, nothing is written to it.
type Log struct{}

// NewLog writes commands to w, which must be the standard output of the step.
func NewLog(w io.Writer, getenv func(string) string) *Log { return &Log{} }

// Mask asks the runner to hide a secret in everything that follows. Call it before anything else.
func (l *Log) Mask(secret string) {}

// Output sets an output of the step. A name or value with a newline or another control character is refused, since a
// value with a newline could set other outputs. Callers pass verdicts, numbers, paths, commits; never a kernel or range
// name.
func (l *Log) Output(name, value string) error { return errors.New("not written yet") }

// Summary appends markdown to the step's summary. More than SummaryLimit in all is refused: render it smaller.
func (l *Log) Summary(markdown string) error { return errors.New("not written yet") }

// Level of an annotation.
type Level string

// Levels.
const (
	Notice  Level = "notice"
	Warning Level = "warning"
	Failure Level = "error"
)

// Annotate writes an annotation, the first three of them; it says whether it did. Title and text are one line each,
// escaped for the runner, cut at 200 and 1,000 characters.
func (l *Log) Annotate(level Level, title, text string) bool { return false }

// Defuse makes text safe to print where the runner reads: no line of it is taken for a workflow command.
func Defuse(text string) string { return text }
