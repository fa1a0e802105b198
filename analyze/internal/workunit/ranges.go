package workunit

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of finding units by the program's own ranges.
const (
	minMembers   = 3       // ranges of a family with GPU work
	minAlike     = 0.8     // of these, with the same kernels
	minFamily    = 0.5     // of the time and of the kernels of all GPU work, launched inside
	minOther     = 0.4     // the same, to be the units where another capture is cut into them
	maxSelfInner = 0.05    // of a family's ranges that may be inside another one of the family
	sampledWork  = 1 << 15 // pieces of work in a first look
	sampleError  = 5       // error of a sample, times the square root of its size: ten standard deviations
)

// family is the ranges whose names differ only in numbers.
type family struct {
	id      int32
	text    string
	ranges  int
	worked  int
	alike   int // with the most frequent work
	inner   int // inside another of the family
	depth   int64
	launch  int64   // GPU time launched inside
	kernels int64   // likewise
	share   float64 // of the time or the kernels of all GPU work, the smaller one
}

var numbers = regexp.MustCompile("[0-9#]+")

// fold replaces every number in a name by #.
func fold(text string) string { return numbers.ReplaceAllLiteralString(text, "#") }

// libraries are the prefixes of ranges that libraries put around their own calls.
var libraries = []string{
	"cublas", "cudnn", "cusparse", "cusolver", "cufft", "nccl", "NCCL", "thrust", "autograd", "Optimizer.",
}

