package cmdenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/nsys-llm/explain/analyze/report/render"
)

// OpenPage shows a page in the user's browser. A machine without one is no reason to fail: the page is written, and the
// error says where.
func (e *Env) OpenPage(dir, name string) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil {
		open := e.Open
		if open == nil {
			open = openWithSystem
		}
		err = open(path)
	}
	if err != nil {
		fmt.Fprintf(e.Err, "explain: cannot open a browser (%s); the page is %s\n", render.Visible(err.Error()),
			render.Visible(filepath.Join(dir, name)))
	}
}

// openWithSystem asks the desktop for its program for pages, and does not wait for it.
func openWithSystem(path string) error {
	name, args := "xdg-open", []string{path}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed", name)
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
