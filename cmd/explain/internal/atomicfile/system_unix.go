//go:build linux || darwin

package atomicfile

import (
	"errors"
	"syscall"
)

// nonblock makes opening a pipe without a reader an error.
const nonblock = syscall.O_NONBLOCK

// gone reports whether no process has a pid.
func gone(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
