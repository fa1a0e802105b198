package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible gives two contexts: the first ends when the user asks once (or parent ends), the second when they ask
// again. Both have this cause.
func interruptible(parent context.Context, cause error) (soft, hard context.Context, done func()) {
	hard, giveUp := context.WithCancelCause(context.WithoutCancel(parent))
	soft, end := context.WithCancelCause(hard)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		asked := 0
		parentDone := parent.Done()
		for {
			select {
			case <-signals:
				asked++
			case <-parentDone: // where main hears the signal too, it is the same one
				parentDone = nil
				end(cause)
				continue
			case <-stopped:
				return
			}
			end(cause)
			if asked > 1 {
				giveUp(cause)
			}
		}
	}()
	return soft, hard, func() {
		signal.Stop(signals)
		close(stopped)
		end(nil)
		giveUp(nil)
	}
}
