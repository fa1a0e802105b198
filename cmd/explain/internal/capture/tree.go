package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// process is what /proc says of one process.
type process struct {
	pid, parent, group, session int
	state                       byte
	// start is its start time, in clock ticks since boot: with the pid it identifies a process uniquely.
	start uint64
}

// processes returns all running processes; empty if there is no /proc. Zombies are left out.
func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int]process{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p := processOf(pid); p.running() {
				all[pid] = p
			}
		}
	}
	return all
}

// processOf reads one process; the zero value if it is gone. The name in parentheses may contain anything, so fields
// are counted from its end.
func processOf(pid int) process {
	b, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return process{}
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return process{}
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return process{pid: pid, parent: number(1), group: number(2), session: number(3), state: fields[0][0], start: start}
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

func (p process) running() bool { return p.state != 0 && p.state != 'Z' && p.state != 'X' }

// String returns a readable name of a process.
func (p process) String() string {
	name, err := os.ReadFile(procFile(p.pid, "comm"))
	if err != nil {
		return fmt.Sprintf("pid %d", p.pid)
	}
	return fmt.Sprintf("%s (pid %d)", strings.TrimSpace(string(name)), p.pid)
}

// nsys reports whether the process is a part of nsys.
func (p process) nsys() bool { return strings.HasPrefix(p.String(), "nsys") }

// list names processes, the oldest first, and no more than five.
func list(all []process) string {
	lists.Sort(all, func(a, b process) int { return a.pid - b.pid })
	names := lists.Map(all[:min(len(all), 5)], func(p process) string { return p.String() })
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// below reports whether ancestor started a process, directly or through others.
func below(all map[int]process, p process, ancestor int) bool {
	for depth := 0; p.parent > 1 && depth < 64; depth++ {
		if p.parent == ancestor {
			return true
		}
		p = all[p.parent]
	}
	return false
}

// tree lists the processes of a child, without the child itself: those of its process group, those with its mark in
// their environment, and their descendants. nsys runs the program and its own agent each in a session of its own, so
// the process group alone would miss both. Empty if there is no /proc.
func tree(child int, marker string) []int {
	all := processes()
	delete(all, os.Getpid())
	mine := map[int]bool{child: child > 0}
	for pid, p := range all {
		if child > 0 && p.group == child || marked(pid, marker) {
			mine[pid] = true
		}
	}
	var found []int
	for pid := range all {
		for p, depth := pid, 0; p > 1 && depth < 64; p, depth = all[p].parent, depth+1 {
			if mine[p] {
				if pid != child {
					found = append(found, pid)
				}
				break
			}
		}
	}
	return found
}

func marked(pid int, marker string) bool {
	env, err := os.ReadFile(procFile(pid, "environ"))
	return err == nil && (bytes.HasPrefix(env, []byte(marker)) || bytes.Contains(env, []byte("\x00"+marker)))
}

// programBelow returns the program that nsys runs below a child: the oldest process there that leads a session and is no
// part of nsys, whose agent is there for a moment. It is zero if there is none yet.
func programBelow(child int) (program process) {
	all := processes()
	for _, p := range all {
		older := program.pid == 0 || p.start < program.start || p.start == program.start && p.pid < program.pid
		if p.session == p.pid && older && below(all, p, child) && !p.nsys() {
			program = p
		}
	}
	return program
}

// remaining returns the processes below a child that are neither in its group nor part of nsys: the program under nsys
// and what it started.
func remaining(child int) (left []process) {
	all := processes()
	for _, p := range all {
		if p.group != child && below(all, p, child) && !p.nsys() {
			left = append(left, p)
		}
	}
	return left
}
