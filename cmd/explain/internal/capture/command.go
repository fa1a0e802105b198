package capture

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Trace selects what nsys records.
type Trace struct {
	Kinds       string   // --trace: cuda,nvtx,osrt
	Graphs      string   // --cuda-graph-trace: node or graph
	GraphsAsked bool     // the user set Graphs: an nsys without the flag is an error
	Memory      bool     // --cuda-memory-usage
	Host        bool     // host activity: scheduler switches, CPU samples, and Python if nsys can
	Counters    bool     // GPU counters, at nsys's default rate
	Forks       bool     // --trace-fork-before-exec: servers start their workers by fork
	More        []string // further arguments for nsys profile or launch
}

// base returns the flags that profile and launch share. It leaves out flags that the installed version lacks, with a
// note.
func (t *Trace) base(n *Nsys, command string) (args, notes []string, err error) {
	traced := t.Kinds
	if t.Host && n.lists(command, pythonGIL) && !strings.Contains(traced, pythonGIL) {
		traced += "," + pythonGIL
	}
	if command == "launch" && n.lists(command, softwareCUDA) && cudaAlone().MatchString(traced) {
		// Hardware tracing places kernels in time only when the process ends: a window that ends before would lose them.
		traced = cudaAlone().ReplaceAllString(traced, "${1}"+softwareCUDA+"${2}")
		notes = append(notes, "nsys "+n.Version+" traces CUDA by software ("+softwareCUDA+"), since a window that ends before the program does loses what hardware traced; name another with --trace")
	}
	args = []string{"--trace=" + traced}
	optional := func(flag, value, lost string) {
		if n.has(command, flag) {
			args = append(args, flag+"="+value)
		} else {
			notes = append(notes, fmt.Sprintf("nsys %s has no %s: %s", n.Version, flag, lost))
		}
	}
	if t.GraphsAsked && !n.has(command, "--cuda-graph-trace") {
		return nil, nil, n.missing(command, "--cuda-graph-trace")
	}
	optional("--cuda-graph-trace", t.Graphs, "kernels inside CUDA graphs may be missing")
	if t.Memory {
		optional("--cuda-memory-usage", "true", "memory use is not recorded")
	}
	if t.Forks {
		optional("--trace-fork-before-exec", "true", "worker processes may be missing")
	}
	if t.Host && n.lists(command, "--python-sampling") {
		args = append(args, "--python-sampling=true")
		if n.lists(command, "--python-sampling-frequency") {
			args = append(args, "--python-sampling-frequency="+pythonHz)
		}
	} else if t.Host {
		notes = append(notes, fmt.Sprintf("nsys %s has no --python-sampling: Python's functions are not recorded", n.Version))
	}
	if n.lists(command, "--discard-environment") { // otherwise a trace holds the whole environment, including keys
		args = append(args, "--discard-environment=true")
	}
	return append(args, t.More...), notes, nil
}

// cudaAlone matches plain cuda in a list of what is traced, which lets nsys choose hardware or software.
var cudaAlone = pattern.New(`(^|,)cuda(,|$)`)

// pythonHz is the rate at which Python's stacks are sampled: low, since each sample stops the interpreter.
const pythonHz = "100"

// recording returns the flags for sampling and output, which profile and start share.
func recording(n *Nsys, t *Trace, command, output string) (args, notes []string) {
	sampled := "none"
	if t.Host {
		sampled = "process-tree"
		notes = append(notes, "--host samples CPUs and records every switch of the scheduler, which takes time from the host itself: --overhead measures how much")
	}
	args = []string{"--sample=" + sampled}
	if n.has(command, "--cpuctxsw") {
		args = append(args, "--cpuctxsw="+sampled)
	} else {
		notes = append(notes, fmt.Sprintf("nsys %s has no --cpuctxsw: thread scheduling is recorded too", n.Version))
	}
	if t.Counters {
		flag := "--gpu-metrics-devices"
		if !n.lists(command, flag) && n.lists(command, "--gpu-metrics-device") {
			flag = "--gpu-metrics-device"
		}
		if n.has(command, flag) {
			args = append(args, flag+"=all")
		} else {
			notes = append(notes, fmt.Sprintf("nsys %s has no %s: GPU counters are not recorded", n.Version, flag))
		}
	}
	return append(args, "--force-overwrite=true", "--output="+output), notes
}

// profileCommand returns nsys profile with a program, for windows that nsys opens by itself.
func profileCommand(n *Nsys, t *Trace, w *Window, output string, program []string) (argv, notes []string, err error) {
	base, notes, err := t.base(n, "profile")
	if err != nil {
		return nil, nil, err
	}
	rec, more := recording(n, t, "profile", output)
	argv = append(append([]string{n.Name, "profile"}, base...), rec...)
	notes = append(notes, more...)
	if w.Delay > 0 {
		argv = append(argv, "--delay="+seconds(w.Delay))
	}
	if w.Duration > 0 {
		argv = append(argv, "--duration="+seconds(w.Duration))
	}
	if w.NVTX != "" {
		for _, flag := range []string{"--capture-range", "--nvtx-capture", "--capture-range-end"} {
			if !n.has("profile", flag) {
				return nil, nil, n.missing("profile", flag)
			}
		}
		// Without the variable only registered strings open the window, and Python's NVTX registers none.
		argv = append(argv, "--capture-range=nvtx", "--nvtx-capture="+w.NVTX, "--capture-range-end=stop",
			"--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0")
	}
	return append(argv, program...), notes, nil
}

// launchCommand returns nsys launch with a program: it opens a session that does not record yet.
func launchCommand(n *Nsys, t *Trace, session string, program []string) (argv, notes []string, err error) {
	for _, flag := range []string{"--session-new", "--wait"} {
		if !n.has("launch", flag) {
			return nil, nil, n.missing("launch", flag)
		}
	}
	base, notes, err := t.base(n, "launch")
	if err != nil {
		return nil, nil, err
	}
	argv = append([]string{n.Name, "launch", "--session-new=" + session, "--wait=all"}, base...)
	return append(argv, program...), notes, nil
}

func startCommand(n *Nsys, t *Trace, session, output string) (argv, notes []string) {
	rec, notes := recording(n, t, "start", output)
	return append([]string{n.Name, "start", "--session=" + session}, rec...), notes
}

func stopCommand(n *Nsys, session string) []string {
	return []string{n.Name, "stop", "--session=" + session}
}

func shutdownCommand(n *Nsys, session string) []string {
	return []string{n.Name, "shutdown", "--session=" + session, "--kill=sigterm"}
}

// exportCommand returns the export to SQLite. --lazy=false also writes empty tables, to distinguish "none" from "not
// recorded". --include-blobs writes the payloads of ranges: sizes of NCCL messages, Python stacks.
func exportCommand(n *Nsys, report, sqlite string) []string {
	argv := []string{n.Name, "export", "--type=sqlite", "--lazy=false", "--force-overwrite=true"}
	if n.lists("export", "--include-blobs") {
		argv = append(argv, "--include-blobs=true")
	}
	return append(argv, "--output="+sqlite, report)
}

// seconds returns whole seconds, as nsys takes them: a fraction makes nsys 2022.4 ignore the flag.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

func base(dir string) string { return filepath.Join(dir, "trace") }
