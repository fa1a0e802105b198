package ncu

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// Kernel is all launches of one name. Shares and rates are means over its launches, weighted by their durations, or
// plain means if no launch has a duration.
type Kernel struct {
	Name     string // the demangled name, with the casts of older versions left out; shortened if it is very long
	Full     string // the same, never shortened
	Info     kernelname.Info
	Launches []*Launch
	ID       string
	Grid     string // if it is the same for all launches
	Block    string

	Duration   *float64 // ns, the sum
	Throughput *float64 // bytes per second over device memory
	Bytes      *float64 // over device memory, the sum of the launches where they were counted
	Flops      *float64 // operations, the sum; known if they are for all launches
	FlopRate   *float64 // operations per second
	Intensity  *float64 // operations per byte of device memory

	mean [numFields]*float64
	most int // type with most operations
}

// Get is the mean of a field; of bytes it is not weighted, and of registers and blocks it is the largest.
func (k *Kernel) Get(f Field) *float64 { return k.mean[f] }

// Bound is the limit of a kernel's speed.
type Bound string

// Bounds, as the report names them.
const (
	Compute  Bound = "compute"
	Memory   Bound = "memory"
	Balanced Bound = "balanced"
	Latency  Bound = "latency"
	Unknown  Bound = "unknown"
)

// Bounds in the order in which they are shown.
var Bounds = []Bound{Compute, Memory, Balanced, Latency, Unknown}

// Rules of Bound and Classification.
const (
	margin = 0.05 // SM and DRAM throughput that differ by less are balanced: llm-perf-opt's 5 percentage points
	busy   = 0.60 // of peak: below, neither compute nor memory is the limit, says Nsight Compute's own rule
)

// Bound is the limit of the kernel. If the SMs or the device memory exceed 60 % of their peak, it is the one ahead by
// more than 5 percentage points; if only the caches do, it is memory; else it is latency.
func (k *Kernel) Bound() Bound {
	sm, dram, memory := k.Get(SMRatio), k.Get(DRAMRatio), k.Get(MemoryRatio)
	switch {
	case sm == nil || dram == nil:
		return Unknown
	case *sm > busy || *dram > busy:
		return side(*sm, *dram)
	case memory != nil && *memory > busy:
		return Memory
	}
	return Latency
}

// DRAMBound reports whether device memory is busy, rather than a cache.
func (k *Kernel) DRAMBound() bool {
	dram := k.Get(DRAMRatio)
	return dram != nil && *dram > busy
}

func side(sm, dram float64) Bound {
	const rounding = 1e-9 // 25.26 % - 20.26 % is not more than 5 %
	switch d := sm - dram; {
	case d > margin+rounding:
		return Compute
	case d < -margin-rounding:
		return Memory
	}
	return Balanced
}

// Classification is llm-perf-opt's: whether SMs or device memory are ahead, however busy they are.
func (k *Kernel) Classification() string {
	sm, dram := k.Get(SMRatio), k.Get(DRAMRatio)
	if sm == nil || dram == nil {
		return "unknown"
	}
	return map[Bound]string{Compute: "compute_bound", Memory: "memory_bound", Balanced: "balanced"}[side(*sm, *dram)]
}

// MoE reports whether the kernel is part of a mixture of experts, by its category or by the words that profilemate
// searches for.
func (k *Kernel) MoE() bool {
	switch k.Info.Category {
	case kernelname.MoEGEMM, kernelname.MoERoute:
		return true
	case kernelname.Sampling, kernelname.Attention: // sparse attention has a top-k of its own
		return false
	}
	lower := strings.ToLower(k.Full)
	return slices.ContainsFunc([]string{"moe", "expert", "topk", "routing"}, func(s string) bool { return strings.Contains(lower, s) })
}

// usesTensor reports whether kernels of this kind may use tensor cores.
func (k *Kernel) usesTensor() bool {
	switch k.Info.Category {
	case kernelname.GEMM, kernelname.MoEGEMM, kernelname.Attention, kernelname.LinearAttn:
		return true
	}
	return slices.ContainsFunc([]string{"tensorop", "hmma", "wmma", "gmma", "_mma"},
		func(word string) bool { return strings.Contains(k.Full, word) })
}

// group makes the kernels of the launches.
func (d *Data) group() {
	by := map[string]*Kernel{}
	for _, l := range d.Launches {
		name := secret.Tokens(kernelname.Uncast(l.name))
		k := by[name]
		if k == nil {
			k = &Kernel{Name: shown(name), Full: name, Info: kernelname.Classify(name)}
			by[name], d.Kernels = k, append(d.Kernels, k)
		}
		l.Kernel, k.Launches = k, append(k.Launches, l)
	}
	for _, k := range d.Kernels {
		k.aggregate()
	}
	lists.Sort(d.Kernels, func(a, b *Kernel) int {
		return cmp.Or(cmp.Compare(report.ValueOr(b.Duration, 0), report.ValueOr(a.Duration, 0)),
			cmp.Compare(len(b.Launches), len(a.Launches)), cmp.Compare(a.Name, b.Name))
	})
	ids := map[string]bool{}
	for i, k := range d.Kernels {
		k.ID = kernelID(i, k, k.Launches[0].folder)
		for n := 2; ids[k.ID]; n++ {
			k.ID = fmt.Sprintf("%s_%d", kernelID(i, k, ""), n)
		}
		ids[k.ID] = true
	}
}

