//go:build !linux

package capturetest

func adopt() {}

func children() bool { return false }
