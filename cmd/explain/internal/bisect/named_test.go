package bisect

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestNamed: a commit that a search names while it goes on is the culprit. Of 200 searches each, after every capture from
// the second on that neither shows no change nor many, the commit with most probability is the culprit in so many of the
// cases in which its probability is enough, %, and it is enough in so many of all cases, %:
//
//	              named at once   1.5/n      2/n       3/n       1/2
//	 7 commits, +5 %   58 100    80  65    85  57    95  46   100  41
//	 7 commits, +3 %   64 100    85  67    89  61    97  50    98  46
//	64 commits, +5 %   34 100    44  76    48  69    52  63   100  22
//	64 commits, +3 %   43 100    54  77    57  73    61  67    97  29
//	no change           0 100     0  48     0  40     0  32     -   0
func TestNamed(t *testing.T) {
	searches := 30
	if longtest.On() {
		searches = 200
	}
	for _, x := range []scene{{name: "7, +3 %", commits: 7, slower: step(0.03), noise: 0.01},
		{name: "64, +5 %", commits: 64, slower: step(0.05), noise: 0.01}, {name: "nothing", commits: 64, slower: none, noise: 0.01}} {
		named, right := 0, 0
		for seed := range searches {
			x.each(t, uint64(seed), func(r Result, captures, culprit int) {
				switch {
				case captures < 2 || !r.Named():
				case r.First <= culprit && culprit <= r.Last && x.name != "nothing":
					named, right = named+1, right+1
				default:
					named++
				}
			})
		}
		if x.name == "nothing" && named > 0 || x.name != "nothing" && (named < searches || float64(right) < 0.95*float64(named)) {
			t.Errorf("%s: %d of %d named commits are right", x.name, right, named)
		}
	}
}
