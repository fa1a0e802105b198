//go:build !linux

package standin

// Beat does nothing: timers are exact here.
func Beat() (stop func()) { return func() {} }
