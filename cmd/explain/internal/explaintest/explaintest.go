// Package explaintest is a test kit: explain as a program, and the traces that tests give it. Tests of what only the
// whole program does lie in the room that does it, each a package of its own that go test runs beside the others.
//
// A package whose tests start explain begins with
//
//	func TestMain(m *testing.M) { explaintest.Main(m) }
package explaintest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture/capturetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// root is the repository's folder, whatever folder a test changes to.
var root = func() string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
	return "."
}()

// Root is the path of a file of the repository.
func Root(name ...string) string { return filepath.Join(append([]string{root}, name...)...) }

// Testdata is the path of a file of testdata.
func Testdata(name ...string) string { return Root(append([]string{"testdata"}, name...)...) }

// Shared is the path of a file beside the repository, which stands without it: tests skip where it is not there.
func Shared(name ...string) string { return Root(append([]string{"..", "shared"}, name...)...) }

// Traces are all traces of testdata, and a sample of the real ones where they are there: all of them with -long.
func Traces(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(Testdata("*.sqlite"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no traces in testdata (%v)", err)
	}
	return append(list, longtest.Captures(t)...)
}

// TraceName is a trace's file without its ending: the name of its part of a test.
func TraceName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".sqlite") }

// bin is the folder that holds the built program; its first user builds it.
var bin string

var build = sync.OnceValue(func() error {
	if bin == "" {
		return errors.New("TestMain does not call explaintest.Main")
	}
	c := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", bin+string(filepath.Separator), "./cmd/explain")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// Standins are programs that a test binary is, for testscript.Main: standin (a server, see package fakeserver),
// standin-nsys, standin-ncu and standin-import (package capturetest).
func Standins() map[string]func() {
	return map[string]func(){
		"standin":        func() { os.Exit(fakeserver.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-nsys":   func() { os.Exit(capturetest.Nsys(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-ncu":    func() { os.Exit(capturetest.NCU(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-import": func() { os.Exit(capturetest.Importer(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
	}
}

// Main runs the tests of a package. PATH leads to explain and to the stand-ins. Those tests wait for other programs most of
// their time: four times as many as usual run side by side.
func Main(m testscript.TestingM) { testscript.Main(tests{m}, Standins()) }

type tests struct{ testscript.TestingM }

func (m tests) Run() int {
	dir, err := os.MkdirTemp("", "explaintest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	flag.Parse()
	if side := flag.Lookup("test.parallel"); side.Value.String() == side.DefValue {
		err = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
	if err := errors.Join(err, os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.TestingM.Run()
}

// Program is the path of explain, built from this tree once for all tests of a package.
func Program(t testing.TB) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	name := "explain"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(bin, name)
}

// Run runs explain outside of GitHub and returns what it printed and its exit code.
func Run(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.Command(Program(t), args...)
	c.Env = append(os.Environ(), "GITHUB_ACTIONS=", "GITHUB_OUTPUT=", "GITHUB_STEP_SUMMARY=", "GITHUB_REPOSITORY=")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return out.String(), errs.String(), Exit(t, err)
}

// Exit is the exit code of a program that has ended.
func Exit(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// Read is what a file holds.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Put writes a file, and its folder.
func Put(t testing.TB, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}
