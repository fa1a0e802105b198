package pairing

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/side"
)

// A graph of 900 µs beside a copy. One of 2,700 µs takes 3 times as long: beside the same copy it is slower, beside a
// norm that takes the copy's place it may be another graph, as it may where nothing runs beside it. One of 1,700 µs
// takes less than twice as long.
func TestOtherGraphs(t *testing.T) {
	graph := func(us float64, beside ...string) []side.Work {
		list := []side.Work{{Name: "[CUDA graph]", Canonical: "[CUDA graph]", Family: "[CUDA graph]", Category: side.Graph, Count: 1, Time: us, Alone: us}}
		for _, name := range beside {
			list = append(list, side.Work{Name: name, Canonical: name, Family: name, Category: name, Count: 1, Time: 10, Alone: 10})
		}
		return list
	}
	base := graph(900, "copy")
	for _, x := range []struct {
		what       string
		base, head []side.Work
		want       string
	}{
		{"slower", base, graph(2700, "copy"), ""},
		{"another", base, graph(2700, "norm"), "take 3 times as long"},
		{"another, shorter", graph(2700, "norm"), base, "take 0.333 times as long"},
		{"of about that length", base, graph(1700, "norm"), ""},
		{"alone", graph(900), graph(2700), "take 3 times as long"},
		{"no graph", base[1:], graph(2700, "norm")[1:], ""},
	} {
		if got := otherGraphs(x.base, x.head); (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q", x.what, got)
		}
	}
}
