//go:build !unix

package capturetest

import (
	"os"
	"os/exec"
)

func ownSession(*exec.Cmd) {}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func terminate(p *os.Process) { _ = p.Kill() }

func ignoreInterrupt() {}
