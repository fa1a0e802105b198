package capture

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// tree lists processes that belong to a child, without the child itself: those of its process group, those that bear
// its mark in their environment, and whatever any of these started. nsys runs the program and its own agent each in a
// session of its own, so that the process group alone would miss both. Empty where there is no /proc.
func tree(child int, marker string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parent, mine := map[int]int{}, map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		ppid, group, state := processStat(pid)
		if state == 'Z' || state == 0 {
			continue
		}
		parent[pid] = ppid
		mine[pid] = child > 0 && group == child || marked(pid, marker)
	}
	var list []int
	for pid := range parent {
		for p, depth := pid, 0; p > 1 && depth < 64; p, depth = parent[p], depth+1 {
			if mine[p] || p == child {
				if pid != child {
					list = append(list, pid)
				}
				break
			}
		}
	}
	return list
}

// processStat reads the parent, the process group and the state of a process; state 0 where it is gone. The name, in
// parentheses, may hold anything, so fields are counted from its last one.
func processStat(pid int) (parent, group int, state byte) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 3 {
		return 0, 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	group, _ = strconv.Atoi(string(fields[2]))
	return parent, group, fields[0][0]
}

func marked(pid int, marker string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && (bytes.HasPrefix(env, []byte(marker)) || bytes.Contains(env, []byte("\x00"+marker)))
}
