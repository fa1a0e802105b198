//go:build unix

package capture

import (
	"errors"
	"os"
	"syscall"
)

func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if err := syscall.Kill(-p.Pid, s); errors.Is(err, syscall.ESRCH) {
			_ = p.Signal(sig) // the group is gone, and with it the process
		}
	}
}

func killProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }

func interrupt(pid int) { _ = syscall.Kill(pid, syscall.SIGINT) }

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
