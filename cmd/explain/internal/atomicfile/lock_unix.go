//go:build linux || darwin

package atomicfile

import (
	"os"
	"syscall"
)

// nonblock opens a pipe without a reader as an error.
const nonblock = syscall.O_NONBLOCK

// lock locks a folder for as long as this process has it open; free says whether nobody else had. It waits for that
// where it is to.
func lock(dir string, wait bool) (unlock func(), free bool) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}, false
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	err = syscall.Flock(int(f.Fd()), how)
	return func() { f.Close() }, err == nil
}
