package capture

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

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
	var o owner
	if n, err := fmt.Sscanf(of, "%d-%d", &o.PID, &o.Start); n != 2 || err != nil {
		return
	}
	if n, _ := parent.Read(make([]byte, 1)); n > 0 {
		return
	}
	end(func(by owner) bool { return by.PID == o.PID && by.Start == o.Start })
	defer lockFolder(filepath.Dir(stage))()
	if found, ok := ownerOf(stage); ok && found.PID == o.PID && found.Start == o.Start {
		rescue(stage)
	}
}
