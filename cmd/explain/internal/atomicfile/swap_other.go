//go:build !linux

package atomicfile

func swap(string, string) bool { return false }
