package load

import (
	"context"
	"time"
)

// pace waits until requests are due.
type pace interface {
	// until waits until t, or returns false when ctx ends.
	until(ctx context.Context, t time.Time) bool
	close()
}

// timers is the pace of Go's own timers.
type timers struct{}

func (timers) close() {}

func (timers) until(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
