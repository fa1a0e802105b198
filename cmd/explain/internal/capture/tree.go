package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// below reports whether one of those ancestors started a process, directly or through others.
func below(all map[int]process, p process, ancestors map[int]bool) bool {
	for depth := 0; p.parent > 1 && depth < 64; depth++ {
		if ancestors[p.parent] {
			return true
		}
		p = all[p.parent]
	}
	return false
}

// tree lists the processes of a child, without the child itself: those of its process group, those with its mark in
// their environment, and their descendants. nsys runs the program and its own agent each in a session of its own, so
// the process group alone would miss both. Without a child (0) it lists all with the mark. Empty if there is no /proc.
func tree(child int, marker string) (found []process) {
	all := processes()
	delete(all, os.Getpid())
	mine := map[int]bool{child: child > 0}
	for pid, p := range all {
		if child > 0 && p.group == child || strings.HasPrefix(markerName+"="+markOf(pid), marker) {
			mine[pid] = true
		}
	}
	for pid, p := range all {
		if pid != child && (mine[pid] || below(all, p, mine)) {
			found = append(found, p)
		}
	}
	return found
}

// markOf is the mark in the environment of a process; empty without one.
func markOf(pid int) string {
	env, _ := os.ReadFile(procFile(pid, "environ"))
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if mark, found := bytes.CutPrefix(entry, []byte(markerName+"=")); found {
			return string(mark)
		}
	}
	return ""
}

// programBelow returns the program that nsys runs below a child: the oldest process there that leads a session and is no
// part of nsys, whose agent is there for a moment. It is zero if there is none yet.
func programBelow(child int) (program process) {
	for _, p := range remaining(child) {
		older := program.pid == 0 || p.start < program.start || p.start == program.start && p.pid < program.pid
		if p.session == p.pid && older {
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
		if p.group != child && below(all, p, map[int]bool{child: true}) && !p.nsys() {
			left = append(left, p)
		}
	}
	return left
}

// owner identifies the explain process that makes a capture, by its pid and start time, and whose pids they are.
type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot; 0: unknown on this system
	Host  string `json:"host"`
	Space string `json:"space,omitempty"` // PID namespace
}

func thisProcess() owner {
	host, _ := os.Hostname()
	return owner{PID: os.Getpid(), Start: processOf(os.Getpid()).start, Host: host, Space: pidSpace(os.Getpid())}
}

// mayLive reports whether the owner may still be running. It is true for an owner on another machine, behind a shared
// file system, and in another container, even one with this host name: they cannot be checked from here.
func (o owner) mayLive() bool {
	me := thisProcess()
	if me.Host == "" || o.Host != "" && o.Host != me.Host || o.Space != "" && o.Space != me.Space {
		return true
	}
	if me.Start == 0 { // no /proc
		return alive(o.PID)
	}
	p := processOf(o.PID)
	return p.running() && p.start == o.Start
}

const ownerFile = "owner.json"

func (o owner) write(dir string) error { return writeJSON(filepath.Join(dir, ownerFile), o, 0o600) }

func ownerOf(dir string) (o owner, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, ownerFile))
	return o, err == nil && json.Unmarshal(b, &o) == nil && o.PID > 0
}

// EndStale ends what captures of a dead explain left running if its watcher is dead too: servers, which hold a GPU, and
// the agents of nsys. It returns their names; empty if there were none.
func EndStale() string { return end(func(by owner) bool { return !by.mayLive() }) }

// end ends what a capture left running: the mark of each process has the pid and start time of the explain that started
// it. names lists what was found.
func end(mine func(by owner) bool) (names string) {
	space := pidSpace(os.Getpid())
	return endAll(endingLimit, writingLimit, func() (left []process) {
		for pid, p := range processes() {
			if o, ok := markedBy(markOf(pid)); ok && pidSpace(pid) == space && mine(o) {
				left = append(left, p)
			}
		}
		return left
	})
}

