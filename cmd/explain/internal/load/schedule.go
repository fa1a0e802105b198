package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// arrivals returns the moments at which requests of an open loop are due, one with each call: a Poisson process with
// exponential gaps of mean 1/rate. The first request is due at once. The same seed gives the same moments.
func arrivals(rate float64, seed uint64) (next func() time.Duration) {
	random, mean, at := rand.New(rand.NewPCG(seed, 0x10ad)), 1e9/rate, 0.0 // ns
	return func() time.Duration {
		due := time.Duration(at)
		at += random.ExpFloat64() * mean
		return due
	}
}

// sleepUntil waits until t; it returns false if ctx ends first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(t)):
		return ctx.Err() == nil
	}
}
