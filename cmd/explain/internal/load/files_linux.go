package load

import (
	"os"

	"golang.org/x/sys/unix"
)

// makeRoom makes the table of open files large enough for so many connections, by taking its last number and giving it
// back.
//
// Why: the kernel holds up a process with several threads for some 10 ms whenever its table doubles, at 64, 128, 256 … files
// (expand_fdtable in fs/file.c waits for all readers of the old one). That would be in the latencies of the requests which open the
// connections. Where it cannot be done, everything is as it was.
func makeRoom(connections int) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur == 0 {
		return
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return
	}
	defer null.Close()
	if fd, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, int(min(uint64(connections), limit.Cur)-1)); err == nil {
		_ = unix.Close(fd)
	}
}
