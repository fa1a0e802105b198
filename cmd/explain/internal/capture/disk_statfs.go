//go:build linux || darwin

package capture

import "syscall"

// freeBytes is what an ordinary user can still write on the file system of a folder.
func freeBytes(dir string) (bytes uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
