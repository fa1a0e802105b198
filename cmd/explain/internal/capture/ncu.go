package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Kernels selects the kernels that Nsight Compute measures.
type Kernels struct {
	NCU   string // program
	Names string // regular expression over demangled names
	Skip  int64  // matching launches to skip first
	Count int64  // launches to measure
	NVTX  string // --nvtx-include: only inside these ranges; empty: everywhere
	Set   string // --set
}

// kernelRequests is the number of requests under Nsight Compute: few, since it runs each kernel many times.
const kernelRequests = 5

// Command returns the ncu command line, before the program; log is its output file.
func (k *Kernels) Command(log string) []string {
	argv := []string{k.NCU, "--target-processes", "all", "--set", k.Set}
	if k.NVTX != "" {
		argv = append(argv, "--nvtx", "--nvtx-include", k.NVTX)
	}
	return append(argv,
		"--kernel-name-base", "demangled", "--kernel-name", "regex:"+k.Names,
		"--launch-skip", strconv.FormatInt(k.Skip, 10),
		"--launch-count", strconv.FormatInt(k.Count, 10), "--csv", "--page", "raw", "--log-file", log)
}

// FindNCU checks, before anything is started, that ncu is installed.
func FindNCU(path string) (string, error) {
	full, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("%s is not installed here, or not on PATH: install Nsight Compute, name it with --ncu or $NCU, or use --mode quick", path)
	}
	return full, nil
}

// errNoKernels is what ncu prints if no kernel matched.
var errNoKernels = errors.New("no kernels were profiled")

