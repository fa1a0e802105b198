// Package cmdenv is what commands share: what they touch besides their files, how traces are analysed, exit codes, and
// the flags and formats that several have. It knows no command.
package cmdenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Env is what a command touches besides the files it is given.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Open     func(path string) error // shows a page; nil: the desktop's program for pages
	Color    string                  // --color, one of Colours
	Version  string                  // of explain, as reports have it

	// Run runs a whole command line and returns the exit code, for commands that run others.
	Run func(ctx context.Context, args []string, e *Env) int
}

// Colours are what --color takes.
var Colours = []string{"auto", "always", "never"}

// Coloured reports whether standard output is coloured: as --color says, else as the environment says, else only on a
// terminal.
func (e *Env) Coloured() bool {
	forced := func(name string) bool { v := e.Getenv(name); return v != "" && v != "0" }
	switch {
	case e.Color == "always" || e.Color == "never":
		return e.Color == "always"
	case e.Getenv("NO_COLOR") != "":
		return false
	case forced("FORCE_COLOR"), forced("CLICOLOR_FORCE"):
		return true
	}
	return progress.IsTerminal(e.Out) && e.Getenv("TERM") != "dumb"
}

// Width is how many columns the output takes, 60 to 200: as COLUMNS says, else of the terminal, else 100.
func (e *Env) Width() int {
	columns, err := strconv.Atoi(e.Getenv("COLUMNS"))
	if f, ok := e.Out.(*os.File); ok && (err != nil || columns < 1) && progress.IsTerminal(e.Out) {
		columns, _, err = term.GetSize(int(f.Fd()))
	}
	if err != nil || columns < 1 {
		return 100
	}
	return min(max(columns, 60), 200)
}

// Terminal says how text is written to standard output.
func (e *Env) Terminal() render.TerminalOptions {
	return render.TerminalOptions{Width: e.Width(), Color: e.Coloured()}
}

// Today returns the current day in UTC, which decides whether waivers have expired. SOURCE_DATE_EPOCH, the clock of
// reproducible builds, can only make it later: set to a commit's date for a whole job, it would keep waivers alive for
// ever.
func (e *Env) Today() (time.Time, error) {
	now := time.Now().UTC()
	if s := e.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		seconds, err := strconv.ParseInt(s, 10, 64)
		if err != nil || seconds < 0 {
			return now, usage.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds since 1970", s)
		}
		if fixed := time.Unix(seconds, 0).UTC(); fixed.After(now) {
			now = fixed
		}
	}
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC), nil
}

// Complete makes shells complete a flag with these values.
func Complete(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// word is the value of a flag that takes one of a few words.
type word struct {
	to    *string
	words []string
}

// OneOf is a flag's value that is one of a few words; to holds the default.
func OneOf(to *string, words []string) pflag.Value { return word{to, words} }

func (w word) String() string { return *w.to }
func (w word) Type() string   { return "string" }

// Set implements [pflag.Value].
func (w word) Set(s string) error {
	if !slices.Contains(w.words, s) {
		return usage.Errorf("is unknown; it is one of %s", strings.Join(w.words, ", "))
	}
	*w.to = s
	return nil
}

// Choice adds a flag that takes one of a few words, which follow its help; to holds the default.
func Choice(cmd *cobra.Command, to *string, name, about string, words []string) {
	cmd.Flags().Var(OneOf(to, words), name, about+": "+strings.Join(words, ", "))
	Complete(cmd, name, words)
}

// Exit codes of every command.
const (
	OK           = 0
	Fail         = 1 // the verdict is fail
	Usage        = 2 // wrong usage or policy file
	Input        = 3 // input that cannot be analysed, or explain itself failed
	Inconclusive = 4 // not comparable
)

// Exit is the error of a command that did its work and ends with this exit code.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Exited returns an exit code as an error; nil for 0.
func Exited(code int) error {
	if code == OK {
		return nil
	}
	return Exit(code)
}

// VerdictCode returns the exit code of a verdict.
func VerdictCode(v comparison.Verdict) int {
	switch v {
	case comparison.Pass, comparison.Warn:
		return OK
	case comparison.Fail:
		return Fail
	case comparison.Inconclusive:
		return Inconclusive
	case comparison.Error:
	}
	return Input
}

// Force adds the flag that lets a command replace what it did not write.
func Force(fl *pflag.FlagSet, force *bool) {
	fl.BoolVar(force, "force", false, "replace a file that explain did not write")
}

// OpenPage shows a page in the user's browser. Without a browser it does not fail: it says where the page is.
func (e *Env) OpenPage(dir, name string) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil {
		open := e.Open
		if open == nil {
			open = openWithSystem
		}
		err = open(path)
	}
	if err != nil {
		fmt.Fprintf(e.Err, "explain: cannot open a browser (%s); the page is %s\n", render.Visible(err.Error()),
			render.Visible(filepath.Join(dir, name)))
	}
}

