//go:build linux || darwin

package atomicfile

import (
	"os"
	"syscall"
)

// nonblock makes opening a pipe without a reader an error.
const nonblock = syscall.O_NONBLOCK

// lock locks a folder until unlock is called or the process ends; free is false if another process holds the lock. With
// wait it waits for the lock.
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
