//go:build unix

package capture

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts a child into a process group of its own: a Ctrl-C on the terminal reaches explain alone, which then
// ends the children in the right order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if err := syscall.Kill(-p.Pid, s); errors.Is(err, syscall.ESRCH) {
			_ = p.Signal(sig) // the group is gone, and with it the process
		}
	}
}

func killProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }
