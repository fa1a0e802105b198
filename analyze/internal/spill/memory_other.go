//go:build !linux

package spill

// Machine is how many bytes of memory this process could have. 0 means unknown.
func Machine() int64 { return 0 }