// openWithSystem asks the desktop for its program for pages, and does not wait for it.
func openWithSystem(path string) error {
	name, args := "xdg-open", []string{path}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed", name)
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// Any means that a command takes any number of arguments.
const Any = math.MaxInt

// Args returns a check of the number of arguments; its error says what to name.
func Args(least, most int, name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage.Error{Err: errors.New(name)}
		}
		return nil
	}
}

// Share reads a share such as 0.5% or 0.005, below 1. Zero becomes 1e-12, since 0 stands for the default.
func Share(s string) (float64, error) {
	v, err := ShareUpTo(math.Nextafter(1, 0), s)
	return max(v, 1e-12), err
}

// ShareUpTo reads a share, at most most.
func ShareUpTo(most float64, s string) (float64, error) {
	text, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= most) {
		return 0, errors.New("no share")
	}
	return v, nil
}

// Format returns a usage error for a format that is not in the list.
func Format(format string, formats []string) error {
	if !slices.Contains(formats, format) {
		return usage.Errorf("--format %s is unknown; it is one of %s", format, strings.Join(formats, ", "))
	}
	return nil
}

// Given returns the first of some flags that was given; empty if none was.
func Given(cmd *cobra.Command, flags []string) string {
	if i := slices.IndexFunc(flags, cmd.Flags().Changed); i >= 0 {
		return flags[i]
	}
	return ""
}

// FormatFlag adds --format to a command that prints text if none is given.
func FormatFlag(cmd *cobra.Command, format *string, formats []string) {
	cmd.Flags().StringVar(format, "format", "",
		"print this `FORMAT` to standard output: "+strings.Join(formats, ", ")+" (default text)")
	Complete(cmd, "format", formats)
}

// JSON writes a value as indented JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Lines is text for people that goes out at once. Each line is escaped: names in it may be of strangers.
type Lines struct{ text strings.Builder }

// Add adds a line.
func (l *Lines) Add(format string, args ...any) {
	l.text.WriteString(render.Visible(fmt.Sprintf(format, args...)) + "\n")
}

// To writes the lines.
func (l *Lines) To(w io.Writer) error {
	_, err := io.WriteString(w, l.text.String())
	return err
}

// Printer returns a command that prints one of several texts by its name; what is the noun for them.
func Printer(
	e *Env, what string, names []string, text func(name string) (string, bool), cmd *cobra.Command,
) *cobra.Command {
	cmd.ValidArgs = names
	cmd.Args = Args(1, 1, "name one "+what+": "+strings.Join(names, ", "))
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, ok := text(args[0])
		if !ok {
			return usage.Errorf("no %s %q; there are: %s", what, args[0], strings.Join(names, ", "))
		}
		_, err := io.WriteString(e.Out, t)
		return err
	}
	return cmd
}

// MetricIDs are the ids of all metrics, for completion.
func MetricIDs() []string {
	return lists.Map(analyze.Metrics(), func(m report.MetricDef) string { return m.ID })
}
