// Package guide is the commands that help people and agents: doc, demo, mcp.
package guide

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// Commands are the commands in the order of the help.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newDoc(e), newDemo(e), newMCP(e)}
}
