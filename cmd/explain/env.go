package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
)

// env is what a command touches besides the files it is given.
type env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Open     func(path string) error // shows a page; nil: the desktop's program for pages
	color    string                  // --color
}

// colours are what --color takes.
var colours = []string{"auto", "always", "never"}

// colour reports whether standard output is coloured: as --color says, else as the environment does, else on a terminal.
func (e *env) colour() bool {
	forced := func(name string) bool { v := e.Getenv(name); return v != "" && v != "0" }
	switch {
	case e.color == "always" || e.color == "never":
		return e.color == "always"
	case e.Getenv("NO_COLOR") != "":
		return false
	case forced("FORCE_COLOR"), forced("CLICOLOR_FORCE"):
		return true
	}
	return progress.IsTerminal(e.Out) && e.Getenv("TERM") != "dumb"
}

// width is how many columns the output takes, 60 to 200: as COLUMNS says, else of the terminal, else 100.
func (e *env) width() int {
	columns, err := strconv.Atoi(e.Getenv("COLUMNS"))
	if f, ok := e.Out.(*os.File); ok && (err != nil || columns < 1) && progress.IsTerminal(e.Out) {
		columns, _, err = term.GetSize(int(f.Fd()))
	}
	if err != nil || columns < 1 {
		return 100
	}
	return min(max(columns, 60), 200)
}

// terminal says how text is written to standard output.
func (e *env) terminal() render.TerminalOptions {
	return render.TerminalOptions{Width: e.width(), Color: e.colour()}
}

// clean makes text from the outside fit for a terminal or a log line.
func clean(s string) string { return render.Visible(s) }

// today is the day, in UTC, that waivers are held to: the clock's. SOURCE_DATE_EPOCH, by which reproducible builds fix
// theirs, can only make it later: set to the date of a commit for a whole job, it would keep waivers alive for ever.
func today(e *env) (time.Time, error) {
	now := time.Now().UTC()
	if s := e.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		seconds, err := strconv.ParseInt(s, 10, 64)
		if err != nil || seconds < 0 {
			return now, usagef("SOURCE_DATE_EPOCH is %q, not a number of seconds since 1970", s)
		}
		if fixed := time.Unix(seconds, 0).UTC(); fixed.After(now) {
			now = fixed
		}
	}
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC), nil
}

// completeFlag makes the shell complete a flag with one of its values.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