// longestName is how many bytes of a name are shown. Few are longer: CUTLASS's reach some thousands.
const longestName = 2 << 10

// shown is a name of bounded length; two different long names stay different.
func shown(name string) string {
	if len(name) <= longestName {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	cut := longestName
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return fmt.Sprintf("%s…%016x", name[:cut], h.Sum64())
}

// kernelID is llm-perf-opt's name of a kernel: its rank and the MD5 of its name. If a file or folder has such a name,
// its rank is kept.
func kernelID(rank int, k *Kernel, folder string) string {
	const bare = len("kernel_0001")
	if len(folder) > bare {
		return folder
	}
	hash := md5.Sum([]byte(k.Full))
	return cmp.Or(folder, fmt.Sprintf("kernel_%04d", rank+1)) + "_" + hex.EncodeToString(hash[:])
}

// aggregate computes a kernel from its launches.
func (k *Kernel) aggregate() {
	var fields [numFields]weighted
	var rate weighted
	var ns, moved, flops, operations, bytes float64
	timed, counted := 0, 0
	first := k.Launches[0]
	k.Grid, k.Block = first.Grid, first.Block
	for _, l := range k.Launches {
		t := l.Get(Duration)
		if t != nil {
			ns += *t
			timed++
		}
		for f := range Field(numFields) {
			fields[f].add(l.Get(f), t)
		}
		rate.add(l.DRAMThroughput(), t)
		if n := l.Bytes(); n != nil {
			moved += *n
			k.Bytes = &moved
		}
		if n := l.Flops.Total(l.Get(TensorRatio), k.usesTensor()); n != nil {
			operations += *n
			counted++
			if v := l.DRAMThroughput(); v != nil && t != nil {
				flops += *n
				bytes += *v * *t * 1e-9
			}
		}
		if l.Grid != k.Grid {
			k.Grid = ""
		}
		if l.Block != k.Block {
			k.Block = ""
		}
	}
	for f := range Field(numFields) {
		switch f {
		case Registers, GridSize, BlockSize:
			k.mean[f] = fields[f].largest()
		case DRAMRead, DRAMWrite, DRAMBytes:
			fields[f].weight = 0
			fallthrough
		default:
			k.mean[f] = fields[f].mean()
		}
	}
	k.Throughput = rate.mean()
	if timed > 0 {
		k.Duration = &ns
	}
	if counted == len(k.Launches) {
		k.Flops = &operations
		k.Intensity = stat.Ratio(flops, bytes)
		if timed == counted && ns > 0 {
			k.FlopRate = new(operations / ns * 1e9)
		}
		k.most = k.mainType()
	}
}

// All combines all launches, as if they were one kernel without a name.
func All(d *Data) *Kernel {
	k := &Kernel{Launches: d.Launches}
	if len(k.Launches) > 0 {
		k.aggregate()
	}
	return k
}

// Values are the values of a field over the launches of a kernel that have it.
func (k *Kernel) Values(f Field) []float64 {
	return k.values(func(l *Launch) *float64 { return l.Get(f) })
}

// Throughputs are the bytes per second over device memory of each launch of a kernel, if they are known.
func (k *Kernel) Throughputs() []float64 { return k.values((*Launch).DRAMThroughput) }

func (k *Kernel) values(get func(*Launch) *float64) []float64 {
	var list []float64
	for _, l := range k.Launches {
		if v := get(l); v != nil {
			list = append(list, *v)
		}
	}
	return list
}

// mainType is the type with most operations over all launches.
func (k *Kernel) mainType() int {
	var sum [numTypes]float64
	for _, l := range k.Launches {
		for t, n := range l.Flops.count {
			sum[t] += n
		}
	}
	most := fp32
	for t := range sum {
		if sum[t] > sum[most] {
			most = t
		}
	}
	return most
}

// weighted accumulates a mean: weighted by time if times are known, plain if not.
type weighted struct {
	sum, weight float64
	plain, n    float64
	least, most float64
}

func (w *weighted) add(v, weight *float64) {
	if v == nil {
		return
	}
	if w.n == 0 {
		w.least, w.most = *v, *v
	}
	w.least, w.most = min(w.least, *v), max(w.most, *v)
	w.plain += *v
	w.n++
	if weight != nil {
		w.sum += *v * *weight
		w.weight += *weight
	}
}

func (w *weighted) mean() *float64 {
	switch {
	case w.n == 0:
		return nil
	case w.least == w.most:
		return new(w.most) // without rounding
	case w.weight > 0:
		return new(w.sum / w.weight)
	}
	return new(w.plain / w.n)
}

func (w *weighted) largest() *float64 {
	if w.n == 0 {
		return nil
	}
	return new(w.most)
}
