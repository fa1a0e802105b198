//go:build !linux && !darwin

package atomicfile

const nonblock = 0

// gone cannot tell whether a process is gone, so it never says so.
func gone(int) bool { return false }
