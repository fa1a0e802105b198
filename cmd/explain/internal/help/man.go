package help

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Man writes the manual page of a command, in the macros of man(7), from what --help prints.
func Man(w io.Writer, cmd *cobra.Command, version string) error {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"explain\"\n", strings.ToUpper(name), version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	text := cmp.Or(cmd.Long, cmd.Short)
	b.WriteString(".SH DESCRIPTION\n.nf\n" + roff(strings.TrimSpace(text)) + "\n.fi\n")
	for _, g := range Flags(cmd) {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roff(g.Title)))
		g.Flags.VisitAll(func(f *pflag.Flag) {
			value, about := pflag.UnquoteUsage(f)
			names := "--" + f.Name
			if f.Shorthand != "" {
				names = "-" + f.Shorthand + ", " + names
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(names+" "+value)), roff(about))
		})
	}
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roff(cmd.Example) + "\n.fi\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, ".BR %s (1),\n", roff(name+"-"+c.Name()))
		}
	}
	b.WriteString("explain doc, for every page of the documentation\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// roff is text that means itself: no line of it is a request, and no character an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	return request().ReplaceAllString(text, `\&$0`)
}

// request is the beginning of a line that roff would take for a request.
var request = pattern.New(`(?m)^[.']`)
