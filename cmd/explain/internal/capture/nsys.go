package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Nsys is an installed Nsight Systems.
type Nsys struct {
	Name    string // name for commands
	Path    string // where it is
	Version string // as nsys prints it, without the words before
	year    int
	flags   map[string]map[string]bool // flags by command
}

// The oldest version that can capture. Older ones write .qdrep files and lack flags that a capture of a server needs.
const oldestYear, oldestMinor = 2021, 4

// probeLimit bounds nsys --version and --help. nsys examines the machine first, which takes seconds on some.
const probeLimit = 60 * time.Second

var (
	versionText = pattern.New(`[Vv]ersion\s+((\d{4})\.(\d+)[0-9A-Za-z.\-]*)`)
	helpFlag    = pattern.New(`(?m)^\s*(?:\([A-Za-z ]+\)\s*)?(?:-[A-Za-z],\s*)?(--[a-z][a-z0-9-]*[a-z0-9])`)
)

// FindNsys asks the installed nsys for its version and its flags. path may be a name on PATH.
func FindNsys(ctx context.Context, path string) (*Nsys, error) {
	full, err := exec.LookPath(path)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %s", path, ErrNotInstalled, remedy(runtime.GOOS))
	}
	if err := refuse(runtime.GOOS); err != nil {
		return nil, err
	}
	out, err := ask(ctx, full, "--version")
	if err != nil {
		return nil, fmt.Errorf("%s --version failed: %w; is it the nsys of Nsight Systems?", path, err)
	}
	m := versionText().FindStringSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf(
			"%s --version does not say which version of Nsight Systems it is; name another with --nsys or $NSYS", path)
	}
	n := &Nsys{Name: path, Path: full, Version: m[1], flags: map[string]map[string]bool{}}
	n.year, _ = strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	if n.year < oldestYear || n.year == oldestYear && minor < oldestMinor {
		return nil, fmt.Errorf(
			"nsys %s is too old: explain capture needs %d.%d or later, and 2022.4 for CUDA graphs; name a newer one with --nsys or $NSYS",
			n.Version, oldestYear, oldestMinor)
	}
	for _, command := range []string{"profile", "launch", "start", "export"} {
		text, err := ask(ctx, full, command, "--help")
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if found := helpFlags(text); err == nil && len(found) >= 10 {
			n.flags[command] = found
		}
	}
	return n, nil
}

// remedy tells the user of a system, as Go names it, what to do if nothing can be recorded.
func remedy(goos string) string {
	if goos != "linux" {
		return "nsys records servers on Linux: run explain capture there, and read the .sqlite file here"
	}
	return "install Nsight Systems 2022.4 or later, load the CUDA module that has it, or name it with --nsys or $NSYS"
}

// refuse returns an error for systems without signals to end a recording with.
func refuse(goos string) error {
	if goos == "windows" {
		return errors.New("explain capture does not run on Windows: " + remedy(goos))
	}
	return nil
}

// ErrNotInstalled is wrapped by FindNsys if it found no nsys.
var ErrNotInstalled = errors.New("is not installed here, or not on PATH")

// Newest returns the version that plans assume if no nsys is installed.
func Newest() *Nsys { return &Nsys{Name: "nsys", Version: "2026.1", year: 2026} }

func helpFlags(text string) map[string]bool {
	found := lists.Set(helpFlag().FindAllStringSubmatch(text, -1), func(m []string) string { return m[1] })
	for _, value := range []string{pythonGIL, softwareCUDA} {
		if strings.Contains(text, value) {
			found[value] = true
		}
	}
	return found
}

// Values of --trace that only newer versions know.
const (
	pythonGIL    = "python-gil"
	softwareCUDA = "cuda-sw" // since 2025.6, where cuda is traced by hardware if the GPU can
)

func ask(ctx context.Context, path string, args ...string) (string, error) {
	most := limit.Wait(probeLimit)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return "", limit.Late("it", most)
	}
	return string(out), err
}

// has reports whether a command of nsys has a flag. If its help could not be read, versions since 2022 count as having
// every flag that explain uses, and older ones all except --cuda-graph-trace.
func (n *Nsys) has(command, flag string) bool {
	if known, ok := n.flags[command]; ok {
		return known[flag]
	}
	return n.year >= 2022 || flag != "--cuda-graph-trace"
}

// lists reports whether the help of a command names a flag, or one of the values above.
func (n *Nsys) lists(command, flag string) bool { return n.flags[command][flag] }

// importerName is the program that turns a raw stream (.qdstrm) into a report. nsys runs it if it finds it; Debian's
// packages separate the two, and nsys leaves the raw stream.
const importerName = "QdstrmImporter"

// findImporter looks for the importer: $QDSTRM_IMPORTER, PATH, then the host folders beside nsys at each step of its
// symbolic links, and the usual places of an installation. It returns "" if there is none.
func findImporter(nsys string, getenv func(string) string) string {
	if p := getenv("QDSTRM_IMPORTER"); p != "" {
		return p
	}
	if p, err := exec.LookPath(importerName); err == nil {
		return p
	}
	var places []string
	for hop, n := nsys, 0; hop != "" && n < 16; n++ {
		dir := filepath.Dir(hop)
		for range 4 {
			places = append(places, filepath.Join(dir, "host-linux-*"),
				filepath.Join(dir, "nsight-systems", "host-linux-*"),
				filepath.Join(dir, "lib", "nsight-systems", "host-linux-*"))
			dir = filepath.Dir(dir)
		}
		next, err := os.Readlink(hop)
		if err == nil && !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(hop), next)
		}
		hop = next
	}
	places = append(places, "/usr/lib/nsight-systems/host-linux-*", "/opt/nvidia/nsight-systems/*/host-linux-*",
		"/opt/nvidia/nsight-systems-cli/*/host-linux-*")
	for _, p := range places {
		found, _ := filepath.Glob(filepath.Join(p, importerName))
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && !info.IsDir() {
				return f
			}
		}
	}
	return ""
}

// captured returns what nsys left: the report, or a raw stream; both are empty if it left nothing.
func captured(dir string) (report, stream string) {
	if report = base(dir) + ".nsys-rep"; filled(report) {
		return report, ""
	}
	if stream = base(dir) + ".qdstrm"; filled(stream) {
		return "", stream
	}
	// With several ranges or processes, nsys numbers the reports: trace.1.nsys-rep.
	entries, _ := os.ReadDir(dir) // what can be read of it: a recording must not be overlooked
	for _, e := range entries {
		if numbered, _ := filepath.Match("trace.*.nsys-rep", e.Name()); numbered {
			return filepath.Join(dir, e.Name()), ""
		}
	}
	return "", ""
}

// filled reports whether a file is there and not empty.
func filled(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// recorded reports whether nsys left anything in a folder.
func recorded(dir string) bool {
	report, stream := captured(dir)
	return report+stream != ""
}
