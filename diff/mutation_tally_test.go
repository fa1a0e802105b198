package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

func exitOf(c *comparison.Comparison) int {
	switch c.Verdict {
	case comparison.Fail:
		return 1
	case comparison.Inconclusive:
		return 4
	case comparison.Error:
		return 3
	case comparison.Pass, comparison.Warn:
	}
	return 0
}

// tally counts what came of the mutants of one edit.
type tally struct {
	edit string
	n    int // mutants
	mutantLimit
}

// mutantLimit is how many mutants may come out wrong.
type mutantLimit struct {
	missed  int // true loss from 10 % on: exit 0
	silent  int // true loss of 5.5 to 10 %: exit 0; wanted: at most 10 %
	passed  int // the same: the verdict is pass
	unnamed int // the cause names nothing of what was changed; wanted: at most 5 %
	failed  int // harmless: exit 1; wanted: at most 1 %. Events lost: exit 1
	open    int // harmless: exit 4; wanted: at most 3 %. Events lost: exit 0
}

func (l *mutantLimit) fields() []*int {
	return []*int{&l.missed, &l.silent, &l.passed, &l.unnamed, &l.failed, &l.open}
}

var limitNames = []string{"≥ 10 %: exit 0", "5.5–10 %: exit 0", "5.5–10 %: pass", "cause not named", "exit 1", "exit 4 (lost: 0)"}

// judge counts a harmful mutant.
func (t *tally) judge(truth mutant.Truth, c *comparison.Comparison) {
	t.n++
	quiet := exitOf(c) == 0
	switch {
	case truth.Work >= 1.0975: // 10 %, sized to within 2 % of it
		t.missed += oneIf(quiet)
	default:
		t.silent += oneIf(quiet)
		t.passed += oneIf(c.Verdict == comparison.Pass)
	}
	t.unnamed += oneIf(!blames(c, truth.Names))
}

// harmless counts a mutant that does no harm.
func (t *tally) harmless(c *comparison.Comparison) {
	t.n++
	t.failed += oneIf(exitOf(c) == 1)
	t.open += oneIf(exitOf(c) == 4)
}

// copied counts another export of the base, which is no other capture and says so.
func (t *tally) copied(c *comparison.Comparison) {
	t.n++
	t.failed += oneIf(exitOf(c) == 1 || !c.Identical)
	t.open += oneIf(exitOf(c) != 4 || !c.Has(comparison.SameCapture))
}

// incomplete counts a capture that lost events, of which nothing can be said.
func (t *tally) incomplete(c *comparison.Comparison) {
	t.n++
	t.failed += oneIf(exitOf(c) == 1)
	t.open += oneIf(exitOf(c) == 0)
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// tallies are by edit, in the order of their first mutant.
type tallies struct{ list []*tally }

func (l *tallies) at(edit string) *tally {
	i := slices.IndexFunc(l.list, func(t *tally) bool { return t.edit == edit })
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, &tally{edit: edit})
	}
	return l.list[i]
}

// hold compares the counts with their limits, and prints both as a table.
func (l *tallies) hold(t *testing.T, limits map[string][3]mutantLimit, which int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n| edit | mutants | %s |\n|---|---|---|---|---|---|---|---|\n", strings.Join(limitNames, " | "))
	total := tally{edit: "sum"}
	for _, x := range l.list {
		allowed := limits[x.edit][which]
		fmt.Fprintf(&b, "| %s | %d ", x.edit, x.n)
		total.n += x.n
		for i, got := range x.fields() {
			most := *allowed.fields()[i]
			*total.fields()[i] += *got
			fmt.Fprintf(&b, "| %d ", *got)
			if *got > most {
				t.Errorf("%s, %s: %d of %d mutants, at most %d are allowed", x.edit, limitNames[i], *got, x.n, most)
			} else if *got < most {
				t.Logf("%s, %s: %d of %d mutants, %d are allowed: lower the limit", x.edit, limitNames[i], *got, x.n, most)
			}
		}
		b.WriteString("|\n")
	}
	fmt.Fprintf(&b, "| sum | %d ", total.n)
	for _, got := range total.fields() {
		fmt.Fprintf(&b, "| %d ", *got)
	}
	b.WriteString("|\n| wanted | | 0 | 10 % | 0 | 5 % | 1 % (lost: 0) | 3 % (lost: 0) |\n")
	t.Log(b.String())
}

// blames reports whether the sentence about the cause names one of the parts.
func blames(c *comparison.Comparison, parts []string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool {
		return strings.Contains(c.Cause, p[:min(len(p), 40)]) || // long names are cut
			slices.ContainsFunc(c.Kernels, func(k comparison.Kernel) bool { return shownAs(c, k, p) })
	})
}

// shownAs reports whether the cause names a kernel by the name that tables show of it.
func shownAs(c *comparison.Comparison, k comparison.Kernel, name string) bool {
	for _, n := range [][2]*string{{k.BaseName, k.BaseShort}, {k.HeadName, k.HeadShort}} {
		if n[0] != nil && n[1] != nil && mutant.Short(*n[0]) == name {
			shown, _, _ := strings.Cut(*n[1], " (") // those that share a name are numbered
			if strings.Contains(c.Cause, shown) {
				return true
			}
		}
	}
	return false
}
