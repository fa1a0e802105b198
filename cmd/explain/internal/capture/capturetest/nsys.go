// Package capturetest stands in for Nsight Systems and Nsight Compute in tests: programs that take the arguments that
// the real ones take, refuse those that a version does not know, run the program that is profiled, and leave a
// synthetic trace.
package capturetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// full are the version texts as nsys prints them.
var full = map[string]string{
	"2020.3": "2020.3.4.32-52657a0", "2021.4": "2021.4.1.73-08591f7", "2022.4": "2022.4.2.1-df9881f",
	"2023.4": "2023.4.4.54-234433681190v0", "2024.2": "2024.2.3.38-242334140272v0",
	"2025.6": "2025.6.1.90-256137053442v0", "2026.1": "2026.1.1.204-261137243442v0",
}

// standin is one call of the fake nsys.
type standin struct {
	version, fault string
	slow           time.Duration // that stop and export take
	dir            string        // of sessions
	out, err       io.Writer
}

// Nsys is the fake nsys. The variable NSYS_STANDIN is "version=2024.2,fault=F,slow=400ms". Faults: COMMAND_fail, COMMAND_kill
// (it dies by SIGKILL), COMMAND_hang, with the name of a command; qdstrm (a raw stream instead of a report); no_report;
// no_sqlite; empty_sqlite; no_help; foreign (another program of this name).
//
// A report names the trace that export writes: the last argument of the profiled program that ends in .sqlite, else a
// small synthetic one.
func Nsys(args []string, getenv func(string) string, out, errs io.Writer) int {
	s := &standin{version: "2025.6", out: out, err: errs}
	for _, part := range strings.Split(getenv("NSYS_STANDIN"), ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "version":
			s.version = value
		case "fault":
			s.fault = value
		case "slow":
			s.slow, _ = time.ParseDuration(value)
		}
	}
	s.dir = cmp.Or(getenv("TMPDIR"), os.TempDir())
	if len(args) == 0 {
		return s.fail("usage: nsys")
	}
	if args[0] == "--version" {
		if s.fault == "foreign" {
			fmt.Fprintln(out, "nsys: the network system shell")
			return 0
		}
		fmt.Fprintf(out, "NVIDIA Nsight Systems version %s\n", full[s.version])
		return 0
	}
	return s.command(args[0], args[1:])
}

func (s *standin) fail(format string, a ...any) int {
	fmt.Fprintf(s.err, format+"\n", a...)
	return 1
}

func (s *standin) command(name string, args []string) int {
	known, ok := commands(s.version)[name]
	if !ok {
		return s.fail("unrecognised command '%s'", name)
	}
	if len(args) == 1 && args[0] == "--help" {
		if s.fault == "no_help" {
			return s.fail("no help")
		}
		for _, f := range slices.Sorted(maps.Keys(known)) {
			more := ""
			if f == "trace" && s.version >= "2026" {
				more = "'cuda', 'cuda-hw', 'cuda-sw', "
			}
			fmt.Fprintf(s.out, "\t--%s=\n\n\t   Possible values are %s…\n\n", f, more)
		}
		return 0
	}
	flags := map[string]string{}
	rest := args
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		flag, value, has := strings.Cut(strings.TrimPrefix(rest[0], "--"), "=")
		if !strings.HasPrefix(rest[0], "--") || !known[flag] {
			return s.fail("unrecognised option '%s'\n\nusage: nsys %s [<args>] [application] [<application args>]\nTry 'nsys %s --help' for more information.", rest[0], name, name)
		}
		if allowed, ok := values[flag]; !has || ok && !slices.Contains(strings.Fields(allowed), value) {
			return s.fail("Illegal --%s argument: %s.", flag, value)
		}
		flags[flag], rest = value, rest[1:]
	}
	for _, whole := range []string{"delay", "duration"} {
		if v, ok := flags[whole]; ok {
			if _, err := strconv.Atoi(v); err != nil {
				return s.fail("Illegal --%s argument: %s.", whole, v)
			}
		}
	}
	switch s.fault {
	case name + "_fail":
		return s.fail("%s failed as the test says", name)
	case name + "_kill":
		if name != "profile" && name != "launch" {
			kill(os.Getpid())
		}
	case name + "_hang":
		time.Sleep(time.Hour)
	}
	if name == "export" || name == "stop" {
		time.Sleep(s.slow)
	}
	switch name {
	case "profile":
		return s.profile(flags, rest)
	case "launch":
		return s.launch(flags, rest)
	case "export":
		return s.export(flags, rest)
	}
	return s.session(name, flags)
}

// profile runs the program and writes a report when it ends, when the duration is over, or when it is interrupted.
func (s *standin) profile(flags map[string]string, program []string) int {
	c, err := s.start(program)
	if err != nil {
		return s.fail("%v", err)
	}
	if s.fault == "profile_kill" {
		kill(os.Getpid())
	}
	ended := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	asked := make(chan struct{})
	go func() { _ = c.Wait(); s.waitAll(asked); close(ended) }()
	var over <-chan time.Time
	delay, _ := strconv.Atoi(flags["delay"])
	if d, _ := strconv.Atoi(flags["duration"]); d > 0 {
		over = time.After(time.Duration(delay+d) * time.Second)
	}
	begun := time.Now()
	select {
	case <-ended:
		if time.Since(begun) < time.Duration(delay)*time.Second {
			fmt.Fprintln(s.err, "The target application terminated before the collection started.")
			return c.ProcessState.ExitCode()
		}
	case <-over:
		terminate(c.Process)
		close(asked)
		<-ended
	case <-signals: // it waits for daemons all the same, as nsys 2022.4, 2023.4 and 2024.2 do
		terminate(c.Process)
		<-ended
	}
	if flags["nvtx-capture"] != "" && !slices.Contains(program, "nvtx:"+flags["nvtx-capture"]) {
		fmt.Fprintln(s.err, "No reports were generated.")
		return 0
	}
	if err := s.report(flags["output"], program); err != nil {
		return s.fail("%v", err)
	}
	if code := c.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 143
}

