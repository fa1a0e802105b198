package workunit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// minTracks is the share of all compute time that tracks with an anchor must have.
const minTracks = 0.5

// Anchor is one to three kernels in a row at which each unit starts, or the program's own ranges in which its work is
// launched. It finds the same units in another capture, see [Search.At].
type Anchor struct {
	Names    []string // canonical names of the kernels, or their families; of ranges their name with # for numbers
	Ranges   bool
	Start    int     // index of the kernel at which the unit starts, from 0
	Families bool    // names are families: library, operation and type
	Merged   bool    // the sequence includes all streams, not only the one with the most compute
	Paired   bool    // two kinds of units alternate, and one of each together is a unit
	Coverage float64 // share of compute time in units of kinds that recur, 0 to 1
	Count    int     // how often it occurs
}

// String joins the names with arrows.
func (a *Anchor) String() string { return strings.Join(a.Names, " → ") }

// way is one way to read the kernel sequence.
type way struct {
	names    *symbols
	families bool
	merged   bool
	events   bool // what runs too seldom to be part of units that recur counts no time
}

// ways are tried in order: exact names before families, the main stream before all streams, the time of all kernels
// before that of those that run often.
func ways(names, families *symbols) []way {
	list := []way{{names: names}, {names: names, merged: true}}
	if len(families.name) < len(names.name) {
		list = append(list, way{names: families, families: true}, way{names: families, families: true, merged: true})
	}
	for _, w := range list {
		w.events = true
		list = append(list, w)
	}
	return list
}

// layout is the sequences of all tracks, laid out in one way.
type layout struct {
	way
	lines []*line
}

// of lays out the sequences in a way, unless they already are.
func (l *layout) of(tracks []*track, w way, memory *spill.Arena) []*line {
	if l.lines != nil && l.way == w {
		return l.lines
	}
	l.free(memory)
	l.way, l.lines = w, make([]*line, len(tracks))
	parallel.Each(len(tracks), func(i int) {
		t := tracks[i]
		if t.stream = everyStream; !w.merged {
			t.main = t.busiest(w.names)
			t.stream = t.main
		}
		l.lines[i] = newLine(t, w.names, memory)
		if w.events {
			discount(l.lines[i])
		}
	})
	return l.lines
}

func (l *layout) free(memory *spill.Arena) {
	for _, line := range l.lines {
		line.free(memory)
	}
	l.lines = nil
}

// bySequence finds units by an anchor in the kernel sequence. Communication kernels are left out, because they run on a
// stream of their own and shift against the others.
func (f *Search) bySequence() *Result {
	longest := lists.Most(f.tracks, func(t *track) int { return t.comp })
	var closest *fit
	var name *symbols
	for _, w := range ways(&f.names, &f.families) {
		if w.merged && !slices.ContainsFunc(f.tracks, func(t *track) bool { return t.main != everyStream }) {
			continue
		}
		lines := f.lines.of(f.tracks, w, f.Trace.Memory())
		if w.events && !slices.ContainsFunc(lines, func(l *line) bool { return l.events && l.total > 0 }) {
			continue
		}
		found := agree(lines, f.tracks, w.families)
		for _, x := range found {
			if x.best != nil && !x.best.believed() && !w.events && (closest == nil || x.best.index > closest.index) {
				closest, name = x.best, w.names
			}
		}
		if r := f.cutSequence(found, w); r != nil {
			return r
		}
		f.of.free()
	}
	if longest < plainLine {
		return &Result{Kind: KindNone, Why: fmt.Sprintf("no step marker, no ranges that repeat, no repeated CUDA graph, and %d compute kernels on a device are too few: fewer than %d repeats of so few kernels prove nothing", longest, plainUnits)}
	}
	why := fmt.Sprintf("no step marker, no ranges that repeat, no repeated CUDA graph, and no kernel of %d starts work that repeats", longest)
	if closest != nil && closest.units >= minRepeats {
		why += fmt.Sprintf(": units that start at %s come closest, and "+
			"those of equal work hold only %.0f %% of the compute time",
			name.text(closest.names), 100*closest.covered)
	}
	return &Result{Kind: KindNone, Why: why}
}

// text returns names for a reader.
func (s *symbols) text(names []int32) string {
	list := lists.Map(names, func(n int32) string {
		return "`" + wording.Shorten(strings.ReplaceAll(s.name[n], "`", "'"), maxName) + "`"
	})
	return strings.Join(list, " → ")
}

