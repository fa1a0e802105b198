// Package whatifcmd is explain whatif.
package whatifcmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// New is explain whatif.
func New(e *cmdenv.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "whatif TRACE",
		Short: "Say how much a step could gain at most if something were faster or removed",
		Long: `whatif replays every step of a capture with a change: all work starts as soon as everything it waits
for is done (its launch, its stream, events, collectives, calls of the host), with the measured
latencies. The result is an upper bound of the gain: a real change rarely reaches it, and costs
elsewhere are not included.

Several changes are shown together and one by one. Without any, whatif shows the usual ones.

SELECTOR is one of
  kernel:GLOB    kernels by name, as displayed or in full; also "[CUDA memset]", "[CUDA memcpy …]"
  category:NAME  kernels by category, see "explain doc categories"
  copy:GLOB      copies: HtoD, DtoH, DtoD, PtoP, memset
  api:GLOB       CUDA calls: their own time, without waiting

Exit codes: 0 done, 2 wrong usage or a pattern that matches nothing, 3 input that cannot be analysed,
4 no unit of work to replay.`,
		Example: `  explain whatif trace.sqlite
  explain whatif trace.sqlite --speedup 'category:gemm=2x'
  explain whatif trace.sqlite --remove 'kernel:*memset*' --no-sync cudaStreamSynchronize
  explain whatif trace.sqlite --host-free --overlap comm --format json`,
		Args: cmdenv.Args(1, 1, "name one trace: explain whatif TRACE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.remove, "remove", nil, "remove this work or these calls, a `SELECTOR`")
	fl.StringArrayVar(&f.speedup, "speedup", nil, "make this work or these calls faster: `SELECTOR=2x`")
	fl.StringArrayVar(&f.noSync, "no-sync", nil, "calls whose names match this `GLOB` no longer wait for the GPU")
	fl.StringArrayVar(&f.overlap, "overlap", nil, "`comm`: communication runs beside everything else")
	fl.BoolVar(&f.hostFree, "host-free", false, "the host takes no time, except where it waits for the GPU")
	fl.BoolVar(&f.graph, "graph", false,
		"launches between two waits become one, as in a CUDA graph: saves their calls and latencies, nothing else")
	cmdenv.FormatFlag(cmd, &f.format, formats)
	f.analysis.RegisterFor(cmd, "")
	cmdenv.Complete(cmd, "overlap", []string{"comm"})
	return cmd
}

type flags struct {
	analysis                         cmdenv.AnalysisFlags
	remove, speedup, noSync, overlap []string
	hostFree, graph                  bool
	format                           string
}

// formats of --format, in the order of the help text.
var formats = []string{"text", "md", "json"}

// scenarios are all changes together and, of several, each by itself.
func (f *flags) scenarios() ([][]analyze.Change, error) {
	var all []analyze.Change
	var wrong error // the first
	add := func(kind string, texts ...string) {
		for _, text := range texts {
			c, err := analyze.ParseChange(kind, text)
			all, wrong = append(all, c), cmp.Or(wrong, err)
		}
	}
	add("remove", f.remove...)
	add("speedup", f.speedup...)
	add("no-sync", f.noSync...)
	add("overlap", f.overlap...)
	if f.hostFree {
		add("host-free", "")
	}
	if f.graph {
		add("graph", "")
	}
	list := slices.Collect(slices.Chunk(all, 1))
	if len(all) > 1 {
		list = slices.Insert(list, 0, all)
	}
	return list, wrong
}

func (f *flags) run(cmd *cobra.Command, e *cmdenv.Env, path string) error {
	if err := cmdenv.Format(cmp.Or(f.format, "text"), formats); err != nil {
		return err
	}
	scenarios, err := f.scenarios()
	if err != nil {
		return err
	}
	in, err := input.Find(path)
	if err != nil {
		return err
	}
	if in.Kind != input.Trace {
		return usage.Errorf("%s holds numbers and no events to replay: name the trace that it was made of", path)
	}
	opt, err := f.analysis.Options(e, 1)
	if err != nil {
		return err
	}
	path, _ = output.TraceIn(in.Path)
	cmdenv.HoldMemory(path)
	bar := progress.New(e.Err, f.analysis.Quiet, f.analysis.Verbose)
	opt.Progress = bar.Update
	res, err := analyze.WhatIf(cmd.Context(), path, scenarios, opt)
	bar.Stop()
	if none, ok := errors.AsType[*analyze.NoUnitError](err); ok {
		fmt.Fprintf(e.Err, "explain: %s\n", render.Visible(none.Error()))
		return cmdenv.Exit(cmdenv.Inconclusive)
	}
	if err != nil {
		return err
	}
	switch f.format {
	case "json":
		enc := json.NewEncoder(e.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(res)
	case "md":
		return render.Markdown(e.Out, page(res, len(scenarios) > 0), render.MarkdownOptions{})
	}
	return render.Terminal(e.Out, page(res, len(scenarios) > 0), render.TerminalOptions{Color: e.Coloured()})
}

// remedies are what brings a change about in practice, by its flag.
var remedies = []struct{ flag, text string }{
	{"--host-free", "torch.compile, asynchronous scheduling, less Python in a step"},
	{"--graph", "capture the step as a CUDA graph (vLLM: without --enforce-eager)"},
	{"--speedup", "another back end, fused or quantised kernels"},
	{"--no-sync", "keep values on the GPU (no .item()), copy from pinned memory with non_blocking=True, wait for the step before"},
	{"--overlap", "communication on a stream of its own, beside independent kernels"},
}

// worthwhile is the share of a step from which a change is worth offering.
const worthwhile = 0.001

// gains reports whether steps of some kind would gain from the scenario.
func gains(r *analyze.WhatIfResult, scenario int) bool {
	for _, x := range r.Scenarios[scenario].Steps {
		if x.Gain > 0 && x.Gain >= worthwhile*x.Time {
			return true
		}
	}
	return false
}

// remediesOf lists the remedies for the changes that gain something by themselves.
func remediesOf(r *analyze.WhatIfResult) (l doc.List) {
	useful := map[string]bool{}
	for i, s := range r.Scenarios {
		if len(s.Changes) == 1 && gains(r, i) {
			flag, _, _ := strings.Cut(s.Changes[0], " ")
			useful[flag] = true
		}
	}
	for _, re := range remedies {
		if useful[re.flag] {
			l.Add(doc.Name(re.flag), ": "+re.text)
		}
	}
	return l
}

// page is what explain whatif prints; of changes that were not asked for, only those that gain something.
func page(r *analyze.WhatIfResult, asked bool) doc.Document {
	var d doc.Document
	d.Add(doc.H(1, "whatif", "How much a step could gain at most"))
	two := "."
	if r.Unit.Two != "" {
		two = "; " + r.Unit.Two + ", so a mean stands for neither."
	}
	d.Add(doc.P(doc.Name(r.Trace), ": a step is ", doc.Name(stepName(r)), two))
	t := doc.Table{ID: "ceilings", Columns: doc.Cols("Change", "Step", ">Steps", ">Mean", ">Gain", ">Up to")}
	t.Columns[0].Whole = true
	var useless []string
	for i, s := range r.Scenarios {
		if !asked && !gains(r, i) {
			useless = append(useless, strings.Join(s.Changes, " "))
			continue
		}
		for k, x := range s.Steps {
			change := doc.Cell{}
			if k == 0 {
				change = doc.Cell{doc.Name(strings.Join(s.Changes, " "))}
			}
			gain := unit.Format(x.Gain, "ns")
			if x.Time > 0 {
				gain += " (" + unit.Percent(x.Gain/x.Time) + ")"
			}
			if !s.Replayed {
				gain += ", not replayed"
			}
			t.Row(change, doc.Name(kindOfSteps(x.Phase, x.Batch, x.Tokens)), unit.Int(x.N),
				unit.Format(x.Time, "ns"), gain, unit.Format(x.UpTo, "ns"))
		}
	}
	d.Add(t, remediesOf(r))
	if len(useless) > 0 {
		d.Add(doc.P("Tried, and worth less than " + unit.Percent(worthwhile) + " of any step: " + strings.Join(useless, ", ") + "."))
	}
	p := &r.Replay
	fit := "The replay with typical latencies is " + unit.Percent(p.Error) + " off the measured steps (median). Host, calls and " +
		"latencies are " + unit.Percent(p.OnHost) + " of the critical path. Removing host calls and launch latencies too would gain " +
		unit.Percent(p.Bare) + ", which should be about as much. " + unit.Percent(p.Unknown) + " of the path is unknown."
	if p.Unlaunched > 0 {
		fit += " What launched " + unit.Percent(p.Unlaunched) + " of the GPU work is not known."
	}
	if p.Fits {
		d.Add(doc.P("The gain is the mean over the steps of "+judged(r)+", whose median step is the longest; "+
			"a real change rarely reaches it; up to is the upper end of its 95 % interval. Gains overlap: "+
			"do not add them. A finding of a report is worth no more than the time that it is about (idle time "+
			"after waits, exposed communication), so it can be worth less."), doc.P(fit))
	} else {
		d.Add(doc.Note{Kind: doc.Caution,
			Blocks: []doc.Block{doc.P("The graph of dependencies does not fit: the capture lacks a part of what held steps back. So nothing is " + "replayed: a change is worth the time on the GPU that nothing else covers, or, of the host, the idle time. " + fit)}})
	}
	d.Add(doc.P(p.Waits))
	if p.Unresolved > 0 {
		d.Add(doc.P(wording.Count(p.Unresolved, "wait") + " of streams for events could not be resolved."))
	}
	return d
}

// judged names the GPU of the main kind of steps.
func judged(r *analyze.WhatIfResult) string {
	for i := range r.Scenarios {
		if steps := r.Scenarios[i].Steps; len(steps) > 0 {
			return "GPU " + unit.Int(steps[0].Device)
		}
	}
	return "the GPU"
}

func stepName(r *analyze.WhatIfResult) string {
	return strings.TrimSpace(r.Unit.Kind + " " + r.Unit.Name)
}

// kindOfSteps is the kind of steps in words.
func kindOfSteps(phase string, batch, tokens *int64) string {
	text := phase
	if batch != nil {
		text += fmt.Sprintf(" bs=%d", *batch)
	}
	if tokens != nil {
		text += fmt.Sprintf(" tokens=%d", *tokens)
	}
	return text
}
