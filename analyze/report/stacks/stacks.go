// Package stacks makes one tree of what a step's time is in: the ranges around the calls that launch its work, in them
// the kernels, and the idle time and copies before those. A tree is of a step before and after, so that a single step
// is one that has nothing after. It knows neither reports nor comparisons.
package stacks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Kinds of box. All but Step, Range and Category are leaves.
const (
	Step     = "step"     // the whole
	Range    = "range"    // an NVTX range; its name is out of a capture
	Category = "category" // of kernels that no range is around
	Kernel   = "kernel"   // its name is out of a capture
	Idle     = "idle"     // before the kernels of what it is in; Category is its cause
	Copies   = "copies"   // in which only copies ran, likewise
	End      = "end"      // after the last kernel, until the next step
	Rest     = "rest"     // kernels of other steps
	Others   = "others"   // small boxes together
)

// Side of a step.
type Side int

// Sides. The base comes first: what the head has is laid over it.
const (
	Base Side = iota
	Head
)

// Box is a part of a step: ns per unit on both sides. A box that is no leaf is the sum of those inside it.
type Box struct {
	Parent         int // place of the box around it, before its own; -1 for the step
	Kind           string
	Name, Category string
	Boxes          int // that Others is of
	Base, Head     float64
}

// Width is how wide a leaf is drawn: as the side that has more of it, so that what is gone can be seen too.
func (b *Box) Width() float64 { return max(b.Base, b.Head, 0) }

// Words are what a box is called that has no name out of a capture.
func (b *Box) Words() string {
	switch b.Kind {
	case Idle:
		return "GPU idle: " + b.Category
	case Others:
		return strconv.Itoa(b.Boxes) + " smaller"
	}
	return cmp.Or(words[b.Kind], strings.ReplaceAll(b.Category, "_", " "), "GPU idle")
}

var words = map[string]string{Step: "one step", Copies: "copies alone", End: "until the next step",
	Rest: "other steps' kernels"}

// MaxDepth bounds the ranges in each other; those further inward are left out.
const MaxDepth = 24

// Tree is added to and then read once. The zero value is an empty one.
type Tree struct{ root node }

type node struct {
	Box
	width    float64
	children []*node
	at       map[key]*node
	folded   map[string]*node // ranges of the base by their name without digits; nil if there are several
}

type key struct{ kind, name, category string }

// Add puts time in ns into a leaf inside ranges, the outermost first. The time of leaves that are the same is summed.
// The head's ranges are the base's of the same name, and if there is none, of the one whose name differs in numbers
// alone.
func (t *Tree) Add(side Side, ranges []string, leaf Box, ns float64) {
	n := &t.root
	for _, name := range ranges[:min(len(ranges), MaxDepth)] {
		n = n.child(side, key{kind: Range, name: name})
	}
	if len(ranges) == 0 {
		switch leaf.Kind {
		case Kernel:
			n = n.child(side, key{kind: Category, category: leaf.Category})
		case Idle:
			n = n.child(side, key{kind: Category})
		}
	}
	n = n.child(side, key{leaf.Kind, leaf.Name, leaf.Category})
	if side == Base {
		n.Base += ns
	} else {
		n.Head += ns
	}
}

func (n *node) child(side Side, k key) *node {
	if c := n.at[k]; c != nil {
		return c
	}
	fold := ""
	if k.kind == Range {
		if fold = withoutDigits(k.name); side == Head && n.folded[fold] != nil {
			return n.folded[fold]
		}
	}
	c := &node{Box: Box{Kind: k.kind, Name: k.name, Category: k.category}}
	if n.at == nil {
		n.at, n.folded = map[key]*node{}, map[string]*node{}
	}
	n.at[k] = c
	n.children = append(n.children, c)
	if k.kind == Range && side == Base {
		if _, several := n.folded[fold]; several {
			n.folded[fold] = nil
		} else {
			n.folded[fold] = c
		}
	}
	return c
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// Boxes are the tree, each box behind the one around it: ranges in the order in which they were added, then leaves, the
// widest first. Small boxes are put together so that there are at most so many; nothing is left out of a sum. The share
// is that of the step below which a box is small from the start.
func (t *Tree) Boxes(most int, share float64) []Box {
	t.root.Kind, t.root.Parent = Step, -1
	t.root.sum()
	for least := share * t.root.width; ; least = max(2*least, t.root.width/1e4) {
		list := []Box{t.root.Box}
		t.root.list(&list, 0, least)
		if len(list) <= most || least > t.root.width {
			return list
		}
	}
}

func (n *node) sum() {
	if len(n.children) == 0 {
		n.width = n.Width()
		return
	}
	n.Base, n.Head, n.width = 0, 0, 0
	for _, c := range n.children {
		c.sum()
		n.Base, n.Head, n.width = n.Base+c.Base, n.Head+c.Head, n.width+c.width
	}
	inner := func(c *node) bool { return len(c.children) > 0 }
	lists.Lead(n.children, inner)
	lists.Sort(n.children[lists.Count(n.children, inner):], func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.width, a.width), cmp.Compare(a.Name, b.Name))
	})
}

func (n *node) list(out *[]Box, at int, least float64) {
	others := Box{Parent: at, Kind: Others}
	var only *node
	small := 0
	for _, c := range n.children {
		if c.width < least || c.width == 0 {
			others.Base, others.Head = others.Base+c.Base, others.Head+c.Head
			small, only = small+1, c
			continue
		}
		b := c.Box
		b.Parent = at
		*out = append(*out, b)
		c.list(out, len(*out)-1, least)
	}
	if others.Boxes = small; small == 1 {
		others = only.Box
		others.Parent = at
	}
	if small > 0 {
		*out = append(*out, others)
	}
}

// Places are, for each box, how many are around it, where it starts and how wide it is, ns: as wide as what is in it,
// the boxes beside each other.
func Places(list []Box) (depth []int, start, width []float64) {
	depth, start, width = make([]int, len(list)), make([]float64, len(list)), make([]float64, len(list))
	inner := make([]bool, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		if !inner[i] {
			width[i] = list[i].Width()
		}
		if p := list[i].Parent; p >= 0 {
			inner[p] = true
			width[p] += width[i]
		}
	}
	next := slices.Clone(start)
	for i := range list {
		p := list[i].Parent
		if p >= 0 {
			depth[i], start[i] = depth[p]+1, next[p]
			next[p] += width[i]
		}
		next[i] = start[i]
	}
	return depth, start, width
}
