//go:build !linux

package fakeserver

// Beat does nothing: timers are exact here.
func Beat() {}
