// Package guide is the commands that help people and agents: doc, demo, mcp, and the manual pages.
package guide

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newDoc(e), newDemo(e), newMCP(e), newMan(e)}
}
