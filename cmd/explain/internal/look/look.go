// Package look is the commands that look at captures: report, which is also what explain does without a command, diff
// and whatif.
package look

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/whatifcmd"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newReport(e), newDiff(e), whatifcmd.New(e), mergecmd.NewPartial(e), mergecmd.NewMerge(e)}
}

// Bare makes a command do what report does; without a trace and without evidence it prints its help.
func Bare(cmd *cobra.Command, e *cmdenv.Env) {
	var f reportFlags
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !f.hasEvidence() {
			return cmd.Help()
		}
		return f.run(cmd, e, args)
	}
}
