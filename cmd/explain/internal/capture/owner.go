package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// owner is the explain that makes a capture: it is known by its pid and the moment of its start, never by a name.
type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since the machine started; 0: not known here
	Host  string `json:"host"`
}

func thisProcess() owner {
	host, _ := os.Hostname()
	return owner{PID: os.Getpid(), Start: processOf(os.Getpid()).start, Host: host}
}

// mayLive reports whether the owner may still be at work. One on another machine, behind a shared file system, is
// nothing that this one can know about.
func (o owner) mayLive() bool {
	if host, err := os.Hostname(); err != nil || o.Host != "" && o.Host != host {
		return true
	}
	if processOf(os.Getpid()).start == 0 { // no /proc
		return alive(o.PID)
	}
	p := processOf(o.PID)
	return p.running() && p.start == o.Start
}

const ownerFile = "owner.json"

func (o owner) write(dir string) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ownerFile), b, 0o600)
}

func ownerOf(dir string) (o owner, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, ownerFile))
	return o, err == nil && json.Unmarshal(b, &o) == nil && o.PID > 0
}

// EndStale ends what captures left running whose explain is dead, killed or lost with its terminal: servers, which hold
// a GPU, and the agents of nsys. Each process bears in its environment the pid and the start of the explain that began
// it, and that one is gone. It returns their names, empty where there were none.
func EndStale() string {
	var stale []process
	space := pidSpace(os.Getpid())
	for pid, p := range processes() {
		if o, ok := startedBy(pid); ok && pidSpace(pid) == space && !o.mayLive() {
			stale = append(stale, p)
		}
	}
	if len(stale) == 0 {
		return ""
	}
	names := list(stale)
	still := func(p process) bool { now := processOf(p.pid); return now.running() && now.same(p) }
	for _, p := range stale {
		if still(p) {
			interrupt(p.pid) // nsys writes what it has
		}
	}
	ended := func(of []process, within time.Duration) bool {
		for until := time.Now().Add(within); slices.ContainsFunc(of, still); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				return false
			}
		}
		return true
	}
	if ended(stale, 3*time.Second) {
		return names
	}
	// nsys waits for what it records: without that it writes the recording.
	recorder := func(p process) bool { return strings.Contains(p.String(), "nsys") }
	for _, all := range []bool{false, true} {
		for _, p := range stale {
			if (all || !recorder(p)) && still(p) {
				killProcess(p.pid)
			}
		}
		if !all {
			ended(stale, writingLimit)
		}
	}
	return names
}

// writingLimit is how long nsys may take to write a recording whose program was ended.
const writingLimit = 30 * time.Second

// startedBy reads from the mark of a process which explain began it.
func startedBy(pid int) (o owner, ok bool) {
	env, err := os.ReadFile(procFile(pid, "environ"))
	if err != nil {
		return o, false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, found := bytes.CutPrefix(entry, []byte(markerName+"=")); found {
			n, err := fmt.Sscanf(string(value), "%d-%d-", &o.PID, &o.Start)
			return o, err == nil && n == 2 && o.Start > 0
		}
	}
	return o, false
}

// pidSpace names the PID namespace of a process: the pids in a container are not those outside of it.
func pidSpace(pid int) string {
	name, err := os.Readlink(procFile(pid, "ns/pid"))
	if err != nil {
		return "unknown to everybody else: " + fmt.Sprint(pid)
	}
	return name
}
