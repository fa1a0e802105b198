// Package whatif computes how long steps would take at least if something were faster or gone: it compiles changes that
// users name into a change of the dependency graph, replays the capture with it, and sums up over the units of work.
// The result is a ceiling of the gain: a real change seldom reaches it.
package whatif

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Kind is a kind of change, named like the flag that asks for it.
type Kind string

// Kinds of change.
const (
	Remove   Kind = "remove"
	Speedup  Kind = "speedup"
	NoSync   Kind = "no-sync"
	Overlap  Kind = "overlap"
	HostFree Kind = "host-free"
	Graph    Kind = "graph"
)

// Change is one hypothetical change.
type Change struct {
	Kind   Kind
	Text   string // argument of the flag: kernel:GLOB, category:NAME, copy:GLOB or api:GLOB, with =FACTORx to speed up
	what   string
	match  *regexp.Regexp
	factor float64 // share of the time that remains
}

// String formats the change as --what-if takes it.
func (c *Change) String() string {
	if c.Text == "" {
		return "--" + string(c.Kind)
	}
	return "--" + string(c.Kind) + " " + c.Text
}

const selectors = "kernel:GLOB, category:NAME, copy:GLOB or api:GLOB"

// Parse parses a change. text is empty for kinds that take none.
func Parse(kind Kind, text string) (Change, error) {
	c := Change{Kind: kind, Text: text}
	what, pattern := "api", text
	switch kind {
	case HostFree, Graph:
		return c, nil
	case Overlap:
		if text != "comm" {
			return c, fmt.Errorf("--overlap %s: only comm can be overlapped", text)
		}
		return c, nil
	case NoSync:
	case Speedup:
		at := strings.LastIndexByte(text, '=')
		if at < 0 {
			return c, fmt.Errorf("--speedup %s: say by how much, as in category:gemm=2x", text)
		}
		by, err := strconv.ParseFloat(strings.TrimSuffix(text[at+1:], "x"), 64)
		if err != nil || !(by > 0) || math.IsInf(by, 0) {
			return c, fmt.Errorf("--speedup %s: %q is not a factor above 0, such as 2x", text, text[at+1:])
		}
		c.factor, pattern = 1/by, text[:at]
		fallthrough
	case Remove:
		var ok bool
		what, pattern, ok = strings.Cut(pattern, ":")
		if !ok || !slices.Contains([]string{"kernel", "category", "copy", "api"}, what) {
			return c, fmt.Errorf("--%s %s: say of what: %s", kind, text, selectors)
		}
	}
	if pattern == "" {
		return c, fmt.Errorf("--%s %s: the pattern is empty; * matches everything", kind, text)
	}
	if what == "category" && !strings.ContainsAny(pattern, "*?") &&
		!slices.Contains(kernelname.Categories, kernelname.Category(pattern)) {
		return c, fmt.Errorf("--%s %s: there is no category %q", kind, text, pattern)
	}
	c.what, c.match = what, glob(pattern)
	return c, nil
}

// glob is a pattern in which * stands for any text and ? for one character; case does not matter.
func glob(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\*`, ".*"), `\?`, ".")
	return regexp.MustCompile("(?is)^" + text + "$")
}

// Input is a capture with its analysis.
type Input struct {
	Trace *trace.Trace
	Graph *stepgraph.Graph
	Kinds []kernelname.Info // by kernel name
	Name  func(d *timeline.Device, i int32) string
}

var errNothing = errors.New("matches nothing in the capture")

// Compile combines changes into one change of the graph. A pattern that matches nothing is an error.
func (in *Input) Compile(changes []Change) (*stepgraph.Change, error) {
	out := &stepgraph.Change{}
	var work, calls, waits []*Change
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case HostFree:
			out.HostFree = true
		case Graph:
			out.Graph = true
		case Overlap:
			out.Overlap = true
		case NoSync:
			waits = append(waits, c)
		case Remove, Speedup:
			if c.what == "api" {
				calls = append(calls, c)
			} else {
				work = append(work, c)
			}
		}
	}
	if err := in.compileWork(work, out); err != nil {
		return nil, err
	}
	names := in.Trace.API.Names
	factor, err := byName(calls, names)
	if err != nil {
		return nil, err
	}
	if factor != nil {
		out.Call = func(name int32) float64 { return factor[name] }
	}
	free, err := byName(waits, names)
	if err != nil {
		return nil, err
	}
	if free != nil {
		out.NoWait = func(call int32) bool { return free[in.Trace.API.Name(int(call))] == 0 }
	}
	return out, nil
}

// byName returns the remaining share of the time of calls, by index of the name; nil if there is no change.
func byName(changes []*Change, names []trace.APIName) ([]float64, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	list := slices.Repeat([]float64{1}, len(names))
	for _, c := range changes {
		found := false
		for n := range names {
			if c.match.MatchString(names[n].Name) {
				list[n], found = list[n]*c.factor, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s %w: no CUDA call has this name", c, errNothing)
		}
	}
	return list, nil
}

// directions are the usual names of copy kinds.
var directions = map[int]string{1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}

// compileWork evaluates the remaining share of the time once for each name of work.
func (in *Input) compileWork(changes []*Change, out *stepgraph.Change) error {
	if len(changes) == 0 {
		return nil
	}
	kernels := in.Trace.Kernels.Names
	found := make([]bool, len(changes))
	names := slices.Repeat([]float64{1}, len(kernels))
	for n := range names {
		k := &in.Kinds[n]
		for i, c := range changes {
			if c.what == "category" && c.match.MatchString(string(k.Category)) || c.what == "kernel" &&
				(c.match.MatchString(k.Display) || c.match.MatchString(k.Canonical) || c.match.MatchString(kernels[n].Name) ||
					c.match.MatchString(kernels[n].Short)) {
				names[n], found[i] = names[n]*c.factor, true
			}
		}
	}
	others := map[string]float64{} // by displayed name
	other := func(d *timeline.Device, i int) float64 {
		name := in.Name(d, int32(i))
		f, ok := others[name]
		if ok {
			return f
		}
		f = 1
		for at, c := range changes {
			plain := "memset"
			switch d.Kind(i) {
			case timeline.CopyWork:
				plain = directions[in.Trace.Copies.Kind(d.Row(i))]
			case timeline.GraphWork:
				plain = ""
			case timeline.KernelWork, timeline.SetWork:
			}
			if c.what == "kernel" && c.match.MatchString(name) || c.what == "copy" && plain != "" && c.match.MatchString(plain) {
				f, found[at] = f*c.factor, true
			}
		}
		others[name] = f
		return f
	}
	tl := in.Graph.Timeline
	for _, device := range tl.Devices {
		for i := range device.Len() {
			if device.Kind(i) != timeline.KernelWork {
				other(device, i)
			}
		}
	}
	for i, c := range changes {
		if !found[i] {
			return fmt.Errorf("%s %w: no work has this name", c, errNothing)
		}
	}
	out.Work = func(d *timeline.Device, i int) float64 {
		if d.Kind(i) == timeline.KernelWork {
			return names[in.Trace.Kernels.Name(d.Row(i))]
		}
		return other(d, i)
	}
	return nil
}
