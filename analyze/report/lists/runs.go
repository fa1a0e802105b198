package lists

import (
	"errors"
	"fmt"
)

// AddRun appends a value to a list that is kept as runs of equal values: value, count, value, count.
func AddRun(runs []int64, v int64) []int64 {
	if n := len(runs); n > 0 && runs[n-2] == v {
		runs[n-1]++
		return runs
	}
	return append(runs, v, 1)
}

// OfRuns are the n values of a list of runs, each from least to most; what is not that is an error.
func OfRuns(runs []int64, n int, least, most int64) ([]int64, error) {
	list := make([]int64, 0, n)
	for ; len(runs) > 1; runs = runs[2:] {
		v, count := runs[0], runs[1]
		switch {
		case v < least || v > most:
			return nil, fmt.Errorf("%d is out of range", v)
		case count < 1 || count > int64(n-len(list)):
			return nil, fmt.Errorf("a run of %d where %d are left", count, n-len(list))
		}
		for range count {
			list = append(list, v)
		}
	}
	switch {
	case len(runs) > 0:
		return nil, errors.New("a value without a count")
	case len(list) != n:
		return nil, fmt.Errorf("%d values where %d belong", len(list), n)
	}
	return list, nil
}
