//go:build linux || darwin

package limit

import "syscall"

// Free is how many bytes an ordinary user can still write on the file system of a folder; ok is false if it cannot
// be found out.
func Free(dir string) (bytes uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
