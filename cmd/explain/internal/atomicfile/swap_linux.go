package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// swap makes the file a and the file b change places, if b is one. A rename over b would make ext4 write a to disk at
// once.
func swap(a, b string) bool {
	exchange := func() bool { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil }
	if !exchange() {
		return false
	}
	if info, err := os.Lstat(a); err == nil && info.Mode().IsRegular() {
		return true
	}
	exchange()
	return false
}
