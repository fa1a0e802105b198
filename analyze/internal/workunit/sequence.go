package workunit

import (
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// minTracks is the share of all compute time that tracks with a period must have.
const minTracks = 0.5

// bySequence finds units by the period of the kernel sequence: communication kernels left out, because they run on a stream
// of their own and jitter against the others.
func (f *finder) bySequence() *Result {
	var total int64
	longest := 0
	for i := range f.tracks {
		total += f.tracks[i].time
		longest = max(longest, len(f.tracks[i].comp))
	}
	if longest < minSequence {
		return &Result{Kind: KindNone, Why: fmt.Sprintf("no step marker, no repeated CUDA graph, and %d compute kernels on a device are too few to see what repeats", longest)}
	}
	var closest found
	for _, families := range []bool{false, true} {
		names := &f.names
		if families {
			if len(f.families.name) == len(f.names.name) {
				break
			}
			names = &f.families
		}
		founds := make([]found, len(f.tracks))
		parallel.Each(len(f.tracks), func(i int) {
			seq := f.sequence(&f.tracks[i], names)
			founds[i] = findPeriod(seq, len(names.name))
			spill.Free(f.Trace.Memory(), seq)
			if families && founds[i].coverage < 1 {
				founds[i] = found{} // families are few: runs of them prove nothing
			}
		})
		for i := range f.tracks {
			if founds[i].bestShare > closest.bestShare && !families {
				closest = founds[i]
			}
		}
		f.agree(names, founds)
		var time int64
		for i := range f.tracks {
			if founds[i].lag > 0 {
				time += f.tracks[i].time
			}
		}
		if float64(time) >= minTracks*float64(max(total, 1)) && time > 0 {
			if r := f.cutSequence(names, founds, families); r != nil {
				return r
			}
		}
	}
	why := "no step marker, no repeated CUDA graph, and the kernel sequence does not repeat"
	if closest.best > 0 {
		why += fmt.Sprintf(": the best match, every %d kernels, has %.2f of the names equal and the parts that do repeat cover too little", closest.best, closest.bestShare)
	}
	return &Result{Kind: KindNone, Why: why}
}

// agree lets the tracks vote where they found different periods: one that more tracks can live with than found it is taken
// for all of these. Ranks of one model do the same; where a capture was cut may favour another period on one of them.
func (f *finder) agree(names *symbols, founds []found) {
	var lags []int
	for i := range founds {
		if founds[i].lag > 0 && !slices.Contains(lags, founds[i].lag) {
			lags = append(lags, founds[i].lag)
		}
	}
	if len(lags) < 2 || len(lags) > maxCandidates {
		return
	}
	var best []found
	most := 1
	for _, lag := range lags {
		tried := make([]found, len(founds))
		n := 0
		for i := range founds {
			if len(f.tracks[i].comp) < minSequence {
				continue
			}
			seq := f.sequence(&f.tracks[i], names)
			tried[i] = evaluate(seq, []int{lag})
			spill.Free(f.Trace.Memory(), seq)
			if tried[i].lag == lag {
				n++
			}
		}
		if n > most {
			best, most = tried, n
		}
	}
	for i := range best {
		if best[i].lag > 0 {
			founds[i].lag, founds[i].share, founds[i].runs, founds[i].coverage = best[i].lag, best[i].share, best[i].runs, best[i].coverage
			if founds[i].inner*2 > founds[i].lag {
				founds[i].inner, founds[i].innerShare = 0, 0
			}
		}
	}
}

// pattern is one period of a sequence, rotated so that it does not depend on where the capture was cut.
type pattern struct {
	seq     []int32
	time    []int64 // of the kernels at each place, added up
	occurs  map[int32]int
	periods int
	tracks  []int
}

// cutSequence cuts every track that has a period. Tracks with the same pattern share the decision where.
func (f *finder) cutSequence(names *symbols, founds []found, families bool) *Result {
	var patterns []*pattern
	mine := make([]*pattern, len(f.tracks))
	for i := range f.tracks {
		if founds[i].lag == 0 {
			continue
		}
		p := f.pattern(i, names, &founds[i])
		at := slices.IndexFunc(patterns, func(q *pattern) bool { return slices.Equal(q.seq, p.seq) })
		if at < 0 {
			at = len(patterns)
			patterns = append(patterns, p)
		} else {
			patterns[at].join(p)
		}
		mine[i] = patterns[at]
	}
	f.forget()
	s := slicer{finder: f, names: names}
	name := ""
	var sum Period
	for i := range f.tracks {
		p := mine[i]
		if p == nil {
			continue
		}
		gram := p.anchor()
		cuts := f.occurrences(&f.tracks[i], names, founds[i].runs, gram)
		if len(cuts) < 2 {
			continue
		}
		s.add(i, cuts)
		t := &f.tracks[i]
		if name == "" {
			name = f.workName(t, t.work[cuts[0].at])
		}
		sum.Tracks++
		if sum.Kernels == 0 {
			fi := &founds[i]
			sum = Period{Kernels: fi.lag, Share: fi.share, Inner: fi.inner, InnerShare: fi.innerShare, Coverage: fi.coverage, Families: families, Tracks: 1}
		}
	}
	if len(s.units) == 0 {
		return nil
	}
	r := s.result(KindKernel, name, sum.why(len(patterns)))
	r.Period = sum
	if units, _ := r.kept(); units == 0 {
		return nil
	}
	return r
}

func (p *Period) why(patterns int) string {
	kernels := "kernels repeat"
	if p.Kernels == 1 {
		kernels = "kernel repeats"
	}
	why := fmt.Sprintf("no step marker or repeated CUDA graph; %d compute %s in the same order (%.4f of the names equal", p.Kernels, kernels, p.Share)
	if p.Families {
		why += ", compared by library, operation and type because tile variants differ"
	}
	why += ")"
	switch {
	case p.Tracks > 1 && patterns == 1:
		why += fmt.Sprintf(", alike on %d devices or processes", p.Tracks)
	case p.Tracks > 1:
		why += fmt.Sprintf(", %d different sequences on %d devices or processes", patterns, p.Tracks)
	}
	if p.Coverage < 1 {
		why += fmt.Sprintf(", in runs that cover %.2f of the sequence", p.Coverage)
	}
	if p.Inner > 0 {
		why += fmt.Sprintf("; inside, every %d kernels are much the same (%.4f)", p.Inner, p.InnerShare)
	}
	return why + "; a unit starts at the rarest kernel before the longest stretch of work"
}

// workName is the name of a piece of work as other parts of the report spell it.
func (f *finder) workName(t *track, w int32) string {
	device := f.device(t)
	if s := f.symbol(&f.names, device, int(w)); s >= 0 && s < int32(len(f.names.name)-1) {
		return f.Trace.Kernels.Names[f.Trace.Kernels.Name(device.Row(int(w)))].Name
	}
	return graphName
}

// pattern takes the period that best equals the next one as the pattern, and adds up the time of each of its places.
func (f *finder) pattern(track int, names *symbols, x *found) *pattern {
	t := &f.tracks[track]
	seq := f.sequence(t, names)
	defer spill.Free(f.Trace.Memory(), seq)
	lag := x.lag
	lo, most := x.runs[0].lo, -1
	for _, r := range x.runs {
		for at := r.lo; at+2*lag <= r.hi; at += lag {
			same := 0
			for i := at; i < at+lag; i++ {
				if seq[i] == seq[i+lag] {
					same++
				}
			}
			if same > most {
				lo, most = at, same
			}
		}
	}
	p := &pattern{seq: slices.Clone(seq[lo : lo+lag]), time: make([]int64, lag), occurs: map[int32]int{}, tracks: []int{track}}
	device := f.device(t)
	counts := make([]int, len(names.name))
	for _, r := range x.runs {
		p.periods += (r.hi - r.lo) / lag
		for i := r.lo; i < r.hi; i++ {
			place := ((i-lo)%lag + lag) % lag
			if seq[i] == p.seq[place] {
				w := int(t.comp[i])
				p.time[place] += device.End(w) - device.Start(w)
			}
			counts[seq[i]]++
		}
	}
	for s, n := range counts {
		if n > 0 {
			p.occurs[int32(s)] = n
		}
	}
	turn := leastRotation(p.seq)
	p.seq = append(p.seq[turn:], p.seq[:turn]...)
	p.time = append(p.time[turn:], p.time[:turn]...)
	return p
}

func (p *pattern) join(q *pattern) {
	for i := range p.time {
		p.time[i] += q.time[i]
	}
	for s, n := range q.occurs {
		p.occurs[s] += n
	}
	p.periods += q.periods
	p.tracks = append(p.tracks, q.tracks...)
}

// leastRotation is where the lexicographically least rotation of a cyclic sequence starts (Booth).
func leastRotation(s []int32) int {
	n := len(s)
	fail := make([]int, 2*n)
	for i := range fail {
		fail[i] = -1
	}
	at := func(i int) int32 { return s[i%n] }
	k := 0
	for j := 1; j < 2*n; j++ {
		i := fail[j-k-1]
		for i != -1 && at(j) != at(k+i+1) {
			if at(j) < at(k+i+1) {
				k = j - i - 1
			}
			i = fail[i]
		}
		if i == -1 && at(j) != at(k+i+1) {
			if at(j) < at(k+i+1) {
				k = j
			}
			fail[j-k] = -1
		} else {
			fail[j-k] = i + 1
		}
	}
	return k % n
}

// anchor chooses where to cut the cyclic pattern: at a name that occurs once in it, or else at the shortest stretch of names
// that does; of several, at the one that begins the longest stretch of work up to the next. In a model's step that is the
// embedding, before the layers. It returns the names from there on that make the place unique.
func (p *pattern) anchor() []int32 {
	n := len(p.seq)
	count := map[int32]int{}
	for _, s := range p.seq {
		count[s]++
	}
	// A name counts if it occurs in all of the runs as often as in the pattern: a tile variant that a tuner tried does not.
	steady := make([]bool, n)
	for i, s := range p.seq {
		want := count[s] * p.periods
		off := max(p.occurs[s]-want, want-p.occurs[s])
		steady[i] = off <= want/20+count[s]*max(1, len(p.tracks))
	}
	for width := 1; width < 2*n; width *= 2 {
		width = min(width, n)
		if places := p.unique(width, steady); len(places) > 0 {
			return p.gram(p.longest(places), width)
		}
	}
	return p.gram(0, n)
}

// unique are the places of the pattern at which width names stand that stand nowhere else in it, all of them steady.
func (p *pattern) unique(width int, steady []bool) (places []int) {
	n := len(p.seq)
	wrapped := make([]int32, 0, n+width-1)
	for i := range n + width - 1 {
		wrapped = append(wrapped, p.seq[i%n])
	}
	grams, kinds := contexts(wrapped, width)
	count := make([]int32, kinds)
	for _, g := range grams {
		count[g]++
	}
	unsteady := 0 // among the names from here on
	for i := range width - 1 {
		if !steady[i] {
			unsteady++
		}
	}
	for i := range n {
		if !steady[(i+width-1)%n] {
			unsteady++
		}
		if count[grams[i]] == 1 && unsteady == 0 {
			places = append(places, i)
		}
		if !steady[i] {
			unsteady--
		}
	}
	return places
}

// longest is the place with most work up to the next one.
func (p *pattern) longest(places []int) int {
	best, most := 0, int64(-1)
	for k, from := range places {
		to := places[(k+1)%len(places)]
		if to <= from {
			to += len(p.seq)
		}
		var time int64
		for i := from; i < to; i++ {
			time += p.time[i%len(p.seq)]
		}
		if time > most {
			best, most = from, time
		}
	}
	return best
}

func (p *pattern) gram(place, width int) []int32 {
	gram := make([]int32, width)
	for i := range gram {
		gram[i] = p.seq[(place+i)%len(p.seq)]
	}
	return gram
}

// occurrences are the places in the runs where the names of gram follow each other.
func (f *finder) occurrences(t *track, names *symbols, runs []run, gram []int32) []cut {
	device := f.device(t)
	seq := f.sequence(t, names)
	defer spill.Free(f.Trace.Memory(), seq)
	var cuts []cut
	for _, r := range runs {
		for i := r.lo; i+len(gram) <= r.hi; i++ {
			if seq[i] != gram[0] || !slices.Equal(seq[i:i+len(gram)], gram) {
				continue
			}
			at, _ := slices.BinarySearch(t.work, t.comp[i])
			if k := len(cuts); k > 0 && device.Start(int(t.work[cuts[k-1].at])) == device.Start(int(t.comp[i])) {
				continue // a unit takes time
			}
			cuts = append(cuts, cut{at: int32(at)})
		}
	}
	return cuts
}

// byUserKernel cuts at the kernels that --unit kernel:REGEX names.
func (f *finder) byUserKernel() *Result {
	k := &f.Trace.Kernels
	matches := make([]bool, len(k.Names))
	for i := range k.Names {
		matches[i] = f.Spec.Pattern.MatchString(k.Names[i].Name)
	}
	s := slicer{finder: f, names: &f.names}
	units := 0
	for i := range f.tracks {
		t := &f.tracks[i]
		var cuts []cut
		for at, w := range t.work {
			device, i := f.device(t), int(w)
			if device.Kind(i) != attrib.KernelWork || !matches[k.Name(device.Row(i))] {
				continue
			}
			if n := len(cuts); n > 0 && device.Start(int(t.work[cuts[n-1].at])) == device.Start(i) {
				continue
			}
			cuts = append(cuts, cut{at: int32(at)})
		}
		if len(cuts) > 1 {
			s.add(i, cuts)
			units += len(cuts)
		}
	}
	what := "--unit kernel:" + f.Spec.Pattern.String()
	if units == 0 {
		return &Result{Kind: KindNone, Why: what + " matches no kernel that ran twice on a device"}
	}
	r := s.result(KindKernel, f.Spec.Pattern.String(), "asked for with "+what+": a unit runs from one matching kernel to the next")
	if n, _ := r.kept(); n == 0 {
		return &Result{Kind: KindNone, Why: what + " gives no complete unit"}
	}
	return r
}
