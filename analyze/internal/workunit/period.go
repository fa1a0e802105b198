package workunit

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the search for a period.
const (
	minSequence   = 32    // kernels: fewer tell nothing
	minPeriods    = 3     // how often a period must fit into the sequence
	minShare      = 0.95  // of equal names
	nearShare     = 0.90  // of equal names, at a lag of which a multiple has minShare
	exactShare    = 0.995 // of equal names: no need to look further
	minInner      = 0.80  // of equal names, to be worth reporting as an inner period
	minCoverage   = 0.75  // of a sequence that runs of a period must tile, where it does not repeat as a whole
	maxCandidates = 24
	maxVoters     = 1 << 18 // positions looked at for candidate lags, rare names first
	mismatch      = -19     // 1 for a match: a run stays positive as long as 95 % match
)

// found is the period of one sequence.
type found struct {
	lag   int
	share float64 // over the runs
	runs  []run
	inner int
	innerShare,
	coverage float64
	best      int // where nothing was found: the lag that came closest
	bestShare float64
}

// run is a stretch of the sequence that repeats with the period: [lo, hi), the last period included.
type run struct{ lo, hi int }

// findPeriod looks for the lag at which the sequence equals itself: highest share first, then the shortest among equals, and of a
// lag and its multiples the shortest that differs in single periods only.
// Where the sequence as a whole does not repeat, it takes the lag whose runs tile most of it. Symbols are below n symbols.
func findPeriod(seq []int32, symbols int) found {
	if len(seq) < minSequence {
		return found{}
	}
	lags := candidateLags(seq, symbols)
	r := evaluate(seq, lags)
	if r.share < exactShare || r.coverage < 1 {
		// No name occurs once per period: take names with their context, which are rarer.
		middle := seq
		if n := len(seq); n > maxVoters {
			middle = seq[(n-maxVoters)/2 : (n+maxVoters)/2]
		}
		for _, width := range []int{4, 16} {
			grams, n := contexts(middle, width)
			lags = append(lags, candidateLags(grams, n)...)
			slices.Sort(lags)
			lags = slices.Compact(lags)
		}
		r = evaluate(seq, lags)
	}
	return r
}

func evaluate(seq []int32, lags []int) (r found) {
	shares := make([]float64, len(lags))
	best := -1
	for i, lag := range lags {
		shares[i] = share(seq, lag)
		if best < 0 || shares[i] > shares[best] {
			best = i
		}
	}
	if best < 0 {
		return r
	}
	r.best, r.bestShare = lags[best], shares[best]
	if shares[best] >= minShare {
		top := shares[best]
		tolerance := equalShare(top, len(seq)-lags[best])
		shorter := func(i int) bool {
			lag := lags[i]
			return lag < lags[best] && (shares[i] >= max(minShare, top-tolerance) || shares[i] >= nearShare && lags[best]%lag == 0 && sporadic(seq, lag, lags[best]))
		}
		for i := 0; i < len(lags); i++ { // lags ascend
			if shorter(i) {
				best, i = i, -1
			}
		}
		r.lag, r.share, r.coverage = lags[best], shares[best], 1
		r.runs = []run{{0, len(seq)}}
	} else {
		r.tile(seq, lags)
	}
	if r.lag > 0 {
		for i, lag := range lags {
			if lag*2 <= r.lag && shares[i] >= minInner && (shares[i] > r.innerShare || shares[i] == r.innerShare && lag < r.inner) {
				r.inner, r.innerShare = lag, shares[i]
			}
		}
	}
	return r
}

// equalShare is by how much two shares can differ by chance.
func equalShare(p float64, n int) float64 {
	return 0.001 + 2*math.Sqrt(p*(1-p)/float64(max(n, 1)))
}

// sporadic reports whether what differs at the lag differs in single periods only, of a period that is a multiple of the lag.
// Disturbances that happen to lie a multiple apart make the multiple look better; were it the true period, something would
// differ at the shorter lag in each of its periods, or nearly each, at the same place.
func sporadic(seq []int32, lag, period int) bool {
	differ := make([]int, period)
	n := len(seq) - lag
	for i := range n {
		if seq[i] != seq[i+lag] {
			differ[i%period]++
		}
	}
	for at, k := range differ {
		if periods := (n - at + period - 1) / period; 4*k > 3*periods {
			return false
		}
	}
	return true
}

// share of positions that equal the one lag further on.
func share(seq []int32, lag int) float64 {
	n := len(seq) - lag
	if n <= 0 {
		return 0
	}
	a, b := seq[:n], seq[lag:]
	b = b[:n]
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(n)
}

// tile takes the lag whose runs cover most of the sequence.
func (r *found) tile(seq []int32, lags []int) {
	type tiling struct {
		lag, covered, same int
		runs               []run
	}
	var best tiling
	var room []piece
	for _, lag := range lags {
		runs, same := runsOf(seq, lag, &room)
		covered := 0
		for _, x := range runs {
			covered += x.hi - x.lo
		}
		t := tiling{lag, covered, same, runs}
		slack := len(seq) / 100
		if covered > best.covered+slack || covered >= best.covered-slack && covered > 0 && better(t.same, t.covered-len(runs)*lag, best.same, best.covered-len(best.runs)*best.lag, lag < best.lag) {
			best = t
		}
	}
	if float64(best.covered) < minCoverage*float64(len(seq)) {
		return
	}
	r.lag, r.runs = best.lag, best.runs
	r.coverage = float64(best.covered) / float64(len(seq))
	r.share = float64(best.same) / float64(max(1, best.covered-len(best.runs)*best.lag))
}

