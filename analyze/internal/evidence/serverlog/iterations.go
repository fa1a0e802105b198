package serverlog

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Iteration is one step of an engine, as vLLM's iteration details or TensorRT-LLM's iteration log state it.
type Iteration struct {
	clock         int64  // seconds, by the log
	Index         uint32 // as the log counts
	Line          uint32 // of the file, from 1
	micros        uint32 // elapsed
	device        uint32 // microseconds, plus one; 0 unknown
	ContextTokens uint32 // of prefill
	Tokens        uint32 // of generation
	Context       uint16 // requests in prefill
	Generation    uint16 // requests in decode
}

// Elapsed is the duration of the iteration.
func (i *Iteration) Elapsed() time.Duration { return time.Duration(i.micros) * time.Microsecond }

// Device is the GPU time of the iteration, if the log states it.
func (i *Iteration) Device() (t time.Duration, ok bool) {
	return time.Duration(int64(i.device)-1) * time.Microsecond, i.device > 0
}

// Type of an iteration.
type Type int

// Types of iterations, by the requests they work on.
const (
	Prefill Type = iota
	Decode
	Mixed
	Idle
	Types
)

// TypeNames are the labels of the types.
var TypeNames = [Types]string{"prefill", "decode", "mixed", "idle"}

// Type of the iteration: mixed works on prefill and decode at once, idle has no requests.
func (i *Iteration) Type() Type {
	switch {
	case i.Context > 0 && i.Generation > 0:
		return Mixed
	case i.Context > 0:
		return Prefill
	case i.Generation > 0:
		return Decode
	}
	return Idle
}

// Iterations are all iterations of the logs, in their order: narrow rows, in blocks, so that growing copies nothing.
type Iterations struct {
	blocks  [][]Iteration
	n       int
	Dropped int64 // beyond maxIterations: read, and not kept
}

const (
	iterationBlock = 1 << 14
	// maxIterations are kept, at 40 bytes each. A log of 2 GB has ten million.
	maxIterations = 1 << 24
)

// Len is the number that was kept.
func (it *Iterations) Len() int { return it.n }

// At is the i-th iteration.
func (it *Iterations) At(i int) *Iteration { return &it.blocks[i/iterationBlock][i%iterationBlock] }

// Clock is the time at which an iteration ended by the log, in seconds; NoClock if it states none.
func (it *Iterations) Clock(i int) int64 { return it.At(i).clock }

func (it *Iterations) add(row Iteration, clock int64) {
	if it.n == maxIterations {
		it.Dropped++
		return
	}
	row.clock = clock
	if it.n%iterationBlock == 0 {
		it.blocks = append(it.blocks, make([]Iteration, 0, iterationBlock))
	}
	last := &it.blocks[len(it.blocks)-1]
	*last, it.n = append(*last, row), it.n+1
}

// parseIteration reads the text after "Iteration(":
//
//	0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 36.68 ms
func parseIteration(b []byte) (row Iteration, ok bool) {
	var v [5]int64
	for i, key := range [...]string{"): ", " context requests, ", " context tokens, ", " generation requests, ",
		" generation tokens"} {
		if v[i], b, ok = digits(b); !ok {
			return row, false
		}
		if b, ok = cutPrefix(b, key); !ok {
			return row, false
		}
	}
	rest, _ := after(b, "elapsed time: ")
	micros, ok := thousandths(rest)
	if !ok {
		return row, false
	}
	return Iteration{Index: narrow(v[0]), Context: short(v[1]), ContextTokens: narrow(v[2]), Generation: short(v[3]),
		Tokens: narrow(v[4]), micros: micros}, true
}

// thousandths reads "36.68 ms" as microseconds, rounded.
func thousandths(b []byte) (uint32, bool) {
	v, rest, ok := decimal(b)
	ok = ok && v <= math.MaxUint32/1000 && hasPrefix(skipSpace(rest), "ms")
	return uint32(min(math.Round(v*1e3), math.MaxUint32)), ok
}

func narrow(v int64) uint32 { return uint32(min(v, math.MaxUint32)) }
func short(v int64) uint16  { return uint16(min(v, math.MaxUint16)) }

// UnitRule says which iterations are units of work. It is the same for every log.
const UnitRule = "Each iteration that works on requests is a unit. Kinds are distinguished by type: decode by the " +
	"number of its requests, prefill and mixed by the number of their tokens, rounded up to a power of two. " +
	"Idle iterations and kinds that occur only once are left out. Warm-up: the first units of a kind while they take " +
	"longer than the median of those after the first third, or after the first ten, by 2 % and by three standard " +
	"deviations (estimated from the median absolute deviation). At most two units, one in ten, or that third are " +
	"warm-up: more are a trend and stay, as do more than two if times keep falling after them."

// UnitGroup is one kind of iteration.
type UnitGroup struct {
	Type          Type
	Batch, Tokens int64   // requests, and tokens rounded up to a power of two; -1 if they do not identify the kind
	Kept          []int32 // iterations, in their order
	Warmup        int64   // iterations that were left out as warm-up
	Total         int64   // ns, of the kept ones
}

// Units sorts the iterations into kinds, those with most time first. other counts those of kinds that occur once.
func (d *Data) Units() (groups []UnitGroup, other int64) {
	at := func(i int32) *Iteration { return d.Iterations.At(int(i)) }
	type kind struct {
		t             Type
		batch, tokens int64
	}
	kindOf := func(i int32) kind {
		it := at(i)
		if it.Type() == Decode {
			return kind{Decode, int64(it.Generation), -1}
		}
		return kind{it.Type(), -1, powerOfTwo(int64(it.ContextTokens) + int64(it.Tokens))}
	}
	working := lists.Where(d.Iterations.Len(), func(i int32) bool { return at(i).Type() != Idle })
	for _, list := range lists.Groups(working, kindOf) {
		if len(list) < 2 {
			other++
			continue
		}
		times := lists.Map(list, func(i int32) float64 { return float64(at(i).Elapsed()) })
		k, n := kindOf(list[0]), stat.Warmup(times)
		groups = append(groups, UnitGroup{Type: k.t, Batch: k.batch, Tokens: k.tokens, Kept: list[n:], Warmup: int64(n),
			Total: lists.Sum(times[n:], func(v float64) int64 { return int64(v) })})
	}
	lists.Sort(groups, func(a, b UnitGroup) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Batch, b.Batch),
			cmp.Compare(a.Tokens, b.Tokens))
	})
	return groups, other
}

// powerOfTwo is the least power of two that is not below v.
func powerOfTwo(v int64) int64 {
	if v <= 1 {
		return max(v, 0)
	}
	return 1 << bits.Len64(uint64(v-1))
}
