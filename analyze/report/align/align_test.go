package align_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/align"
)

func TestPairs(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want []int32
	}{
		{"ENGNGS", "ENGNGS", []int32{0, 1, 2, 3, 4, 5}},
		{"ENGNGS", "ENGLNGS", []int32{0, 1, 2, -1, 3, 4, 5}}, // a kernel more
		{"ENGLNGS", "ENGNGS", []int32{0, 1, 2, 4, 5, 6}},     // one less
		{"ENGNGS", "ENHNGS", []int32{0, 1, -1, 3, 4, 5}},     // another instead
		{"", "EN", []int32{-1, -1}},
		{"EN", "", []int32{}},
	} {
		got, ok := align.Pairs([]byte(x.a), []byte(x.b), align.MaxEdits)
		if !ok || !slices.Equal(got, x.want) {
			t.Errorf("%s to %s: %v, want %v", x.a, x.b, got, x.want)
		}
	}
}

// TestTooDifferent keeps what is common at the ends.
func TestTooDifferent(t *testing.T) {
	got, ok := align.Pairs([]byte("a12345b"), []byte("a67890b"), 9)
	if ok || !slices.Equal(got, []int32{0, -1, -1, -1, -1, -1, 6}) {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok = align.Pairs([]byte("a12345b"), []byte("a67890b"), 10); !ok {
		t.Errorf("ten edits are enough: %v", got)
	}
}

// TestPairsAreLongest compares with the textbook's table of longest common subsequences.
func TestPairsAreLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,12}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		of, ok := align.Pairs([]byte(a), []byte(b), align.MaxEdits)
		if !ok {
			t.Fatal("gave up")
		}
		n, last := 0, int32(-1)
		for k, i := range of {
			if i < 0 {
				continue
			}
			if i <= last || a[i] != b[k] {
				t.Fatalf("%q to %q: %v", a, b, of)
			}
			last = i
			n++
		}
		if want := longest(a, b); n != want {
			t.Fatalf("%q to %q: %d pairs, want %d: %v", a, b, n, want, of)
		}
	})
}

func longest(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range len(a) {
		for k := range len(b) {
			if a[i] == b[k] {
				table[i+1][k+1] = table[i][k] + 1
			} else {
				table[i+1][k+1] = max(table[i][k+1], table[i+1][k])
			}
		}
	}
	return table[len(a)][len(b)]
}

// TestManyEdits takes a unit of 20,000 kernels in which every tenth got a neighbour.
func TestManyEdits(t *testing.T) {
	layer := "ngarmf"
	a := []byte(strings.Repeat(layer, 20_000/len(layer)))
	var b []byte
	for i, x := range a {
		if b = append(b, x); i%10 == 0 {
			b = append(b, 'L')
		}
	}
	of, ok := align.Pairs(a, b, align.MaxEdits)
	if !ok {
		t.Fatal("gave up")
	}
	n := 0
	for _, i := range of {
		if i >= 0 {
			n++
		}
	}
	if n != len(a) {
		t.Errorf("%d of %d are paired", n, len(a))
	}
}
