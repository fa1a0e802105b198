package spill

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is how many bytes of memory this process could have: those of the machine, or of the control group it runs in
// if that has less. 0 means unknown.
func Machine() int64 {
	var info unix.Sysinfo_t
	var have int64
	if unix.Sysinfo(&info) == nil {
		have = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // the types differ between machines
	}
	for _, limit := range groupLimits() {
		if limit > 0 && (have == 0 || limit < have) {
			have = limit
		}
	}
	return have
}

// groupLimits are the memory limits of the control groups around this process, of both versions.
func groupLimits() []int64 {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	defer f.Close()
	var limits []int64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, rest, _ := strings.Cut(lines.Text(), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		root, file := "/sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "":
		case strings.Contains(","+controllers+",", ",memory,"):
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
			if b, err := os.ReadFile(filepath.Join(root, path, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
					limits = append(limits, n)
				}
			}
			if path == "/" {
				break
			}
		}
	}
	return limits
}
