package kernelname

import (
	_ "embed"
	"strings"
	"sync"
)

// symbols.tsv is the dictionary: kernels of public engines and libraries by their own names, and what they do. It says
// in whose sources each was read and in which version, a release or a commit: one project of those that have it, because
// they copy from each other. "-" is a name that is known from the project and was read in no one version. A name that
// two kernels of different work share has the namespace (finalize::finalizeKernel) or is left to the rules, as is one
// that could be anything elsewhere (topk_kernel) and what template arguments decide (DeepGEMM's products are grouped by
// expert or not). TestDictionaryFromACheckout writes the file anew from the sources of a project.
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
