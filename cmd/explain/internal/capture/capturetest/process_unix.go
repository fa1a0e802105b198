//go:build unix

package capturetest

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func ownSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func kill(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL)
	time.Sleep(time.Hour)
}

func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

func ignoreInterrupt() { signal.Ignore(os.Interrupt) }
