package pairing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Pair is a kernel of the base and its counterpart in the head; nil if there is none.
type Pair struct {
	Base, Head *side.Work
	By         string
	Note       string
	Of         *side.Work // for an added kernel: the base's kernel that it and others replaced, or nil
}

// Both reports whether both sides run the kernel.
func (p Pair) Both() bool { return p.Base != nil && p.Head != nil }

// Works returns what both sides run, nothing for a side that lacks the kernel.
func (p Pair) Works() (base, head side.Work) {
	return comparison.Value(p.Base), comparison.Value(p.Head)
}

// Name returns the name of a pair: A, or "A → B" for a replacement.
func (p Pair) Name() string {
	switch {
	case p.Base == nil:
		return p.Head.Name
	case p.Head == nil || p.Base.Name == p.Head.Name:
		return p.Base.Name
	}
	return p.Base.Name + " → " + p.Head.Name
}

// Kernels pairs the kernels of the units of two sides: by name, by canonical name, by family, by position. Unpaired
// kernels were added or removed. The result is in the base's order, added kernels last.
func Kernels(onBase, onHead *side.Side) []Pair {
	base, _ := onBase.Merged()
	head, _ := onHead.Merged()
	return pairsOf(base, head)
}

func pairsOf(base, head []side.Work) []Pair {
	m := &matcher{base: base, head: head, of: noneOf(len(base)), taken: make([]bool, len(head)),
		by: make([]string, len(base)), note: map[int]string{}, splitOf: make([]*side.Work, len(head))}
	m.equal(comparison.ByExact, func(w *side.Work) string { return w.Name })
	m.equal(comparison.ByCanonical, func(w *side.Work) string { return w.Category + "\x00" + w.Canonical })
	m.family()
	m.position()
	pairs := make([]Pair, 0, len(base))
	for i := range base {
		p := Pair{Base: &base[i], By: m.by[i], Note: m.note[i]}
		if k := m.of[i]; k >= 0 {
			p.Head = &head[k]
		}
		pairs = append(pairs, p)
	}
	for k := range head {
		if !m.taken[k] {
			pairs = append(pairs, Pair{Head: &head[k], Note: m.note[-1-k], Of: m.splitOf[k]})
		}
	}
	return pairs
}

type matcher struct {
	base, head []side.Work
	of         []int // by index in the base: index in the head, or -1
	taken      []bool
	by         []string
	note       map[int]string // by index in the base, or -1 - index in the head
	splitOf    []*side.Work   // by index in the head: the base's kernel that it and others replaced, or nil
}

func (m *matcher) join(i, k int, by string) {
	m.of[i], m.taken[k], m.by[i] = k, true, by
}

// free returns the kernels that have no pair yet, in the order in which they first run: those of unknown position first.
func (m *matcher) free() (base, head []int) {
	return lists.Filter(byPosition(m.base), func(i int) bool { return m.of[i] < 0 }),
		lists.Filter(byPosition(m.head), func(k int) bool { return !m.taken[k] })
}

// equal pairs kernels with equal keys, in position order.
func (m *matcher) equal(by string, key func(w *side.Work) string) {
	base, head := m.free()
	byKey := map[string][]int{}
	for _, k := range head {
		s := key(&m.head[k])
		byKey[s] = append(byKey[s], k)
	}
	for _, i := range base {
		s := key(&m.base[i])
		if list := byKey[s]; len(list) > 0 {
			m.join(i, list[0], by)
			byKey[s] = list[1:]
		}
	}
}

// byPosition returns the indexes of kernels in the order in which they first run.
func byPosition(list []side.Work) []int {
	order := lists.Indexes[int](len(list))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(list[a].Position, list[b].Position) })
	return order
}

