package cmdenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

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
	return lists.Map(analyze.Metrics(), func(m analyze.MetricInfo) string { return m.ID })
}
