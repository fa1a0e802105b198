// Package interrupt hears how people and machines ask explain to end.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals are the signals by which people and machines ask explain to end: Ctrl-C and Ctrl-\, a job that is over, a
// terminal that is closed. nohup has SIGHUP ignored, and it stays so.
func Signals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// Contexts gives two contexts: the first ends when the user asks once (or parent ends), the second when they ask
// again. Both have this cause.
func Contexts(parent context.Context, cause error) (soft, hard context.Context, done func()) {
	hard, giveUp := context.WithCancelCause(context.WithoutCancel(parent))
	soft, end := context.WithCancelCause(hard)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, Signals()...)
	broken := make(chan os.Signal, 1) // a terminal or a pipe that is gone must not end explain before its children
	signal.Notify(broken, syscall.SIGPIPE)
	stopped := make(chan struct{})
	go func() {
		for asked, parentDone := false, parent.Done(); ; {
			select {
			case <-signals:
				if asked {
					giveUp(cause)
				}
				asked = true
			case <-parentDone: // where main hears the signal too, it is the same one
				parentDone = nil
			case <-stopped:
				return
			}
			end(cause)
		}
	}()
	return soft, hard, func() {
		signal.Stop(signals)
		signal.Stop(broken)
		close(stopped)
		end(nil)
		giveUp(nil)
	}
}
