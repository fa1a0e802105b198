package ncu

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Flops are the floating point operations of a launch by data type, as far as they were counted. A fused multiply-add
// counts as two operations, as in every roofline.
type Flops struct {
	known [numTypes]bool
	count [numTypes]float64
}

// The types that are counted: ordinary pipelines by width, tensor cores by the type that they multiply.
const (
	fp64 = iota
	fp32
	fp16
	tensorHalf // fp16 or bf16, accumulated in fp32
	tensorHalf16
	tensorTF32
	tensorFP8
	tensorFP4
	tensorFP64
	numTypes
)

// ceiling is the name of the peak of a type in package peaks; empty if that has none.
var ceiling = [numTypes]string{peaks.FP64, peaks.FP32, "", peaks.FP16, peaks.FP16Accumulated, peaks.TF32, peaks.FP8,
	peaks.FP4, ""}

// typeNames are how the report calls them. tensor_fp16 is bf16 too.
var typeNames = [numTypes]string{"fp64", "fp32", "fp16", "tensor_fp16", "tensor_fp16_fp16", "tensor_tf32", "tensor_fp8",
	"tensor_fp4", "tensor_fp64"}

func (f *Flops) add(t int, n float64) {
	f.known[t] = true
	f.count[t] += n
}

// tensor is the operations of the tensor cores; false if they were not counted.
func (f *Flops) tensor() (float64, bool) {
	sum, known := 0.0, false
	for t := tensorHalf; t < numTypes; t++ {
		sum += f.count[t]
		known = known || f.known[t]
	}
	return sum, known
}

// plain is the operations of the ordinary pipelines; false if those of fp32 were not counted.
func (f *Flops) plain() (float64, bool) {
	return f.count[fp64] + f.count[fp32] + f.count[fp16], f.known[fp32] || f.known[fp64]
}

// Total is all operations; nil if a part that may be large was not counted. If tensor operations were not counted, they
// are taken as 0 only if ncu saw the tensor cores idle, or if this kind of kernel does not use them.
func (f *Flops) Total(tensorRatio *float64, usesTensor bool) *float64 {
	t, counted := f.tensor()
	p, plain := f.plain()
	idle := tensorRatio != nil && *tensorRatio == 0
	if counted && t > 0 || plain && (counted || idle || tensorRatio == nil && !usesTensor) {
		return new(t + p)
	}
	return nil
}

// counters are the metrics that count operations, in instructions or operations.
type counters map[counter]float64

type counter struct {
	name string // empty: it is none
	form form
}

// form is what a counter is counted over.
type form int

const (
	total      form = iota // the launch
	everyCycle             // of the SMs
	everySecond
)

// Counters of operations, without the suffix that ncu appends for their form. An instruction of a thread counts only if
// its predicate holds.
var (
	instruction = pattern.New(`^(?:sm|smsp)__sass_thread_inst_executed_op_([fdh](?:add|mul|fma))_pred_on$`)
	tensorPath  = pattern.New(`^sm__ops_path_tensor_(?:op_([a-z0-9]+)_)?src_((?:(?:fp|bf|tf)[0-9]+)(?:_(?:fp|bf|tf)[0-9]+)*)(?:_dst_((?:fp|bf|tf)[0-9]+))?(?:_sparsity_(on|off))?$`)
	chartLabel  = pattern.New(`^Predicated-On ([FDH](?:ADD|MUL|FMA)) Thread Instructions Executed Per Cycle$`)
)

// forms are the ends of metrics that are counters.
var forms = map[string]form{"sum": total, "sum.per_cycle_elapsed": everyCycle, "sum.per_second": everySecond}

func counterOf(metric string) counter {
	if m := chartLabel().FindStringSubmatch(metric); m != nil {
		return counter{strings.ToLower(m[1]), everyCycle}
	}
	base, end, _ := strings.Cut(metric, ".")
	form, ok := forms[end]
	if !ok || !strings.HasPrefix(metric, "sm") {
		return counter{}
	}
	if m := instruction().FindStringSubmatch(base); m != nil {
		return counter{m[1], form}
	}
	if tensorPath().MatchString(base) {
		return counter{base, form}
	}
	return counter{}
}

// count is the value of a counter over the launch.
func (c counters) count(name string, l *Launch) (float64, bool) {
	if v, ok := c[counter{name, total}]; ok {
		return v, true
	}
	d := l.Get(Duration)
	if d == nil {
		return 0, false
	}
	if v, ok := c[counter{name, everySecond}]; ok {
		return v * *d * 1e-9, true
	}
	clock := cmp.Or(l.Get(SMClockAchieved), l.Get(SMClock))
	if v, ok := c[counter{name, everyCycle}]; ok && clock != nil {
		return v * *clock * *d * 1e-9, true
	}
	return 0, false
}

// flops adds the counters up. For the ordinary pipelines a type is known only if additions, multiplications and fused
// ones all are.
func (c counters) flops(l *Launch) Flops {
	var f Flops
	for t, letter := range map[int]string{fp64: "d", fp32: "f", fp16: "h"} {
		add, ok1 := c.count(letter+"add", l)
		mul, ok2 := c.count(letter+"mul", l)
		fma, ok3 := c.count(letter+"fma", l)
		if ok1 && ok2 && ok3 {
			f.add(t, add+mul+2*fma)
		}
	}
	var paths []path
	for k := range c {
		m := tensorPath().FindStringSubmatch(k.name)
		if m == nil || slices.ContainsFunc(paths, func(q path) bool { return q.counter == k.name }) {
			continue
		}
		if n, ok := c.count(k.name, l); ok {
			paths = append(paths, path{k.name, m[1], m[3], m[4], strings.Split(m[2], "_"), n})
		}
	}
	lists.Sort(paths, func(a, b path) int { return strings.Compare(a.counter, b.counter) })
	for _, p := range paths {
		if !slices.ContainsFunc(paths,
			func(q path) bool { return p.isPartOf(q) && (!q.isPartOf(p) || q.counter < p.counter) }) {
			f.add(p.kind(), p.n)
		}
	}
	return f
}

// path is a counter of tensor core operations: its inputs, and its value. ncu counts at several levels: all of bf16,
// those accumulated in fp32, those without sparsity; a part must not be added to its whole.
type path struct {
	counter, op, to, sparsity string
	from                      []string
	n                         float64
}

// isPartOf reports whether everything that p counts is in q as well.
func (p path) isPartOf(q path) bool {
	if p.counter == q.counter {
		return false
	}
	if slices.ContainsFunc(p.from, func(t string) bool { return !slices.Contains(q.from, t) }) {
		return false
	}
	in := func(part, whole string) bool { return whole == "" || part == whole }
	return in(p.op, q.op) && in(p.to, q.to) && in(p.sparsity, q.sparsity)
}

// kind is the type that p is counted as: the widest of those it multiplies.
func (p path) kind() int {
	for _, t := range []struct {
		from string
		kind int
	}{{"fp64", tensorFP64}, {"tf32", tensorTF32}, {"bf16", tensorHalf}, {"fp16", tensorHalf}, {"fp8", tensorFP8},
		{"fp6", tensorFP8}, {"fp4", tensorFP4}} {
		if !slices.Contains(p.from, t.from) {
			continue
		}
		if t.kind == tensorHalf && p.to == "fp16" {
			return tensorHalf16
		}
		return t.kind
	}
	return tensorHalf
}
