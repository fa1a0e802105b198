package mutant

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Cause is a cause of lost time as a program has it: so many times in each unit, of a strength.
type Cause struct {
	Name  string
	Count bool // the strength is how often a unit has it; else it is ns, once in a unit
	write func(d *draft, w int, x float64) (calls []int)
}

// Range is the NVTX range around each call of a [Cause].
const Range = "written here"

// TinyKernel and SlowKernel are names that no rule knows.
const (
	TinyKernel = "void zyx_tiny(float *)"
	SlowKernel = "void zyx_slow(float *)"
)

// Causes are what is written into captures.
func Causes() []Cause {
	host := func(name string, wait bool) func(d *draft, w int, x float64) []int {
		return func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, name, int64(x))
			d.events[i].wait = wait
			return []int{i}
		}
	}
	sync := func(name string) func(d *draft, w int, x float64) []int {
		return func(d *draft, w int, _ float64) []int { return host(name, true)(d, w, 5_000) }
	}
	return []Cause{
		{"late launch", false, func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, "cudaGetLastError_v3020", 300)
			d.events[i].stall = int64(x)
			return []int{i}
		}},
		{"host poll", false, system("poll")},
		{"lock", false, system("pthread_mutex_lock")},
		{"host call", false, host("cudaGetDeviceProperties_v3020", false)},
		{"malloc", false, host("cudaMalloc_v3020", false)},
		{"free", false, host("cudaFree_v3020", true)},
		{"pageable copy", false, func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, "cudaMemcpyAsync_v3020", int64(x))
			d.copyAfter(w, i, int64(x), int64(20*x), 1, 0, 2)
			return []int{i}
		}},
		{"copy + sync", false, func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, "cudaMemcpyAsync_v3020", 4_000)
			d.copyAfter(w, i, int64(x), int64(20*x), 2, 2, 1)
			return []int{i, sync("cudaStreamSynchronize_v3020")(d, w, 0)[0]}
		}},
		{"pinned copy", false, func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, "cudaMemcpyAsync_v3020", 4_000)
			d.copyAfter(w, i, int64(x), int64(20*x), 1, 1, 2)
			return []int{i}
		}},
		{"memset", false, func(d *draft, w int, x float64) []int {
			i := d.callAfter(w, "cudaMemsetAsync_v3020", 4_000)
			d.blankAfter(w, i, memsetTable, int64(x), map[string]any{"value": int64(0), "bytes": int64(200 * x), "memKind": int64(2)})
			return []int{i}
		}},
		{"tiny kernels", true, func(d *draft, w int, _ float64) []int { return d.kernelAfter(w, TinyKernel, 1_500) }},
		{"slow kernel", false, func(d *draft, w int, x float64) []int { return d.kernelAfter(w, SlowKernel, int64(x)) }},
		{"stream sync", true, sync("cudaStreamSynchronize_v3020")},
		{"device sync", true, sync("cudaDeviceSynchronize_v3020")},
		{"read back", true, func(d *draft, w int, _ float64) []int {
			i := d.callAfter(w, "cudaMemcpyAsync_v3020", 8_000)
			d.events[i].wait = true
			d.copyAfter(w, i, 1_500, 4, 2, 2, 0)
			return []int{i}
		}},
	}
}

// Edit writes the cause into each unit, of a strength.
func (c Cause) Edit(x float64) Edit {
	return Edit{Name: fmt.Sprintf("%s, %.4g", c.Name, x), apply: func(d *draft) error {
		n := 1
		if c.Count {
			n = max(1, int(x+0.5))
		}
		for _, w := range d.spread(n) {
			if calls := c.write(d, w, x); len(calls) > 0 {
				for _, i := range calls {
					d.events[i].inside = true
				}
				d.rangeAround(calls[0], calls[len(calls)-1])
			}
		}
		return nil
	}}
}

// Sized is a mutant in which the cause takes about a share of the time of the units, 0..1, and that share. It is an
// error if no strength does that to within a tenth.
func (c Cause) Sized(of *Capture, share float64) (*Mutant, float64, error) {
	low, high, x := 0.0, 0.0, 1.0
	if !c.Count {
		x = share * of.meanUnit()
	}
	for range 24 {
		m, err := of.Mutate(c.Edit(x))
		if err != nil {
			return nil, 0, err
		}
		switch is := 1 - 1/m.Truth.Work; {
		case is > 0.9*share && is < 1.1*share:
			return m, is, nil
		case is < share:
			low = x
		default:
			high = x
		}
		switch next := (low + high) / 2; {
		case high == 0:
			x *= 2
		case c.Count && high-low <= 1:
			return nil, 0, fmt.Errorf("%s: no number makes it %.2f", c.Name, share)
		case c.Count:
			x = math.Floor(next)
		default:
			x = next
		}
	}
	return nil, 0, fmt.Errorf("%s: no strength makes it %.2f", c.Name, share)
}