// MeasureKernels starts the server under Nsight Compute, without CUDA graphs, and leaves ncu/raw.csv. If no kernel
// was measured inside the NVTX ranges, it tries again without them.
func (r *Run) MeasureKernels(j *Job, k Kernels) error {
	dir := filepath.Join(r.Dir, "ncu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.say("Starting the server again, to measure kernels with Nsight Compute (slow)")
	log := filepath.Join(dir, "raw.csv")
	slow := *j
	slow.Server = j.Server.Eager()
	err := r.measure(&slow, "ncu", &k, log)
	if errors.Is(err, errNoKernels) && k.NVTX != "" {
		r.Note(fmt.Sprintf("Nsight Compute measured no kernel inside the NVTX ranges %s: measured again without them",
			k.NVTX))
		k.NVTX = ""
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = r.measure(&slow, "ncu-again", &k, log)
	}
	if errors.Is(err, errNoKernels) {
		r.Note("Nsight Compute measured no kernel: the report covers the trace alone")
		return os.RemoveAll(dir)
	}
	return err
}

// measure runs the server under Nsight Compute, which writes into log. It returns errNoKernels if none was measured.
func (r *Run) measure(j *Job, name string, k *Kernels, log string) error {
	p, err := r.phase(j, name, 0)
	if err != nil {
		return err
	}
	p.profiler, p.load.Requests = k.Command(log), kernelRequests
	if err := r.plain(p); err != nil {
		return err
	}
	head, err := readHead(log, 64<<10) // ncu's messages and the header of its table
	if err != nil || bytes.Contains(head, []byte("No kernels were profiled")) ||
		!bytes.Contains(head, []byte(`"Kernel Name"`)) {
		return errNoKernels
	}
	return os.Chmod(log, 0o600)
}

// readHead returns the first bytes of a file, at most most.
func readHead(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// Target is a kernel of a report that is worth measuring with Nsight Compute.
type Target struct {
	name  string
	comm  bool
	share *float64 // of the kernel time
	total float64  // ns
	count int64
}

// Targets returns the kernels of a report that have metrics of their own, those with the most time first.
func Targets(r *report.Report) []Target {
	x := report.NewIndex(r)
	comm := map[string]bool{}
	kernels := x.Table("kernels", "kernels")
	for i := range kernels.Len() {
		name := kernels.Str(i, "kernel_name")
		comm[name] = comm[name] || kernels.Str(i, "category") == "comm"
	}
	all, _ := x.Value("kernel.total_time", nil)
	var list []Target
	for _, m := range x.Metrics("kernel.total_time") {
		name, ok := m.Labels["kernel"]
		if !ok || len(m.Labels) != 1 || m.Value == nil {
			continue
		}
		t := Target{name: name, comm: comm[name], total: *m.Value, count: m.N}
		if all > 0 {
			t.share = new(t.total / all)
		}
		list = append(list, t)
	}
	lists.Sort(list, func(a, b Target) int { return cmp.Compare(b.total, a.total) })
	return list
}

// Launches that Nsight Compute skips before it measures, and measurements of each kernel.
const (
	skipLaunches = 100
	perKernel    = 5
)

// Planned returns a run of Nsight Compute over n kernels that are not known yet.
func (k Kernels) Planned(n int) *Kernels {
	k.Names, k.Skip, k.Count = "KERNELS", skipLaunches, int64(perKernel*n)
	return &k
}

// Choose sets the kernels with the most time, at most top of them. It leaves out collectives: ncu runs a kernel several
// times, and a collective on one rank alone would wait forever. It returns false if no kernel is left.
func (k *Kernels) Choose(list []Target, top int) bool {
	var names []string
	launches := int64(0)
	for _, t := range list {
		if !t.comm && len(names) < top {
			names = append(names, nameExpression(t.name))
			launches += t.count
		}
	}
	k.Names = "^(" + strings.Join(names, "|") + ")$"
	k.Count = min(int64(perKernel*len(names)), launches)
	k.Skip = min(skipLaunches, (launches-k.Count)/2)
	return len(names) > 0
}

// cast matches a cast before a number, which only some versions print.
var cast = pattern.New(`\\\([A-Za-z_][A-Za-z0-9_: ]*\\\)(-?[0-9])`)

// longestTarget is how many characters of a name are matched.
const longestTarget = 2000

// nameExpression returns a regular expression that matches a name as any version of ncu prints it. Characters that a
// terminal cannot show match any character.
func nameExpression(name string) string {
	text := []rune(name)
	rest := ""
	if len(text) > longestTarget {
		text, rest = text[:longestTarget], ".*"
	}
	for i, r := range text {
		if render.Visible(string(r)) != string(r) {
			text[i] = 0
		}
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(string(text)), "\x00", ".")
	return cast().ReplaceAllString(quoted, `(\([^()]*\))?$1`) + rest
}

// TargetsYAML returns the list in the form of llm-perf-opt's extract-top-kernels, below the ncu command. Names are
// untrusted text: they stand in double quotes, with everything but plain ASCII escaped.
func TargetsYAML(list []Target) string {
	var b strings.Builder
	b.WriteString("# Kernels with most time, as explain report --ncu-targets found them. To measure them:\n#\n")
	line := cmp.Or(NCUCommand(list), "(nothing: all of them are kernels of collective communication)")
	b.WriteString("#   " + line + "\n#\n")
	if comm := lists.Count(list, func(t Target) bool { return t.comm }); comm > 0 {
		fmt.Fprintf(&b,
			"# The command leaves out %d of collective communication: run again on one rank, they would wait for "+
				"the others forever.\n", comm)
	}
	b.WriteString("kernels:\n")
	for i, t := range list {
		share := report.Of(t.share, func(s float64) string { return fmt.Sprintf("%.1f%%", s*100) }, "unknown")
		fmt.Fprintf(&b, "- name: %s\n  regex: %s\n  description: %s\n", strconv.QuoteToASCII(t.name),
			strconv.QuoteToASCII("^"+regexp.QuoteMeta(t.name)+"$"),
			strconv.QuoteToASCII(fmt.Sprintf("Kernel #%d - %s of GPU time, %d calls", i+1, share, t.count)))
	}
	return b.String()
}

// NCUCommand returns the ncu command as one line for a shell; empty if there is nothing to measure.
func NCUCommand(list []Target) string {
	k := Kernels{NCU: "ncu", Set: "full"}
	if !k.Choose(list, len(list)) {
		return ""
	}
	return strings.Join(lists.Map(k.Command("ncu.csv"), wording.ShellWord), " ") + " python your_server.py"
}
