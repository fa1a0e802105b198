package record

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

func newCaptureResume(e *cmdenv.Env) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "resume DIR.failed",
		Short: "Continue a capture that failed after the recording",
		Long: `A capture that fails after the recording leaves everything in DIR.failed. resume does the remaining
steps (import, export, analysis) and moves the result to DIR. First fix what failed: a missing
importer, a full disk, a broken nsys. If resume fails, DIR.failed stays unchanged.`,
		Example: `  explain capture resume artifacts/run_20260101_120000.failed
  explain capture resume --nsys /opt/nvidia/nsight-systems/2024.2.3/bin/nsys run.failed`,
		Args: cmdenv.Args(1, 1, "name the folder of the failed capture: explain capture resume DIR.failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.session(cmd, e)
			if err != nil {
				return err
			}
			return r.Resume(cmd.Context(), args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "out", "o", "", "move it to this `DIR` (default: the folder that the capture was to write)")
	f.registerReport(cmd, "define one step of the work by this `UNIT` (default: as in the capture's command)")
	return cmd
}
