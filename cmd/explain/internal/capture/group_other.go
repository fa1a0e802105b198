//go:build !unix

package capture

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// signalGroup ends the process: there are no signals to ask it with.
func signalGroup(p *os.Process, _ os.Signal) { _ = p.Kill() }

func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func terminate(pid int) { killProcess(pid) }
