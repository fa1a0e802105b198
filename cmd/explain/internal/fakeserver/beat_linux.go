package fakeserver

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// beatEvery is how late a script is at most, on processors that have time.
const beatEvery = 100 * time.Microsecond

// clockMonotonic is CLOCK_MONOTONIC.
const clockMonotonic = 1

// Beat makes the timers of this process exact to a tenth of a millisecond until stop is called, at the cost of a
// quarter of a core. It is for scripts whose times are taken at their word.
//
// Why: on Linux an idle Go program waits for its next timer in epoll_wait, which takes whole milliseconds, so that each
// timer fires up to 1 ms late (netpoll in runtime/netpoll_epoll.go). A timer of the kernel that wakes the program makes
// it look at its own timers. If the kernel refuses, nothing beats.
func Beat() (stop func()) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC,
		0)
	if errno != 0 {
		return func() {}
	}
	timer := os.NewFile(fd, "timer") // non-blocking: it is waited for where the network is
	every := syscall.NsecToTimespec(int64(beatEvery))
	spec := [2]syscall.Timespec{every, every} // struct itimerspec: period, first
	_, _, errno = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	conn, err := timer.SyscallConn()
	if errno != 0 || err != nil {
		timer.Close()
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var beats [8]byte
		_ = conn.Read(func(fd uintptr) bool { // to be woken is all; the kernel's timer goes on when its count is read
			_, err := syscall.Read(int(fd), beats[:])
			return err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		})
	}()
	return func() {
		timer.Close()
		<-ended
	}
}