func (c *Capture) meanUnit() float64 {
	total, list := 0.0, c.spans(func(e *event) int64 { return e.start })
	for _, s := range list {
		total += s.ns
	}
	return total / float64(max(1, len(list)))
}

// spread are n kernels of each unit with a launch call, at equal distances; some more than once where there are fewer.
func (d *draft) spread(n int) (list []int) {
	for _, dev := range d.devices() {
		parts := make([][]int, len(d.kinds[dev]))
		for _, w := range d.onGPU[dev] {
			if e := &d.events[w]; d.isKernel(e) && e.unit >= 0 && e.unit < len(parts) && e.call >= 0 {
				parts[e.unit] = append(parts[e.unit], w)
			}
		}
		for _, p := range parts {
			for i := range n {
				if len(p) > 0 {
					list = append(list, d.afterGraph(p, (2*i+1)*len(p)/(2*n)))
				}
			}
		}
	}
	return list
}

// kernelAfter launches a kernel after w.
func (d *draft) kernelAfter(w int, name string, ns int64) []int {
	i := d.callAfter(w, d.callName(w), 3_000)
	e := d.workAfter(w, i, ns)
	d.named(&e, name)
	d.put(&e, "graphNodeId", nil)
	d.add(e)
	return []int{i}
}

func (d *draft) copyAfter(w, by int, ns, bytes, kind, src, dst int64) {
	d.blankAfter(w, by, memcpyTable, ns, map[string]any{"bytes": bytes, "copyKind": kind, "srcKind": src, "dstKind": dst})
}

// blankAfter adds work of another table after w, launched by a call.
func (d *draft) blankAfter(w, by int, name string, ns int64, set map[string]any) {
	e := d.workAfter(w, by, ns)
	from, row, corr := d.tables[e.table], e.row, e.corr
	e.table, e.row, e.set, e.name = d.tableNamed(name), -1, nil, "[copy]"
	for _, column := range []string{"deviceId", "contextId", "streamId", "globalPid", "greenContextId"} {
		d.put(&e, column, from.cell(row, column))
	}
	set["correlationId"] = corr
	for column, v := range set {
		d.put(&e, column, v)
	}
	d.add(e)
}

// system is a call of the operating system: the thread makes no other meanwhile.
func system(name string) func(d *draft, w int, x float64) []int {
	return func(d *draft, w int, x float64) []int {
		i := d.callAfter(w, "cudaGetLastError_v3020", 300)
		d.events[i].stall = int64(x)
		d.about(i, i, true, osTable, map[string]any{"eventClass": int64(27), "nameId": textRef(name), "returnValue": int64(0),
			"nestingLevel": int64(0), "callchainId": int64(0)})
		return []int{i}
	}
}

// rangeAround writes an NVTX range from what comes before the first call to the end of the last one.
func (d *draft) rangeAround(first, last int) {
	d.about(first, last, false, nvtxTable, map[string]any{"eventType": int64(59), "text": Range, "domainId": int64(0)})
}

// about adds a row of a table from what comes before the first call to the end of the last, or to its start.
func (d *draft) about(first, last int, begins bool, table string, set map[string]any) {
	by := d.events[last]
	e := event{kind: other, table: d.tableNamed(table), row: -1, proc: by.proc, lane: by.lane, call: last, unit: by.unit,
		start: by.start, end: by.end, around: &[2]int{first, last}, begins: begins}
	d.put(&e, "globalTid", d.lanes[by.lane].id)
	for column, v := range set {
		d.put(&e, column, v)
	}
	d.add(e)
}

// tableNamed is the index of a table, which is made where the capture has none.
func (d *draft) tableNamed(name string) int {
	if at := d.table(name); at >= 0 {
		return at
	}
	t := &table{name: name, create: "CREATE TABLE " + quote(name) + " (" + tables[name] + ")", columns: map[string]int{}}
	for _, column := range strings.Split(tables[name], ", ") {
		column, _, _ = strings.Cut(column, " ")
		t.columns[column] = len(t.names)
		t.names = append(t.names, column)
	}
	d.tables = append(slices.Clone(d.tables), t)
	return len(d.tables) - 1
}

// tables are those that a capture may lack.
var tables = map[string]string{
	nvtxTable: "start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId INT",
	osTable:   "start INT, end INT, eventClass INT, globalTid INT, nameId INT, returnValue INT, nestingLevel INT, callchainId INT",
	memsetTable: "start INT, end INT, deviceId INT, contextId INT, greenContextId INT, streamId INT, correlationId INT, " +
		"globalPid INT, value INT, bytes INT, graphNodeId INT, memKind INT",
	memcpyTable: "start INT, end INT, deviceId INT, contextId INT, greenContextId INT, streamId INT, correlationId INT, " +
		"globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT, graphNodeId INT",
}
