package kernelname

import (
	_ "embed"
	"strings"
	"sync"
)

// symbols.tsv is the dictionary: kernels of public engines and libraries by their own names, and their work. It states
// in which sources each was read and in which version, a release or a commit: only one project of those that have the
// kernel, because they copy from each other. "-" marks a name known from the project but not read in any version. If
// two kernels of different work share a name, it has its namespace (finalize::finalizeKernel) or is left to the rules;
// so are names that could mean anything elsewhere (topk_kernel), and kernels whose work depends on template arguments
// (DeepGEMM's products are grouped by expert or not). TestDictionaryFromACheckout writes the file anew from the sources
// of a project.
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

// known looks the kernel's own name up in the dictionary, with as many of its namespaces as the entry has.
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
