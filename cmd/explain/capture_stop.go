package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	recorder "github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// interruptible gives two contexts: the first ends when the user asks once (or parent ends), the second when they ask again. Both
// have a cause.
func interruptible(parent context.Context) (soft, hard context.Context, done func()) {
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
				end(recorder.ErrInterrupted)
				continue
			case <-stopped:
				return
			}
			end(recorder.ErrInterrupted)
			if asked > 1 {
				giveUp(recorder.ErrInterrupted)
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
