package kernelname

import (
	_ "embed"
	"strings"
	"sync"
)

// symbols.tsv is the dictionary: kernels of public engines and libraries by their own names, and what they do. It says
// whose each is, and in which version it was read; "-" is a name known from the public project, of no one version.
// TestDictionaryFromACheckout writes it anew from the sources of a project. What
// template arguments decide (DeepGEMM's products are grouped by expert or not) is left to the rules.
//
//go:embed symbols.tsv
var symbolText string

// Symbols is the dictionary: the category by symbol.
var Symbols = sync.OnceValue(func() map[string]Category {
	out := make(map[string]Category, strings.Count(symbolText, "\n"))
	_, rows, _ := strings.Cut(symbolText, "\n")
	for line := range strings.Lines(rows) {
		symbol, rest, _ := strings.Cut(line, "\t")
		category, _, _ := strings.Cut(rest, "\t")
		out[symbol] = Category(category)
	}
	return out
})

// known looks the kernel's own name up in the dictionary, with as many of its namespaces as it has there.
func known(head string) (Category, bool) {
	head = strings.TrimSuffix(head[strings.LastIndexByte(head, ' ')+1:], "_#")
	for {
		if c, ok := Symbols()[head]; ok {
			return c, true
		}
		i := strings.Index(head, "::")
		if i < 0 {
			return "", false
		}
		head = head[i+2:]
	}
}
