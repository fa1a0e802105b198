package load

import (
	"context"
	"testing"
	"time"
)

// A pace never lets a request go before it is due, and ends with its context, also while it waits.
func TestPace(t *testing.T) {
	for name, p := range map[string]pace{"kernel": newPace(), "timers": timers{}} {
		defer p.close()
		ctx, cancel := context.WithCancel(t.Context())
		for _, d := range []time.Duration{-time.Second, 0, 1, 300 * time.Microsecond, 2 * ms} {
			due := time.Now().Add(d)
			if !p.until(ctx, due) || time.Now().Before(due) {
				t.Errorf("%s: not until %v from now", name, d)
			}
		}
		time.AfterFunc(5*ms, cancel)
		if p.until(ctx, time.Now().Add(time.Hour)) {
			t.Errorf("%s: an hour is over", name)
		}
		if p.until(ctx, time.Now().Add(-time.Hour)) || p.until(ctx, time.Now().Add(time.Hour)) {
			t.Errorf("%s: goes on after its context", name)
		}
		if again := context.Background(); !p.until(again, time.Now().Add(ms)) {
			t.Errorf("%s: is of no use afterwards", name)
		}
	}
}
