//go:build !unix

package capture

import (
	"os"
	"os/exec"
)

// Nothing is captured on a system without signals: see refuse.

func start(cmd *exec.Cmd) error { return cmd.Start() }

func startApart(cmd *exec.Cmd) error { return cmd.Start() }

func signalGroup(*os.Process, os.Signal) {}

func killProcess(int) {}

func terminate(int) {}

func alive(int) bool { return true }

func lockFolder(string) (unlock func()) { return func() {} }