// waitAll waits for what the program started, as --wait=all, which is nsys's default, until it is asked to end.
func (s *standin) waitAll(asked <-chan struct{}) {
	said := false
	for children() {
		if !said {
			fmt.Fprintln(s.err, "The target application terminated. One or more process it created re-parented.\nWaiting for termination of re-parented processes.\nUse the `--wait` option to modify this behavior.")
			said = true
		}
		select {
		case <-asked:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *standin) start(program []string) (*exec.Cmd, error) {
	if len(program) == 0 {
		return nil, fmt.Errorf("no application")
	}
	c := exec.Command(program[0], program[1:]...)
	c.Stdout, c.Stderr = s.out, s.err
	adopt()
	ownSession(c) // as nsys does
	return c, c.Start()
}

// report writes what nsys leaves: here, the name of the trace to export.
func (s *standin) report(output string, program []string) error {
	if s.fault == "no_report" {
		return nil
	}
	trace := ""
	for _, a := range program {
		if strings.HasSuffix(a, ".sqlite") {
			trace = a
		}
	}
	ext := ".nsys-rep"
	if s.fault == "qdstrm" || strings.HasPrefix(s.fault, "importer") {
		ext = ".qdstrm"
	}
	return os.WriteFile(output+ext, []byte("trace "+trace+"\n"), 0o644)
}

func (s *standin) export(flags map[string]string, rest []string) int {
	if len(rest) != 1 {
		return s.fail("one report, got %d", len(rest))
	}
	b, err := os.ReadFile(rest[0])
	if err != nil {
		return s.fail("Exportation error: File not found: '%s'.", filepath.Base(rest[0]))
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "trace")
	switch {
	case !ok:
		return s.fail("Exportation error: not a report")
	case s.fault == "no_sqlite":
		return 0
	case s.fault == "empty_sqlite":
		err = os.WriteFile(flags["output"], nil, 0o644)
	case strings.TrimSpace(name) == "":
		err = tracetest.Tiny().Write(flags["output"])
	default:
		var trace []byte
		if trace, err = os.ReadFile(strings.TrimSpace(name)); err == nil {
			err = os.WriteFile(flags["output"], trace, 0o644)
		}
	}
	if err != nil {
		return s.fail("Exportation error: %v", err)
	}
	fmt.Fprint(s.out, "Exporting 176 events: [50%]\rExporting 176 events: [100%]\n")
	return 0
}

// state is a session, in a file of the temporary folder.
type state struct {
	PID     int // of the program
	Program []string
	Output  string // set by start
	Stopped bool
}

func (s *standin) file(flags map[string]string) string {
	return filepath.Join(s.dir, "nsys-"+cmp.Or(flags["session"], flags["session-new"])+".json")
}

func (s *standin) launch(flags map[string]string, program []string) int {
	c, err := s.start(program)
	if err != nil {
		return s.fail("%v", err)
	}
	if err := save(s.file(flags), &state{PID: c.Process.Pid, Program: program}); err != nil {
		return s.fail("%v", err)
	}
	defer os.Remove(s.file(flags))
	if s.fault == "launch_kill" {
		kill(os.Getpid())
	}
	_ = c.Wait()
	s.waitAll(nil)
	if b, err := os.ReadFile(s.file(flags)); err == nil { // as with --stop-on-exit, which is nsys's default
		var st state
		if json.Unmarshal(b, &st) == nil && st.Output != "" && !st.Stopped {
			if err := s.report(st.Output, st.Program); err != nil {
				return s.fail("%v", err)
			}
		}
	}
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.ProcessState.ExitCode()
}

// session does start, stop and shutdown.
func (s *standin) session(command string, flags map[string]string) int {
	b, err := os.ReadFile(s.file(flags))
	var st state
	if err != nil || json.Unmarshal(b, &st) != nil {
		return s.fail("No such session: %s", flags["session"])
	}
	switch command {
	case "start":
		st.Output = flags["output"]
		err = save(s.file(flags), &st)
	case "stop":
		if st.Output == "" {
			return s.fail("There is no collection to stop.")
		}
		if err = s.report(st.Output, st.Program); err == nil {
			st.Stopped = true
			err = save(s.file(flags), &st)
		}
	case "shutdown":
		if p, e := os.FindProcess(st.PID); e == nil {
			terminate(p)
		}
	}
	if err != nil {
		return s.fail("%v", err)
	}
	return 0
}

func save(path string, st *state) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// Importer is the fake QdstrmImporter. Faults of NSYS_STANDIN: importer_fail, importer_hang, importer_kill.
func Importer(args []string, getenv func(string) string, out, errs io.Writer) int {
	switch {
	case strings.Contains(getenv("NSYS_STANDIN"), "importer_fail"):
		fmt.Fprintln(errs, "error while loading shared libraries: libssh.so")
		return 127
	case strings.Contains(getenv("NSYS_STANDIN"), "importer_hang"):
		time.Sleep(time.Hour)
	case strings.Contains(getenv("NSYS_STANDIN"), "importer_kill"):
		kill(os.Getpid())
	}
	if len(args) != 5 || args[0] != "--input-file" || args[2] != "--output-file" || args[4] != "--force-overwrite" {
		fmt.Fprintf(errs, "unrecognised options %q\n", args)
		return 1
	}
	b, err := os.ReadFile(args[1])
	if err == nil {
		err = os.WriteFile(args[3], b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	fmt.Fprintf(out, "Saved report file to %q\n", args[3])
	return 0
}