// answer is the result of searching one track.
type answer struct {
	best   *fit
	others []*fit
}

// kept returns the anchors that a result stores: the best one; one of the same units, for a capture that lacks the
// first; and one of other units, for a capture with other steps.
func (a *answer) kept() []*fit {
	list := []*fit{a.best}
	for _, x := range slices.Concat(a.best.alike[:min(len(a.best.alike), 1)], a.best.other, a.best.alike) {
		again := func(y *fit) bool { return x.skip == y.skip && slices.Equal(x.names, y.names) }
		if len(list) < maxAnchorsKept && !slices.ContainsFunc(list, again) {
			list = append(list, x)
		}
	}
	return list
}

// agree searches all tracks, and makes them agree: starting with the tracks with the most time, an anchor is used for
// all tracks that it fits about as well as their own. Ranks of one model do the same work, but where the capture was
// cut may favour another anchor on one of them.
func agree(lines []*line, tracks []*track, families bool) []answer {
	found := make([]answer, len(lines))
	parallel.Each(len(lines), func(i int) {
		found[i].best, found[i].others = lines[i].search()
		if x := found[i].best; x != nil && families && x.index < plainIndex {
			found[i] = answer{} // families are few: that some recur proves nothing
		}
	})
	order := lists.Indexes[int](len(lines))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tracks[b].time, tracks[a].time) })
	settled := make([]bool, len(lines))
	for _, i := range order[:min(len(order), maxAgreed)] {
		x := found[i].best
		if settled[i] || x == nil || !x.believed() {
			continue
		}
		settled[i] = true
		parallel.Each(len(lines), func(k int) {
			if settled[k] || slices.Equal(names(found[k].best), x.names) {
				return
			}
			y := newFitter(lines[k]).again(x)
			own := found[k].best
			if y.believed() && (own == nil || !own.believed() || y.index >= own.index-2*equalIndex) {
				found[k].best = y
			}
		})
		for k := range found {
			settled[k] = settled[k] || slices.Equal(names(found[k].best), x.names)
		}
	}
	return found
}

// maxAgreed bounds how many tracks' anchors are tried on the others.
const maxAgreed = 8

func names(x *fit) []int32 {
	if x == nil {
		return nil
	}
	return x.names
}

// occurrences returns where the names follow each other: the index of the first one plus skip.
func (l *line) occurrences(names []int32, skip int32) (pos []int32) {
	if len(names) == 0 {
		return nil
	}
	for i := 0; i+len(names) <= len(l.seq); i++ {
		if l.seq[i] == names[0] && slices.Equal(l.seq[i:i+len(names)], names) {
			pos = append(pos, int32(i)+skip)
		}
	}
	return pos
}

// cutAll cuts tracks at positions in their lines: those with units are whole. paired is the number of compute kernels in
// two kinds of slices that alternate, or 0.
func cutAll(f *Search, pos [][]int32, names *symbols) (s *slicer, whole []int, cuts [][]cut, paired int) {
	cuts = make([][]cut, len(pos))
	together := make([]int, len(pos))
	parallel.Each(len(pos), func(i int) {
		cuts[i], together[i] = f.tracks[i].pairUp(f.tracks[i].cuts(pos[i]), names)
	})
	s = f.slicer(names)
	whole = lists.Where(len(cuts), func(i int) bool { return len(cuts[i]) >= 2 })
	for _, i := range whole {
		s.add(f.tracks[i], cuts[i])
	}
	return s, whole, cuts, lists.Most(together, func(kernels int) int { return kernels })
}

