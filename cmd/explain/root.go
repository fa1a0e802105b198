package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/bisectcmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/whatifcmd"
)

func newRoot(e *env) *cobra.Command {
	var f reportFlags
	e.Version = versionText()
	cmd := &cobra.Command{
		Use:   "explain TRACE",
		Short: "Explain where the time of an LLM inference trace went",
		Long: `explain reads an Nsight Systems capture of an LLM inference server and says where the time went and
what to do next.

TRACE is a .sqlite file written by "nsys export", the same compressed with gzip or zstd, or a
.nsys-rep file where nsys is installed. It is never changed, and nothing is created beside it.
"explain TRACE" is short for "explain report TRACE".

"explain doc NAME" explains any name in an output. Exit codes: 0 done, pass or warn; 1 a rule
failed; 2 wrong usage; 3 input that cannot be analysed; 4 inconclusive.`,
		Example: `  explain trace.sqlite                          a summary on the terminal
  explain trace.sqlite --out report/            the full report: report.html, report.md, report.json, tables/*.csv
  explain trace.sqlite --format md | gh pr comment 12 --body-file -
  explain trace.sqlite --steady --out report/   the steady part of the capture only
  explain ranks/*.sqlite --out report/          one report of a run of many ranks`,
		Args:          bareArgs,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !f.hasEvidence() {
				return cmd.Help()
			}
			return f.run(cmd, e, args)
		},
	}
	f.register(cmd)
	cmd.SuggestionsMinimumDistance = 2
	cmd.PersistentFlags().Var(help.Choice{Value: &e.Color, Of: cmdenv.Colours}, "color", "colour the output `WHEN`: auto, always, never")
	cmdenv.Complete(cmd, "color", cmdenv.Colours)
	cmd.SetVersionTemplate(versionLine())
	help.Install(cmd, e.Width)
	cmd.AddCommand(
		newReport(e),
		newDiff(e),
		newGate(e),
		newComment(e),
		newAction(e),
		newCalibrate(e),
		newCapture(e),
		newLoad(e),
		newScrub(e),
		mergecmd.NewPartial(e),
		mergecmd.NewMerge(e),
		historycmd.New(e),
		bisectcmd.NewBisect(e),
		newPolicy(e),
		newNCUTargets(e),
		whatifcmd.New(e),
		newMetrics(e),
		newDoc(e),
		newMCP(e),
		newDemo(e),
		newMan(),
		newSchema(e),
		newVersion(e),
	)
	return cmd
}

// bareArgs tells a mistyped command from a file that is not there.
func bareArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := os.Stat(args[0]); errors.Is(err, os.ErrNotExist) && args[0] != "-" &&
		!strings.ContainsAny(args[0], `./\`) {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usagef("%q is neither a command nor a file; did you mean %q?", args[0], near[0])
		}
		return usagef("%q is neither a command nor a file", args[0])
	}
	return nil
}

func (f *reportFlags) someTrace(_ *cobra.Command, args []string) error {
	if len(args) == 0 && !f.hasEvidence() {
		return usagef("name a trace: explain report TRACE; or evidence: --ncu, --server-log, --prometheus, --evidence")
	}
	return nil
}