// killTree kills the processes of a child, or with 0 all that have the mark; those of nsys only if they do not end by
// themselves within settleLimit: they remove their files from the temporary folder.
func killTree(child int, marker string) {
	endAll(0, settleLimit, func() []process { return tree(child, marker) })
}

// endAll ends the processes that find returns, until it returns none: it asks programs to end and kills them after ask,
// and what is part of nsys only after write more, since nsys completes the recording once they are gone. It looks
// twice, since the mark of a process that is just being started cannot be read. names lists what was found first.
func endAll(ask, write time.Duration, find func() []process) (names string) {
	asked, began := map[int]bool{}, time.Now()
	for none := 0; none < 2; time.Sleep(20 * time.Millisecond) {
		left := find()
		if none++; len(left) > 0 {
			none = 0
		}
		if names == "" && len(left) > 0 {
			names = list(left)
		}
		after := time.Since(began)
		if after > ask+write+endingLimit { // a process in an uninterruptible call does not die
			break
		}
		for _, p := range left {
			switch recorder := p.recorder(); {
			case after >= ask+write, after >= ask && !recorder:
				killProcess(p.pid)
			case !recorder && !asked[p.pid]:
				asked[p.pid] = true
				terminate(p.pid)
			}
		}
	}
	return names
}

// Limits if explain is gone: for a program to end, and for nsys to complete a recording.
const (
	endingLimit  = 5 * time.Second
	writingLimit = 30 * time.Second
)

// recorder reports whether a process is part of nsys, or in a process group led by it.
func (p process) recorder() bool {
	leader := process{pid: p.group}
	return strings.Contains(p.String(), "nsys") || strings.Contains(leader.String(), "nsys")
}

// markedBy reads from a mark which explain started a process.
func markedBy(mark string) (by owner, ok bool) {
	n, err := fmt.Sscanf(mark, "%d-%d", &by.PID, &by.Start)
	return by, err == nil && n == 2 && by.Start > 0
}

// pidSpace names the PID namespace of a process: pids inside a container differ from those outside. Machines number
// their containers alike, so that the name of one holds its machine, by its start.
func pidSpace(pid int) string {
	name, err := os.Readlink(procFile(pid, "ns/pid"))
	if err != nil {
		return "unknown to everybody else: " + fmt.Sprint(pid)
	}
	if name != "pid:[4026531836]" { // of no container
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		name += " " + string(bytes.TrimSpace(boot))
	}
	return name
}

// WatchName is the first argument of an explain that watches the capture of another explain.
const WatchName = "explain-capture-watch"

// Self is the command that started this program if it is explain; only that can watch. Tests that run commands as
// functions leave it empty and have no watcher.
var Self string

// Watch starts a process that outlives explain. If explain is killed, that process ends the programs that explain has
// started, as a first Ctrl-C would, and keeps the recording. stage is the scratch folder; empty: nothing is to be kept.
// done ends the process. If it cannot be started, the next capture cleans up instead.
func Watch(stage string) (done func()) {
	me := thisProcess()
	look, tell, err := os.Pipe()
	if err != nil || me.Start == 0 || Self == "" { // without /proc nobody knows who started what
		return func() {}
	}
	defer look.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{Self, WatchName, fmt.Sprintf("%d-%d", me.PID, me.Start), stage}
	cmd.Stdin = look
	if err := startApart(cmd); err != nil {
		tell.Close()
		return func() {}
	}
	return func() {
		_, _ = tell.Write([]byte{0})
		tell.Close()
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	}
}

// WatchOver is the watcher: it waits for the end of the explain process of, in the form that Watch passes. parent ends
// with that process; a byte before its end means that nothing is left to do.
func WatchOver(of, stage string, parent io.Reader) {
	o, ok := markedBy(of)
	if n, _ := parent.Read(make([]byte, 1)); n > 0 || !ok {
		return
	}
	end(func(by owner) bool { return by.PID == o.PID && by.Start == o.Start })
	defer lockFolder(filepath.Dir(stage))()
	if found, ok := ownerOf(stage); ok && found.PID == o.PID && found.Start == o.Start {
		rescue(stage)
	}
}