// cutSequence cuts every track that has an anchor; nil if these tracks hold too little of the compute time.
func (f *Search) cutSequence(found []answer, w way) *Result {
	pos := make([][]int32, len(found))
	for i := range found {
		if x := found[i].best; x != nil && x.believed() {
			pos[i] = starts(x.pos, len(x.names))
		}
	}
	s, whole, cuts, together := cutAll(f, pos, w.names)
	time := lists.Sum(whole, func(i int) int64 { return f.tracks[i].time })
	if len(whole) == 0 || float64(time) < minTracks*float64(computed(f.tracks)) {
		return nil
	}
	at := whole[0]
	for _, i := range whole {
		if found[i].best.index > found[at].best.index+equalIndex {
			at = i
		}
	}
	first := &found[at]
	p := w.period(first.best, len(whole), together)
	for _, x := range first.others {
		if x.period*2 <= p.Kernels && !p.Paired && x.main >= minInner && x.main > p.InnerShare {
			p.Inner, p.InnerShare = x.period, x.main
		}
	}
	distinct := lists.Set(whole, func(i int) string { return fmt.Sprint(found[i].best.names) })
	why := p.why(len(distinct), w.names.text(first.best.names))
	if w.events {
		why += fmt.Sprintf("; kernels that run at fewer than %d places count no time", minRepeats)
	}
	r := f.sliced(s, KindKernel, f.tracks[at].name(cuts[at][0], &f.Trace.Kernels), why)
	r.Period = p
	if !f.sound(r) {
		return nil
	}
	fitter := newFitter(first.best.line)
	for _, x := range first.kept() {
		if x.line != fitter.line {
			x = fitter.again(x)
		}
		a := w.anchor(x)
		a.Paired = p.Paired && x == first.best
		r.Anchors = append(r.Anchors, a)
	}
	return r
}

// Bounds of what a report states about an anchor's units.
const (
	minInner       = 0.8 // share of compute time in units of one kind, to be worth reporting as an inner period
	maxAnchorsKept = 3
	mostUnits      = 4 // by how many times the units of another anchor may be shorter
)

// period is that of a fit; together is the number of kernels in two kinds of units that alternate, or 0.
func (w way) period(x *fit, tracks, together int) Period {
	p := Period{Kernels: x.period, Share: x.main, Coverage: min(1, x.covered), Families: w.families, Tracks: tracks}
	if together > 0 {
		p.Kernels, p.Paired, p.Share = together, true, p.Coverage
	}
	return p
}

func (w way) anchor(x *fit) Anchor {
	return Anchor{
		Names: lists.Map(x.names, func(n int32) string { return w.names.name[n] }), Start: int(x.skip),
		Families: w.families, Merged: w.merged, Coverage: min(1, x.covered), Count: len(x.pos),
	}
}

// starts leaves out positions of an anchor of so many kernels where it directly follows itself, since the program
// launched it twice, unless these kernels are half of all: then each is a unit.
func starts(pos []int32, width int) []int32 {
	var list []int32
	short := int32(0) // kernels from an anchor to one that directly follows
	for i, p := range pos {
		if i == 0 || p-pos[i-1] > int32(width) {
			list = append(list, p)
		} else {
			short += p - pos[i-1]
		}
	}
	if len(pos) == 0 || 2*short >= pos[len(pos)-1]-pos[0] {
		return pos
	}
	return list
}

// cuts maps positions in a track's line, in order, to positions in its work.
func (t *track) cuts(pos []int32) []cut {
	cuts := make([]cut, 0, len(pos))
	n := int32(0) // position in the line
	for at := range t.n {
		if len(pos) == 0 {
			break
		}
		w := t.piece(at)
		if !t.compared(w) {
			continue
		}
		if n++; n <= pos[0] {
			continue
		}
		pos = pos[1:]
		cuts = t.cut(cuts, at)
	}
	return cuts
}

// cut adds a cut, unless the one before it is at the same moment: a unit must take time.
func (t *track) cut(cuts []cut, at int32) []cut {
	if n := len(cuts); n > 0 && t.device.Start(t.piece(cuts[n-1].at)) == t.device.Start(t.piece(at)) {
		return cuts
	}
	return append(cuts, cut{at: at})
}

func (p *Period) why(anchors int, at string) string {
	kernels := "kernels repeat"
	if p.Kernels == 1 {
		kernels = "kernel repeats"
	}
	once := "once"
	if p.Paired {
		once = "twice"
	}
	why := fmt.Sprintf("no step marker, no ranges that repeat and no repeated CUDA graph; a unit starts at %s, which occurs %s in it, and %d compute %s from there (units alike hold %.4f of the compute time",
		at, once, p.Kernels, kernels, p.Share)
	if p.Families {
		why += ", compared by library, operation and type because tile variants differ"
	}
	why += ")"
	switch {
	case p.Tracks > 1 && anchors == 1:
		why += fmt.Sprintf(", alike on %d devices or processes", p.Tracks)
	case p.Tracks > 1:
		why += fmt.Sprintf(", %d different starts on %d devices or processes", anchors, p.Tracks)
	}
	if p.Inner > 0 {
		why += fmt.Sprintf("; inside, every %d kernels are much the same (%.4f)", p.Inner, p.InnerShare)
	}
	return why
}

