//go:build !linux && !darwin

package capture

func freeBytes(string) (bytes uint64, ok bool) { return 0, false }
