//go:build linux || darwin

package atomicfile

import (
	"errors"
	"syscall"
)

// nonblock makes opening a pipe without a reader an error.
const nonblock = syscall.O_NONBLOCK

func gone(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