// byAnchor cuts the capture at an anchor. If it does not occur, or the work between its occurrences does not recur, the
// result is of kind none and says why.
func (f *Search) byAnchor(anchor *Anchor) *Result {
	if anchor.Ranges {
		if x := lists.Find(rangesOf(f).list, func(x **family) bool { return (*x).text == anchor.Names[0] }); x != nil {
			if r := (*x).units(f); r != nil {
				return r
			}
		}
		return &Result{Kind: KindNone, Why: "no ranges of the program called " + anchor.String() + " hold enough of the GPU work"}
	}
	w := way{names: &f.names, merged: anchor.Merged}
	if anchor.Families {
		w.names, w.families = &f.families, true
	}
	names := make([]int32, len(anchor.Names))
	for i, name := range anchor.Names {
		at, ok := w.names.find(name)
		if !ok {
			return &Result{Kind: KindNone,
				Why: fmt.Sprintf("no kernel of the capture is called %s, at which each unit is to start", name)}
		}
		names[i] = at
	}
	skip := int32(max(0, min(anchor.Start, len(names)-1)))
	lines := f.lines.of(f.tracks, w, f.Trace.Memory())
	pos, fits, times := make([][]int32, len(lines)), make([]*fit, len(lines)), make([]int, len(lines))
	parallel.Each(len(lines), func(i int) {
		all := lines[i].occurrences(names, skip)
		pos[i], times[i] = starts(all, len(names)), len(all)
		fits[i] = newFitter(lines[i]).fit(names, skip, pos[i])
	})
	s, whole, cuts, together := cutAll(f, pos, w.names)
	occurs := lists.Total(times)
	at := "the given start, " + anchor.String() + ","
	if len(whole) == 0 {
		return &Result{Kind: KindNone, Why: fmt.Sprintf("%s occurs %d times, which is too few for units", at, occurs)}
	}
	best := slices.MaxFunc(whole, func(a, b int) int { return cmp.Compare(fits[a].index, fits[b].index) })
	p := w.period(fits[best], len(whole), together)
	to := "one to the next"
	if p.Paired {
		to += " but one, since two kinds of different kernels alternate"
	}
	r := f.sliced(s, KindKernel, f.tracks[best].name(cuts[best][0], &f.Trace.Kernels), fmt.Sprintf("%s occurs %d times; a unit runs from %s", at, occurs, to))
	r.Period = p
	r.Anchors = []Anchor{w.anchor(fits[best])}
	r.Anchors[0].Paired = p.Paired
	if !f.sound(r) {
		return &Result{Kind: KindNone,
			Why: fmt.Sprintf("%s occurs %d times, but what runs from one to the next does not recur", at, occurs)}
	}
	return r
}

// name is the name of the work at a cut as the rest of the report writes it.
func (t *track) name(c cut, k *trace.Kernels) string {
	if w := t.piece(c.at); t.device.Kind(w) == timeline.KernelWork {
		return k.Names[k.Name(t.device.Row(w))].Name
	}
	return graphName
}

// byUserKernel cuts at the kernels that --unit kernel:REGEX matches.
func (f *Search) byUserKernel() *Result {
	k := &f.Trace.Kernels
	matches, names := make([]bool, len(k.Names)), make([]string, len(k.Names))
	for i := range k.Names {
		matches[i], names[i] = f.Spec.Pattern.MatchString(k.Names[i].Name), k.Names[i].Name
	}
	if !slices.Contains(matches, true) {
		return f.Spec.unmatched("kernel", names)
	}
	s := f.slicer(&f.names)
	units := 0
	for _, t := range f.tracks {
		var cuts []cut
		for at := range t.n {
			if i := t.piece(at); t.device.Kind(i) == timeline.KernelWork && matches[k.Name(t.device.Row(i))] {
				cuts = t.cut(cuts, at)
			}
		}
		if len(cuts) > 1 {
			s.add(t, cuts)
			units += len(cuts)
		}
	}
	what := "--unit kernel:" + f.Spec.Pattern.String()
	if units == 0 {
		return &Result{Kind: KindNone, Why: what + " matches no kernel that ran twice on a device"}
	}
	r := f.sliced(s, KindKernel, f.Spec.Pattern.String(),
		"asked for with "+what+": a unit runs from one matching kernel to the next")
	f.sound(r)
	if len(r.grouped()) == 0 {
		return &Result{Kind: KindNone, Why: what + " gives no complete unit"}
	}
	return r
}
