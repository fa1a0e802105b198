package pairing

import (
	"testing"

	"github.com/nsys-llm/explain/diff/internal/side"
)

func TestOnlyNames(t *testing.T) {
	of := func(name string, count, time float64) side.Work {
		return side.Work{Name: name, Canonical: name, Category: name, Family: name, Count: count, Time: time, Position: -1}
	}
	base := []side.Work{of("same", 4, 100), of("a", 2, 60), of("b", 1, 40)}
	for name, x := range map[string]struct {
		head []side.Work
		want bool
	}{
		"two have one name":      {[]side.Work{of("same", 4, 900), of("c", 3, 100.9)}, true},
		"and take 2 % longer":    {[]side.Work{of("same", 4, 100), of("c", 3, 102)}, false},
		"and run once more":      {[]side.Work{of("same", 4, 100), of("c", 4, 100)}, false},
		"one of them is fewer":   {[]side.Work{of("same", 4, 100), of("a", 2, 60)}, false},
		"all have their name":    {base, false},
		"one more beside them":   {append(base[:3:3], of("c", 3, 100)), false},
		"each has several names": {[]side.Work{of("same", 4, 100), of("c", 1, 50), of("d", 1, 25), of("e", 1, 25)}, true},
	} {
		if there, back := OnlyNames(pairsOf(base, x.head)), OnlyNames(pairsOf(x.head, base)); there != x.want || back != x.want {
			t.Errorf("%s: %t, %t back", name, there, back)
		}
	}
}
