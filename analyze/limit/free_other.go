//go:build !linux && !darwin

package limit

// Free is unknown on this system.
func Free(string) (bytes uint64, ok bool) { return 0, false }
