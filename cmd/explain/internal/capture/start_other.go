//go:build unix && !linux

package capture

import (
	"os/exec"
	"syscall"
)

// start starts a child in a process group of its own: a Ctrl-C on the terminal reaches explain alone, which then ends
// the children in the right order.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
