package capture

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// start starts a child in a process group of its own: a Ctrl-C on the terminal reaches explain alone, which then ends
// the children in the right order. Where explain is killed, the child is interrupted, so that nsys writes what it has.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}

// starter runs functions on one thread that never ends: the death of the thread that started a child counts as the
// death of its parent.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})
