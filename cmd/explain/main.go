// Command explain says where the time of an LLM inference trace went, and what to do about it.
//
// Each command is one file. run is the whole program as a function, so that tests call it without a process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/nsys-llm/explain/analyze"
)

// Exit codes of every command.
const (
	exitOK           = 0
	exitFail         = 1 // the verdict is fail
	exitUsage        = 2 // wrong usage or policy file
	exitInput        = 3 // input that cannot be analysed, or explain itself failed
	exitInconclusive = 4 // not comparable
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &world{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv})
	stop()
	os.Exit(code)
}

// world is everything of the outside that commands touch besides the files they are given.
type world struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Open     func(path string) error // shows a page; nil: the desktop's program for pages
}

// usageError is an error in how explain was called: exit 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...interface{}) error {
	return usageError{fmt.Errorf(format, args...)}
}

// exitCode is the error of a command that did its work, and whose answer is not 0.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, w *world) int {
	cmd := newRoot(w)
	cmd.SetArgs(args)
	cmd.SetIn(w.In)
	cmd.SetOut(w.Out)
	cmd.SetErr(w.Err)
	err := cmd.ExecuteContext(ctx)
	var usage usageError
	var answer exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &answer):
		return int(answer)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w.Err, "explain: interrupted; nothing was written")
		return exitInput
	case errors.As(err, &usage), errors.Is(err, analyze.ErrOptions):
		fmt.Fprintf(w.Err, "explain: %s\n", clean(strings.TrimPrefix(err.Error(), analyze.ErrOptions.Error()+": ")))
		fmt.Fprintln(w.Err, "Run 'explain --help' for usage.")
		return exitUsage
	case errors.Is(err, syscall.EPIPE): // the reader of our output has seen enough
		return exitOK
	}
	fmt.Fprintf(w.Err, "explain: %s\n", clean(err.Error()))
	return exitInput
}

// version is set by the linker in releases (-ldflags "-X main.version=v1.2.3"); otherwise it comes from the build.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