// better compares the shares of two tilings that cover the same: the higher one, or the shorter lag among equals.
func better(same, of, bestSame, bestOf int, shorter bool) bool {
	if of <= 0 || bestOf <= 0 {
		return bestOf <= 0
	}
	a, b := float64(same)/float64(of), float64(bestSame)/float64(bestOf)
	e := equalShare(max(a, b), min(of, bestOf))
	if math.Abs(a-b) <= e {
		return shorter
	}
	return a > b
}

// piece is a stretch of matches, or several with what lies between them.
type piece struct {
	lo, hi        int
	before, after int // sum before lo and up to hi
	link          int // the nearest piece on the stack that starts from a lower sum, or -1
}

// runsOf finds the stretches where the sequence repeats with the lag for at least minPeriods periods: maximal segments of
// the sum of +1 for a match and mismatch for a mismatch (Ruzzo and Tompa), which takes one pass.
// room is kept for the next call.
func runsOf(seq []int32, lag int, room *[]piece) (runs []run, same int) {
	stack := (*room)[:0]
	defer func() { *room = stack }()
	n := len(seq) - lag
	sum := 0
	for i := 0; i < n; {
		if seq[i] != seq[i+lag] {
			sum += mismatch
			i++
			continue
		}
		p := piece{lo: i, before: sum}
		for i < n && seq[i] == seq[i+lag] {
			i++
		}
		sum += i - p.lo
		p.hi, p.after = i, sum
		for {
			j := len(stack) - 1
			for j >= 0 && stack[j].before >= p.before {
				j = stack[j].link
			}
			p.link = j
			if j < 0 || stack[j].after >= p.after {
				break
			}
			p.lo, p.before = stack[j].lo, stack[j].before
			stack = stack[:j]
		}
		stack = append(stack, p)
	}
	for _, p := range stack {
		if p.hi-p.lo < (minPeriods-1)*lag {
			continue
		}
		x := run{p.lo, p.hi + lag}
		if k := len(runs); k > 0 && x.lo < runs[k-1].hi { // the last period of one run is the first of the next
			x.lo = runs[k-1].hi
			if x.hi-x.lo < lag {
				continue
			}
		}
		for i := p.lo; i < p.hi; i++ {
			if seq[i] == seq[i+lag] {
				same++
			}
		}
		runs = append(runs, x)
	}
	return runs, same
}

// candidateLags are the distances between occurrences of rare names: a name that occurs once per period has the period
// between its occurrences; one that occurs two or three times has it between every second or third.
func candidateLags(seq []int32, symbols int) []int {
	offset := make([]int32, symbols+1)
	for _, s := range seq {
		offset[s+1]++
	}
	order := make([]int32, 0, symbols)
	for s := range symbols {
		if offset[s+1] >= minPeriods {
			order = append(order, int32(s))
		}
		offset[s+1] += offset[s]
	}
	at := slices.Clone(offset[:symbols])
	pos := make([]int32, len(seq))
	for i, s := range seq {
		pos[at[s]] = int32(i)
		at[s]++
	}
	count := func(s int32) int32 { return offset[s+1] - offset[s] }
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(count(a), count(b)), cmp.Compare(a, b)) })

	explained := map[int]float64{} // share of the sequence that the lag accounts for, by its best name
	var dist []int32
	voters := 0
	for _, s := range order {
		p := pos[offset[s]:offset[s+1]]
		if voters += len(p); voters > maxVoters && len(explained) > 0 {
			break
		}
		for per := 1; per <= 3; per++ {
			dist = dist[:0]
			for i := per; i < len(p); i++ {
				dist = append(dist, p[i]-p[i-per])
			}
			if lag, n := mode(dist); n >= minPeriods-1 && lag <= len(seq)/(minPeriods-1) {
				explained[lag] = max(explained[lag], float64(n)*float64(lag)/float64(per))
			}
		}
	}
	lags := make([]int, 0, len(explained))
	for lag := range explained {
		lags = append(lags, lag)
	}
	slices.SortFunc(lags, func(a, b int) int { return cmp.Or(cmp.Compare(explained[b], explained[a]), cmp.Compare(a, b)) })
	lags = lags[:min(len(lags), maxCandidates)]
	slices.Sort(lags)
	return lags
}

// mode is the most frequent value, the smallest where several are, and how often it occurs. It sorts the list.
func mode(list []int32) (value, count int) {
	slices.Sort(list)
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j] == list[i] {
			j++
		}
		if j-i > count {
			value, count = int(list[i]), j-i
		}
		i = j
	}
	return value, count
}

// contexts replaces each name by itself and the width-1 that follow it, numbered anew.
func contexts(seq []int32, width int) (grams []int32, n int) {
	const base = 0x9E3779B97F4A7C15
	ids := make(map[uint64]int32)
	grams = make([]int32, max(0, len(seq)-width+1))
	var hash, top uint64 = 0, 1
	for range width {
		top *= base
	}
	for i, s := range seq {
		hash = hash*base + mix(uint64(s)+1)
		if i >= width {
			hash -= top * mix(uint64(seq[i-width])+1)
		}
		if i < width-1 {
			continue
		}
		id, ok := ids[hash]
		if !ok {
			id = int32(len(ids))
			ids[hash] = id
		}
		grams[i-width+1] = id
	}
	return grams, len(ids)
}

// mix spreads the bits of x (splitmix64's finaliser).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
