// Package record is the commands that record: capture, load, which sends requests to a server, and scrub, which makes a
// capture fit to share.
package record

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// Commands are the commands in the order of the help.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newCapture(e), newLoad(e), newScrub(e)}
}
