//go:build unix

package analyze

import (
	"syscall"
	"time"
)

func init() {
	cpuTime = func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
}
