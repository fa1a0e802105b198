//go:build !unix

package capture

import (
	"os"
	"os/exec"
)

func start(cmd *exec.Cmd) error { return cmd.Start() }

func startApart(cmd *exec.Cmd) error { return cmd.Start() }

// signalGroup kills the process: this system has no signals to ask it to end.
func signalGroup(p *os.Process, _ os.Signal) { _ = p.Kill() }

func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func terminate(pid int) { killProcess(pid) }

func alive(int) bool { return true }

func lockFolder(string) (unlock func()) { return func() {} }