// family pairs the remaining kernels of a family, first those that are nearest to each other in the unit and run
// equally often. Nearness is measured in both units, so that swapping the sides changes no pair.
func (m *matcher) family() {
	type candidate struct {
		i, k     int
		cost, at float64
	}
	var list []candidate
	toHead, toBase := m.anchors()
	for i := range m.base {
		if m.of[i] >= 0 {
			continue
		}
		for k := range m.head {
			a, b := &m.base[i], &m.head[k]
			if m.taken[k] || a.Family == "" || a.Family != b.Family || a.Category != b.Category {
				continue
			}
			apart := (math.Abs(toHead(a.Position)-b.Position) + math.Abs(toBase(b.Position)-a.Position)) / 2
			list = append(list, candidate{i, k, apart + 10*(1-alike(a.Count, b.Count)), a.Position + b.Position})
		}
	}
	lists.Sort(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.at, b.at)) })
	for _, c := range list {
		if m.of[c.i] < 0 && !m.taken[c.k] {
			m.join(c.i, c.k, comparison.ByFamily)
		}
	}
}

// anchors maps positions in the base to positions in the head, and back, along the kernels already paired.
func (m *matcher) anchors() (toHead, toBase func(position float64) float64) {
	var there, back []anchor
	for i, k := range m.of {
		if k >= 0 && m.base[i].Position >= 0 && m.head[k].Position >= 0 {
			there = append(there, anchor{m.base[i].Position, m.head[k].Position})
			back = append(back, anchor{m.head[k].Position, m.base[i].Position})
		}
	}
	return along(there), along(back)
}

// anchor is the position of one kernel in two units.
type anchor struct{ from, to float64 }

// along maps a position by the anchor that is next before it.
func along(list []anchor) func(position float64) float64 {
	lists.Sort(list, func(a, b anchor) int { return cmp.Compare(a.from, b.from) })
	return func(p float64) float64 {
		at, _ := slices.BinarySearchFunc(list, p, func(a anchor, p float64) int { return cmp.Compare(a.from, p) })
		switch {
		case len(list) == 0:
			return p
		case at == 0:
			return list[0].to - (list[0].from - p)
		}
		return list[at-1].to + (p - list[at-1].from)
	}
}

// position pairs the remaining kernels that lie between the same two paired kernels: a kernel with one of the same
// category that runs about as often. If several replaced it, it is paired with the longest. A kernel whose name does
// not show its category can pair with one of any category, if nothing else was replaced there. If no neighbours are
// paired, as in a step of one kernel, both must take equally long too.
func (m *matcher) position() {
	gap0, gap1 := m.gaps()
	base, head := m.free()
	base = slices.DeleteFunc(base, func(i int) bool { return m.base[i].Position < 0 })
	head = slices.DeleteFunc(head, func(k int) bool { return m.head[k].Position < 0 })
	left0, left1 := map[int]int{}, map[int]int{} // by gap: number of unpaired kernels
	for _, i := range base {
		left0[gap0[i]]++
	}
	for _, k := range head {
		left1[gap1[k]]++
	}
	type candidate struct {
		i, k int
		size float64 // does not depend on which side is the base
	}
	var list []candidate
	for _, i := range base {
		for _, k := range head {
			a, b := &m.base[i], &m.head[k]
			if gap1[k] != gap0[i] || alike(a.Count, b.Count) < 0.8 {
				continue
			}
			n, o := left0[gap0[i]], left1[gap0[i]]
			lone := gap0[i] >= 0 && (n == 1 || o == 1) || n == 1 && o == 1 && equalTimes(a.Time, b.Time)
			if a.Category == b.Category || lone && unnamed(a, b) {
				list = append(list, candidate{i, k, a.Time * b.Time})
			}
		}
	}
	lists.Sort(list, func(a, b candidate) int { return cmp.Compare(b.size, a.size) })
	lists.Lead(list, func(c candidate) bool { return m.base[c.i].Category == m.head[c.k].Category })
	for _, c := range list {
		if m.of[c.i] < 0 && !m.taken[c.k] {
			m.join(c.i, c.k, comparison.ByPosition)
		}
	}
	for _, i := range byPosition(m.base) {
		if m.by[i] == comparison.ByPosition && left0[gap0[i]] == 1 {
			m.split(i, gap0[i], gap1)
		}
	}
	m.lone()
}

