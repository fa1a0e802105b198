package load

import (
	"syscall"
	"time"
)

// beatEvery is how late a script is at most, on processors that have time.
const beatEvery = 100 * time.Microsecond

// beat makes the timers of this process exact to a tenth of a millisecond until it ends, at the cost of a quarter of a
// core. It is for scripts whose times are taken at their word.
//
// Why: on Linux an idle Go program waits for its next timer in epoll_wait, which takes whole milliseconds, so that each
// timer fires up to 1 ms late (netpoll in runtime/netpoll_epoll.go). A goroutine that is woken makes the program look
// at its timers, and the kernel's own sleep is exact.
func beat() {
	beats := make(chan bool)
	go func() {
		for every := syscall.NsecToTimespec(beatEvery.Nanoseconds()); ; beats <- true {
			_ = syscall.Nanosleep(&every, nil)
		}
	}()
	go func() {
		for range beats { // to be woken is all
		}
	}()
}
