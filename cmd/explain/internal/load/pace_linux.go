package load

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer is a pace that is exact to some microseconds.
//
// Why not Go's own timers: on Linux an idle Go program waits for the next one in epoll_wait, which takes whole milliseconds, so that it
// fires up to 1 ms late, half of it on average (netpoll in runtime/netpoll_epoll.go). Each request would be sent that much too late,
// and its latency counts from when it was due.
type kernelTimer struct {
	file *os.File
	conn syscall.RawConn
}

// newPace is a timer of the kernel, or Go's where there is none to be had.
func newPace() pace {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return timers{}
	}
	k := &kernelTimer{file: os.NewFile(uintptr(fd), "timer")} // non-blocking: it is waited for where the network is
	if k.conn, err = k.file.SyscallConn(); err != nil {
		k.close()
		return timers{}
	}
	return k
}

func (k *kernelTimer) close() { k.file.Close() }

func (k *kernelTimer) until(ctx context.Context, t time.Time) bool {
	for ctx.Err() == nil {
		d := time.Until(t)
		if d <= 0 {
			return true
		}
		if err := k.wait(ctx, d); err != nil {
			return timers{}.until(ctx, t)
		}
	}
	return false
}

// wait until d is over or ctx ends.
func (k *kernelTimer) wait(ctx context.Context, d time.Duration) error {
	var err error
	if e := k.conn.Control(func(fd uintptr) {
		err = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	}); errors.Join(e, err) != nil {
		return errors.Join(e, err)
	}
	if err := k.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = k.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var count [8]byte
	if _, err := k.file.Read(count[:]); !errors.Is(err, os.ErrDeadlineExceeded) { // that is where ctx ended
		return err
	}
	return nil
}
