// Package guide is the commands that help people and agents: doc, demo, mcp, and the manual pages.
package guide

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newDoc(e), newDemo(e), newMCP(e), newMan(e)}
}

// newMan writes manual pages for those who package explain. Help does not list it.
func newMan(e *cmdenv.Env) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page for each command",
		Hidden: true,
		Args:   cmdenv.Args(1, 1, "name the folder for the pages: explain man DIR"),
		RunE:   func(cmd *cobra.Command, args []string) error { return writeManuals(cmd.Root(), args[0], e.Version) },
	}
}

func writeManuals(cmd *cobra.Command, dir, version string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	page := func(w io.Writer) error { return help.Man(w, cmd, version) }
	if err := atomicfile.File(filepath.Join(dir, name), atomicfile.Any, page); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writeManuals(c, dir, version); err != nil {
			return err
		}
	}
	return nil
}
