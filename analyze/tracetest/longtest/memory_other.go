//go:build !linux

package longtest

// inMemory is a folder in memory, or "": only Linux has one.
func inMemory() string { return "" }
