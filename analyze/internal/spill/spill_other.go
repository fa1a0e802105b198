//go:build !linux

package spill

import "sync/atomic"

const pageSize = int64(4096)

func anonymous(int64) []byte { return nil }

func unmap([]byte) error { return nil }

func drop([]byte) {}

type disk struct{}

func newDisk(string, int64) (*disk, error) { return nil, ErrUnsupported }

func (*disk) take(int64) ([]byte, int64) { return nil, 0 }

func (*disk) give(_, _ int64) {}

func (*disk) close() error { return nil }

func (*Arena) govern() {}

// releases counts releases of mapped pages, for a test.
var releases atomic.Int64