// lone pairs kernels of unknown position: if each side has only one unpaired kernel of a category, and both run about
// as often.
func (m *matcher) lone() {
	base, head := m.free()
	base = slices.DeleteFunc(base, func(i int) bool { return m.base[i].Position >= 0 })
	for _, left := range lists.Groups(base, func(i int) string { return m.base[i].Category }) {
		a := &m.base[left[0]]
		right := lists.Filter(head, func(k int) bool { return m.head[k].Position < 0 && m.head[k].Category == a.Category })
		if a.Category != side.Uncategorised && len(left) == 1 && len(right) == 1 &&
			alike(a.Count, m.head[right[0]].Count) >= 0.8 {
			m.join(left[0], right[0], comparison.ByPosition)
		}
	}
}

// unnamed reports whether two kernels of different categories can correspond, because the name of one does not show
// what it does.
func unnamed(a, b *side.Work) bool {
	return (a.Unnamed() || b.Unnamed()) && a.Category != side.Communication &&
		b.Category != side.Communication
}

// split notes the other kernels of the head in the gap where base i was the only kernel, beside its pair.
func (m *matcher) split(i, gap int, gap1 []int) {
	best := m.of[i]
	sum := m.head[best].Time
	var names []string
	for k := range m.head {
		b := &m.head[k]
		if m.taken[k] || b.Position < 0 || gap1[k] != gap || alike(m.base[i].Count, b.Count) < 0.8 {
			continue
		}
		sum += b.Time
		names = append(names, wording.Shorten(b.Name, 60))
		m.splitOf[k] = &m.base[i]
		m.note[-1-k] = fmt.Sprintf("runs where %s ran, beside %s", wording.Shorten(m.base[i].Name, 60), wording.Shorten(m.head[best].Name, 60))
	}
	if len(names) > 0 {
		m.note[i] = fmt.Sprintf("replaced by %d kernels, with %s: together %s per unit instead of %s", len(names)+1,
			strings.Join(names, ", "), NS(sum), NS(m.base[i].Time))
	}
}

// gaps gives each unpaired kernel the base index of the paired kernel that runs before it, so that equal numbers on
// both sides mean the same neighbours. Units repeat: before the first paired kernel runs the last one, if it is the
// same on both sides; otherwise the number is -1.
func (m *matcher) gaps() (base, head []int) {
	own, back := noneOf(len(m.base)), noneOf(len(m.head)) // base index of each paired kernel
	for i, k := range m.of {
		if k >= 0 {
			own[i], back[k] = i, i
		}
	}
	lastBase, lastHead := lastOf(m.base, own), lastOf(m.head, back)
	if lastBase != lastHead {
		lastBase, lastHead = -1, -1
	}
	return before(m.base, own, lastBase), before(m.head, back, lastHead)
}

// lastOf returns the base index of the paired kernel that runs last, of those of known position; -1 if there is none.
func lastOf(list []side.Work, inBase []int) int {
	last := -1
	for _, i := range byPosition(list) {
		if inBase[i] >= 0 && list[i].Position >= 0 {
			last = inBase[i]
		}
	}
	return last
}

// before returns, for each kernel, the base index of the paired one that runs before it; last runs before the first.
func before(list []side.Work, inBase []int, last int) []int {
	out := make([]int, len(list))
	for _, i := range byPosition(list) {
		if out[i] = last; inBase[i] >= 0 {
			last = inBase[i]
		}
	}
	return out
}

// NameKernels fills in the display names of kernels from the kernels section of each report. Kernels of one side that
// share a display name are numbered in row order.
func NameKernels(kernels []comparison.Kernel, base, head *side.Side) {
	short := [2]map[string]string{base.DisplayNames(), head.DisplayNames()}
	seen := [2]map[string]int{{}, {}}
	name := func(side int, full *string) *string {
		if full == nil {
			return nil
		}
		text := cmp.Or(short[side][*full], *full)
		seen[side][text]++
		if n := seen[side][text]; n > 1 {
			text += " (" + strconv.Itoa(n) + ")"
		}
		return &text
	}
	for i := range kernels {
		k := &kernels[i]
		k.BaseShort, k.HeadShort = name(0, k.BaseName), name(1, k.HeadName)
	}
}
