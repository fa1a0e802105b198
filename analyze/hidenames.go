package analyze

import (
	"crypto/sha256"
	"regexp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// plainWords are words that say nothing of who wrote a name: those of engines' step markers and of what a report
// recognises by name.
var plainWords = words(`all allgather allreduce attention attn autograd aten backward batch batchdecode batchdraft batchjumpforward
	batchprefill batchverify block bs c cached context cpu ctx cudagraph cuda d decode decoder decoding diffusion draft dspark dummy eager embed
	embedding encoder engine evaluate execute executecontext executor extend expert experts ffn for forward function g gen generation getting
	gil gpu head holding i idle in inner inter is it iter iteration iterations l layer layernorm layers len linear llm lm m mixed mlp mm
	model moe n nccl ncclallgather ncclallreduce ncclbroadcast ncclreducescatter new norm num o of only optimizer out output p
	page pp prebuilt prefill profilerstep proj q k v qkv r recv reduce reduced reqs request requests rms rmsnorm rope router run runner s
	sample sampler sampling schedule scheduler self send seq seqs sk softmax sp spec sq sqsk sqsq step t target tok token tokens toks topk
	total tp train verify waiting warmup x zero grad`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

var (
	letterRun = regexp.MustCompile(`[\pL\pM]+`)
	// ownOperator is an operator of PyTorch, and what emit_nvtx writes behind it but for its arguments.
	ownOperator = regexp.MustCompile(`^(?:aten|c10d|prims)::\w+(?:, (?:seq|op_id) = \d+)*$`)
)

// HideNames writes a name as 12 letters that follow from it, and those that keep matches as they are; nil keeps none.
// Names that differ in counters only have the same letters, as they have the same name in a report. Who guesses a name
// can tell whether it is right.
//
// What a report recognises stays recognisable: step markers of engines with their numbers, names of nothing but words
// that they use, PyTorch's own operators, and that a name is a library's; behind the letters of other names stands the part of a model, or the phase, that the
// name tells.
func HideNames(keep *regexp.Regexp) func(name string) string {
	hidden := map[string]string{}
	return func(name string) string {
		if keep != nil && keep.MatchString(name) || ownOperator.MatchString(name) {
			return name
		}
		if _, marker := kernelname.ParseMarker(name); marker || onlyPlain(name) {
			return letterRun.ReplaceAllStringFunc(name, func(word string) string {
				if plainWords[strings.ToLower(word)] || marker && layerKeys[word] {
					return word
				}
				return letters(word)
			})
		}
		key := string(kernelname.AppendRangeCanonical(nil, name))
		text, ok := hidden[key]
		if !ok {
			if text = disguise(key, name); len(hidden) < 1<<20 {
				hidden[key] = text
			}
		}
		return text
	}
}

// layerKeys are what the markers of layer hooks have around a module and its inputs.
var layerKeys = map[string]bool{"Module": true, "Inputs": true}

func onlyPlain(name string) bool {
	for _, word := range letterRun.FindAllString(name, -1) {
		if !plainWords[strings.ToLower(word)] {
			return false
		}
	}
	return strings.Trim(name, "0123456789") != "" && longestNumber(name) <= 6 // a longer one may be of a person
}

func longestNumber(s string) (most int) {
	for run, i := 0, 0; i < len(s); i++ {
		if run++; s[i] < '0' || s[i] > '9' {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// letters are 12 that follow from a text: digits would be taken for a counter.
func letters(text string) string {
	sum := sha256.Sum256([]byte(text))
	b := make([]byte, 12)
	for i := range b {
		b[i] = 'a' + sum[i]%26
	}
	return string(b)
}

// disguise is the letters of a name, by its canonical form, and the words for its part of a model and for its phase,
// such that the same are read from them.
func disguise(key, name string) string {
	component, phase := kernelname.RangeComponent(name), kernelname.BuiltinPhase(name)
	tail := ""
	if word := partWords[component]; word != "" {
		tail = "_" + word
	}
	if phase == "mixed" {
		tail = "_prefill_decode" + tail
	} else if phase != "" {
		tail = "_" + phase + tail
	}
	head := libraryOf(name)
	for salt := 0; ; salt++ {
		text := head + letters(key) + tail
		if salt == 8 || kernelname.RangeComponent(text) == component && kernelname.BuiltinPhase(text) == phase {
			return text
		}
		key += strconv.Itoa(salt) // the letters happen to be a word
	}
}

// libraryOf is how the hidden form of a name begins whose beginning tells that a library or PyTorch wrote it.
func libraryOf(name string) string {
	const backward = "autograd::engine::evaluate_function: "
	op, operator := kernelname.Operator(name)
	switch {
	case strings.HasPrefix(name, backward):
		return backward
	case operator:
		space, _, _ := strings.Cut(op, "::")
		return letters(space) + "::"
	case workunit.Library(name) != "":
		return workunit.Library(name)
	case strings.Contains(name, "::"):
		return "X::" // no operator: those begin in lower case
	}
	return ""
}

// partWords are words for parts of a model.
var partWords = map[string]string{kernelname.CompAttention: "attn", kernelname.CompMoE: "moe", kernelname.CompFFN: "mlp",
	kernelname.CompNorm: "norm", kernelname.CompEmbedding: "embed"}