// Library returns the prefix that marks the name of a library's own range; empty for any other name.
func Library(name string) string {
	for _, prefix := range libraries {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// own reports whether a range's name may be the program's own, not an operator's or a library's.
func own(text string) bool { return text != "" && !strings.Contains(text, "::") && Library(text) == "" }

// ownRanges are the families of the program's own ranges that may be units, the outermost first.
type ownRanges struct {
	ofName []int32 // family, by range name; -1: none
	list   []*family
	all    int64 // time of all GPU work, ns
}

// rangesOf looks for families of ranges that hold much of the GPU work.
func rangesOf(f *Search) *ownRanges {
	if f.own != nil {
		return f.own
	}
	r := &f.Trace.Ranges
	f.own = &ownRanges{ofName: make([]int32, len(r.Names))}
	var texts lists.Numbering[string]
	for i := range r.Names {
		f.own.ofName[i] = -1
		if text := fold(r.Names[i].Text); own(text) {
			f.own.ofName[i] = texts.Of(text)
		}
	}
	families := make([]family, len(texts.Keys))
	for i, text := range texts.Keys {
		families[i] = family{id: int32(i), text: text}
	}
	all, kernels := familyWork(f.Input, &f.names, f.own.ofName, families)
	f.own.all = max(all, 1)
	for i := range families {
		x := &families[i]
		x.share = min(float64(x.launch)/float64(f.own.all), float64(x.kernels)/float64(max(kernels, 1)))
		if x.worked >= minMembers && x.share >= minOther && float64(x.inner) <= maxSelfInner*float64(x.ranges) {
			f.own.list = append(f.own.list, x)
		}
	}
	slices.SortFunc(f.own.list, func(x, y *family) int {
		deeper := cmp.Compare(x.depth*int64(y.ranges), y.depth*int64(x.ranges))
		return cmp.Or(deeper, cmp.Compare(y.launch, x.launch), cmp.Compare(x.text, y.text))
	})
	return f.own
}

// byRanges finds units by the program's own ranges: the outermost family of three or more, of which four in five launch
// the same kernels, and which holds half of the GPU work.
func (f *Search) byRanges() *Result {
	for _, x := range rangesOf(f).list {
		if x.share < minFamily || float64(x.alike) < minAlike*float64(x.worked) {
			continue
		}
		if r := x.units(f); r != nil {
			return r
		}
	}
	return nil
}

// units makes units of the ranges of a family; nil if these cannot be units.
func (x *family) units(f *Search) *Result {
	set := markersOf(f.Trace, func(name int32) bool { return f.own.ofName[name] == x.id }, func(int32) bool { return false })
	phase := cmp.Or(kernelname.BuiltinPhase(x.text), "step")
	set.group(f.Input, func(int32) Group { return Group{Phase: phase, Batch: -1, Tokens: -1} })
	r := f.markerUnits(set, x.text)
	if len(r.Units) < minMarkers || !f.sound(r) {
		return nil
	}
	r.Why = fmt.Sprintf("no step marker; ranges of the program itself, %s: %d of %d with GPU work launch the same kernels, %.2f of the GPU work together; a unit is the work launched in one, and lasts until the first work of the next",
		x.text, x.alike, x.worked, float64(x.launch)/float64(f.own.all))
	r.Anchors = []Anchor{x.anchor()}
	return r
}

// anchor tells another capture of these ranges.
func (x *family) anchor() Anchor {
	return Anchor{Names: []string{x.text}, Ranges: true, Coverage: min(1, x.share), Count: x.worked}
}

// otherAnchors are anchors of units that are nearly this capture's. In another capture of the program they may be the
// units: a family of ranges and, beside units by ranges, places in the kernel sequence.
func otherAnchors(f *Search, r *Result) (list []Anchor) {
	if len(r.Anchors) == 0 {
		return nil
	}
	other := func(x **family) bool { return r.Kind != KindNVTX || (*x).text != r.Name }
	if x := lists.Find(rangesOf(f).list, other); x != nil {
		list = append(list, (*x).anchor())
	}
	if r.Kind == KindNVTX {
		list = append(list, f.bySequence().Anchors...)
		f.of.free()
	}
	return list
}

// familyWork sums up what the ranges of each family launched, and returns the time (ns) and the number of kernels of
// all GPU work; both are 0 if no family can be the unit.
func familyWork(in *Input, names *symbols, ofName []int32, families []family) (all, kernels int64) {
	r, memory := &in.Trace.Ranges, in.Trace.Memory()
	list := lists.Where(r.Len(), func(i int32) bool { // by start
		return ofName[r.Name(int(i))] >= 0 && r.Thread(int(i)) != trace.None
	})
	if len(list) == 0 {
		return 0, 0
	}
	around := nest(in.Trace, list)
	depth, hash := make([]uint16, len(list)), spill.Make[uint64](memory, len(list))
	defer spill.Free(memory, hash)
	for k, i := range list {
		hash[k] = 0
		x := &families[ofName[r.Name(int(i))]]
		if up := around[k]; up >= 0 {
			depth[k] = min(depth[up], maxDepth-1) + 1
		}
		x.ranges++
		x.depth += int64(depth[k])
		for up, n := around[k], 0; up >= 0 && n < maxDepth; up, n = around[up], n+1 {
			if ofName[r.Name(int(list[up]))] == ofName[r.Name(int(i))] && r.End(int(list[up])) >= r.End(int(i)) {
				x.inner++
				break
			}
		}
	}
	open := newOpener(in.Trace, list).longest()
	// launchers visits the families of the ranges around the call that launched a piece of work, each once.
	launchers := func(device *timeline.Device, w int, visit func(k int32)) {
		call := device.Call(w)
		if call == trace.None {
			return
		}
		end := in.Trace.API.End(int(call))
		last := int32(-1)
		for k, n := open.before(call), 0; k >= 0 && n < maxDepth; k, n = around[k], n+1 {
			i := int(list[k])
			if family := ofName[r.Name(i)]; family != last && r.End(i) >= end {
				last = family
				visit(k)
			}
		}
	}
	if !anyLarge(in.Timeline, len(families), func(device *timeline.Device, w int, visit func(family int32)) {
		launchers(device, w, func(k int32) { visit(ofName[r.Name(int(list[k]))]) })
	}) {
		return 0, 0
	}
	for _, device := range in.Timeline.Devices {
		for w := range device.Len() {
			time := device.End(w) - device.Start(w)
			all += time
			var name uint64
			var kernel int64
			if isKernel(device, w) {
				name, kernel = names.hash[names.at(device, w)], 1
			}
			kernels += kernel
			launchers(device, w, func(k int32) {
				x := &families[ofName[r.Name(int(list[k]))]]
				x.launch += time
				x.kernels += kernel
				hash[k] += name
			})
		}
	}
	members := make([][]int32, len(families))
	for k, i := range list {
		if hash[k] != 0 {
			of := ofName[r.Name(int(i))]
			families[of].worked++
			members[of] = append(members[of], int32(k))
		}
	}
	for i := range families {
		x := &families[i]
		if x.worked < minMembers || float64(x.launch) < minOther*float64(all) {
			continue
		}
		counts := map[uint64]int{}
		for _, k := range members[i] {
			counts[hash[k]]++
			x.alike = max(x.alike, counts[hash[k]])
		}
	}
	return all, kernels
}

// isKernel reports whether a piece of work is a kernel or a graph.
func isKernel(device *timeline.Device, w int) bool {
	return device.Kind(w) == timeline.KernelWork || device.Kind(w) == timeline.GraphWork
}

// anyLarge estimates from a sample whether a family may hold as many of the kernels as units must; of visits the
// families of a piece of work.
func anyLarge(t *timeline.Timeline, families int, of func(device *timeline.Device, w int, visit func(family int32))) bool {
	total, inside, sampled := t.Pieces(), make([]int, families), 0
	for _, device := range t.Devices {
		for w := 0; w < device.Len(); w += 1 + int(Mix(uint64(w))%uint64(2*(total/sampledWork)+1)) {
			if isKernel(device, w) {
				sampled++
				of(device, w, func(family int32) { inside[family]++ })
			}
		}
	}
	return float64(slices.Max(inside)) >= minOther*float64(sampled)-sampleError*math.Sqrt(float64(sampled))
}
