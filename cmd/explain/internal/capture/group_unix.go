//go:build unix

package capture

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// start starts a child in a process group of its own: a Ctrl-C on the terminal reaches only explain, which then ends
// the children in the right order.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

// startApart starts a child in a session of its own, so that it survives the terminal and a kill of explain's group.
func startApart(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if err := syscall.Kill(-p.Pid, s); errors.Is(err, syscall.ESRCH) {
			_ = p.Signal(sig) // the group is gone: signal the process itself
		}
	}
}

func killProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// lockFolder keeps other explains on this machine out of what is done with the scratch folders of a folder.
func lockFolder(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	return func() { f.Close() }
}
