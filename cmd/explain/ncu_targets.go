package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
)

func newNCUTargets(w *world) *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "ncu-targets TRACE",
		Short: "Write which kernels to measure with Nsight Compute, and the command that does it",
		Long: `ncu-targets lists the kernels that take most of a trace's kernel time: as YAML, in the form of llm-perf-opt's extract-top-kernels
(name, regex, description), with the ncu command that measures them in the comment above. TRACE may also be a report.json.

Kernels of collective communication are in the list and not in the command: ncu runs each kernel several times, and a collective that
runs again on one rank waits for the others forever.

With --out the YAML goes into a file, and the command to standard output, ready to be edited and run.`,
		Example: `  explain ncu-targets trace.sqlite --top 10
  explain ncu-targets trace.sqlite --top 5 --out kernels.yaml
  explain report trace.sqlite --ncu ncu.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one trace or report.json: explain ncu-targets TRACE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, w, args[0]) },
	}
	f.register(cmd)
	return cmd
}

// targetFlags are the flags of explain ncu-targets.
type targetFlags struct {
	captureFlags
	top int
	out string
}

func (f *targetFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.IntVar(&f.top, "top", 10, "list the `N` kernels with most time")
	fl.StringVarP(&f.out, "out", "o", "", "write the YAML into this `FILE`")
	f.captureFlags.register(cmd)
	_ = cmd.MarkFlagFilename("out", "yaml", "yml")
}

// target is a kernel to measure.
type target struct {
	name  string
	comm  bool
	share *float64 // of the kernel time
	total float64  // ns
	count int64
}

func (f *targetFlags) run(cmd *cobra.Command, w *world, path string) error {
	if f.top < 1 {
		return usagef("--top must be at least 1, got %d", f.top)
	}
	in, err := findInput(path)
	if err != nil {
		return err
	}
	if in.kind == summaryInput {
		return usagef("%s is a summary.json, which holds shortened names: name a trace or a report", path)
	}
	opt, err := f.options(w)
	if err != nil {
		return err
	}
	if err := f.fits([]input{in}); err != nil {
		return err
	}
	opt.Top = f.top
	bar := newProgress(w, f.quiet, f.verbose)
	res, err := readOne(cmd.Context(), in, opt, bar)
	bar.stop()
	if err != nil {
		return err
	}
	list := targets(res.Report)
	if len(list) == 0 {
		return fmt.Errorf("%s holds no kernels: there is nothing to measure (capture with --trace=cuda, and CUDA graphs by node)", path)
	}
	list = list[:min(f.top, len(list))]
	if f.out == "" {
		_, err := io.WriteString(w.Out, targetsYAML(list))
		return err
	}
	if err := writeWhole(f.out, func(to io.Writer) error { _, err := io.WriteString(to, targetsYAML(list)); return err }); err != nil {
		return err
	}
	if line := ncuCommand(list); line != "" && !f.quiet {
		_, err = fmt.Fprintln(w.Out, line)
	}
	return err
}

// targets are the kernels of a report that have metrics of their own, the one with most time first.
func targets(r *report.Report) []target {
	var list []target
	comm := map[string]bool{}
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			if t := &r.Sections[i].Tables[j]; t.ID == "kernels" {
				communication(t, comm)
			}
		}
	}
	var all *float64
	if m := r.Find("kernel.total_time", nil); m != nil {
		all = m.Value
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		name, ok := m.Labels["kernel"]
		if m.ID != "kernel.total_time" || !ok || len(m.Labels) != 1 || m.Value == nil {
			continue
		}
		t := target{name: name, comm: comm[name], total: *m.Value, count: m.N}
		if all != nil && *all > 0 {
			share := t.total / *all
			t.share = &share
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b target) int { return cmp.Compare(b.total, a.total) })
	return list
}

// communication names the kernels of a table whose category is communication.
func communication(t *report.Table, comm map[string]bool) {
	column := func(id string) int {
		return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
	}
	name, category := column("kernel_name"), column("category")
	if name < 0 || category < 0 {
		return
	}
	for _, row := range t.Rows {
		n, _ := row[name].Str()
		if c, _ := row[category].Str(); c == "comm" {
			comm[n] = true
		}
	}
}

// targetsYAML is the list as llm-perf-opt's extract-top-kernels writes it, under the command. Names are hostile text: they stand in
// double quotes, with everything but plain ASCII escaped.
func targetsYAML(list []target) string {
	var b strings.Builder
	b.WriteString("# Kernels with most time, as explain ncu-targets found them. To measure them:\n#\n")
	line, comm := ncuCommand(list), 0
	for i := range list {
		if list[i].comm {
			comm++
		}
	}
	if line == "" {
		line = "(nothing: all of them are kernels of collective communication)"
	}
	b.WriteString("#   " + line + "\n#\n")
	if comm > 0 {
		fmt.Fprintf(&b, "# The command leaves out %d of collective communication: run again on one rank, they would wait for the others forever.\n", comm)
	}
	b.WriteString("kernels:\n")
	for i := range list {
		t := &list[i]
		share := "unknown"
		if t.share != nil {
			share = strconv.FormatFloat(*t.share*100, 'f', 1, 64) + "%"
		}
		fmt.Fprintf(&b, "- name: %s\n  regex: %s\n  description: %s\n", strconv.QuoteToASCII(t.name), strconv.QuoteToASCII("^"+regexp.QuoteMeta(t.name)+"$"),
			strconv.QuoteToASCII(fmt.Sprintf("Kernel #%d - %s of GPU time, %d calls", i+1, share, t.count)))
	}
	return b.String()
}

// Launches that the command lets pass before it measures, and measures of each kernel.
const (
	skipLaunches = 100
	perKernel    = 5
)

// ncuCommand is one line for a shell; empty where there is nothing to measure.
func ncuCommand(list []target) string {
	var names []string
	launches := int64(0)
	for i := range list {
		if !list[i].comm {
			names = append(names, nameExpression(list[i].name))
			launches += list[i].count
		}
	}
	if len(names) == 0 {
		return ""
	}
	count := min(int64(perKernel*len(names)), launches)
	skip := min(skipLaunches, (launches-count)/2)
	return "ncu --target-processes all --set full --kernel-name-base demangled --kernel-name " + shellQuote("regex:^("+strings.Join(names, "|")+")$") +
		fmt.Sprintf(" --launch-skip %d --launch-count %d --csv --page raw --log-file ncu.csv python your_server.py", skip, count)
}

// cast is a cast before a number, which some versions print and others do not.
var cast = regexp.MustCompile(`\\\([A-Za-z_][A-Za-z0-9_: ]*\\\)(-?[0-9])`)

// longestTarget is how many characters of a name are matched.
const longestTarget = 2000

// nameExpression is a regular expression for a name, whichever version of ncu prints it. What cannot stand in a line of a terminal is any
// character.
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
	return cast.ReplaceAllString(quoted, `(\([^()]*\))?$1`) + rest
}

// shellQuote quotes for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
