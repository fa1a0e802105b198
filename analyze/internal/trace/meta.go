package trace

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// descriptions says who and what the capture is of, once its events are read.
type descriptions struct {
	common
	rangeRanks map[int64]int64 // see loader
}

// metaKeys are the allow-listed keys of the metadata tables, and what each sets. Other content of these tables (command
// lines, host names, the whole environment of the process) is never kept.
func metaKeys(m *Meta) map[Role]map[string]func(string) {
	return map[Role]map[string]func(string){
		RoleExport: {
			"EXPORT_PRODUCT_VERSION": func(v string) { m.ExporterVersion = v },
			"EXPORT_SCHEMA_VERSION":  func(v string) { m.SchemaVersion = v },
		},
		RoleCapture: {
			"CUDA_GRAPH_TRACE_OPTIONS:MODE": func(v string) { m.GraphTrace = strings.ToLower(v) },
			"CAPTURE_PRODUCT_VERSION":       func(v string) { m.CaptureVersion = v },
			"CAPTURE_EVENT_TYPE": func(v string) {
				if v = strings.ToLower(v); !slices.Contains(m.TraceSet, v) {
					m.TraceSet = append(m.TraceSet, v)
				}
			},
		},
		RoleSystem: {
			"NvDriverVersion":   func(v string) { m.Driver = driverVersion(v) },
			"CudaDriverVersion": func(v string) { m.CUDA = cudaVersion(v) },
			"OsDescription":     func(v string) { m.OS = v },
			"CpuDescription":    func(v string) { m.CPU = v },
			"CpuArchitecture":   func(v string) { m.Arch = v },
		},
	}
}

// loadMeta reads what is known of the capture as a whole.
func (l *descriptions) loadMeta() error {
	m := &l.trace.Meta
	keys := metaKeys(m)
	keyed := func(role Role) error {
		return l.scanRole(role, []string{"name", "value"}, func(row []cell) error {
			set, ok := keys[role][textOf(&row[0])]
			if !ok {
				return nil
			}
			value := textOf(&row[1])
			if row[1].Kind == pages.Int {
				value = fmt.Sprint(row[1].Bits)
			}
			if safeValue(value) {
				set(value)
			}
			return nil
		})
	}
	err := errors.Join(keyed(RoleExport), keyed(RoleCapture), keyed(RoleSystem),
		l.scanRole(RoleDetails, []string{"startTime", "stopTime"}, func(row []cell) error {
			start, _ := row[0].Whole()
			stop, _ := row[1].Whole()
			m.Captured = stop - start
			return nil
		}), l.scanRole(RoleSession, []string{"utcEpochNs"}, func(row []cell) error {
			m.SessionStart, _ = row[0].Whole()
			return nil
		}), l.scanRole(RoleDiagnostics, []string{"severity", "text"}, func(row []cell) error {
			severity, _ := row[0].Whole()
			text, _ := l.text(&row[1])
			l.trace.Diagnostics = append(l.trace.Diagnostics, Diagnostic{severity, diagnosticCode(text)})
			return nil
		}))
	slices.Sort(m.TraceSet)
	return err
}

// safeValue refuses values that do not look like a version, a model or the name of a distribution, so that no key of
// the allow-list can carry anything else.
func safeValue(v string) bool {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	return len(v) > 0 && len(v) <= 120 && !strings.ContainsFunc(v, odd)
}

// safe is a value that safeValue does not refuse, else empty.
func safe(v string) string {
	if !safeValue(v) {
		return ""
	}
	return v
}

// driverVersion writes 5452906 as 545.29.06: some versions of nsys leave the dots out. The branch has three digits and
// the last part two. Any other text stays as it is.
func driverVersion(v string) string {
	if len(v) < 7 || len(v) > 8 || strings.Trim(v, "0123456789") != "" {
		return v
	}
	return v[:3] + "." + v[3:len(v)-2] + "." + v[len(v)-2:]
}

// cudaVersion turns CUDA's number into its version: 13000 is 13.0, 12010 is 12.1.
func cudaVersion(v string) string {
	var n int
	if _, err := fmt.Sscanf(v, "%d", &n); err != nil || n < 1000 || fmt.Sprint(n) != v {
		return v
	}
	return fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}

// diagnostics are the phrases in messages of nsys that tell a code.
var diagnostics = []struct{ has, code string }{
	{"not all cuda events", "cuda_incomplete"},
	{"not all nvtx events", "nvtx_incomplete"},
	{"dropped", "events_dropped"},
	{"lost", "events_dropped"},
	{"buffer", "buffer"},
	{"might have not been started", "not_started"},
	{"not been started correctly", "not_started"},
	{"out of memory", "out_of_memory"},
}

// diagnosticCode reduces a message of nsys to its effect on the numbers. The text itself may hold paths and names and
// is never kept.
func diagnosticCode(text string) string {
	text = strings.ToLower(text)
	for _, other := range []string{"opengl", "vulkan", "directx", "os runtime", "openmp", "openacc"} {
		if strings.Contains(text, other) {
			return "" // it is about none of the numbers of a GPU
		}
	}
	for _, d := range diagnostics {
		if strings.Contains(text, d.has) {
			return d.code
		}
	}
	return ""
}

// loadNames names the processes and threads that did any work.
func (l *descriptions) loadNames() error {
	t := l.trace
	t.Programs = map[int64]string{}
	ofProc := func(p Proc, global int64) int { return cmp.Compare(p.Global, global) }
	ofThread := func(th Thread, global int64) int { return cmp.Compare(th.Global, global) }
	return errors.Join(l.scanRole(RoleProcesses, []string{"globalPid", "name"}, func(row []cell) error {
		if v, ok := row[0].Whole(); ok {
			name, _ := l.text(&row[1])
			name = strings.Clone(baseName(name))
			t.Programs[v>>24] = name
			if i, ok := slices.BinarySearchFunc(t.Procs, v&^tidBits, ofProc); ok {
				t.Procs[i].Name = name
			}
		}
		return nil
	}), l.scanRole(RoleThreads, []string{"globalTid", "nameId"}, func(row []cell) error {
		if v, ok := row[0].Whole(); ok {
			if i, ok := slices.BinarySearchFunc(t.Threads, v, ofThread); ok {
				t.Threads[i].Name, _ = l.text(&row[1])
			}
		}
		return nil
	}))
}

// baseName is the program's own name: a process name may be a whole path, or a command line with arguments. Paths of
// Windows have spaces.
func baseName(name string) string {
	if len(name) > 3 && name[1:3] == `:\` {
		before, _, lower := strings.Cut(name, ".exe")
		before, _, upper := strings.Cut(before, ".EXE")
		if lower || upper {
			name = name[strings.LastIndexByte(before, '\\')+1:]
		}
	}
	name, _, _ = strings.Cut(name, " ")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	return name
}

func (l *descriptions) loadGPUs() error {
	table := l.tables[RoleGPU]
	columns := []string{
		table.First("id", "deviceId"), table.First("cuDevice", "deviceId"), "name", "chipName",
		table.First("smCount", "numMultiprocessors"), table.First("totalMemory", "globalMemorySize"),
		table.First("memoryBandwidth", "globalMemoryBandwidth"), table.First("clockRate", "coreClockRate"),
		table.First("computeMajor", "computeCapabilityMajor"), table.First("computeMinor", "computeCapabilityMinor"),
		"uuid",
	}
	return l.scanRole(RoleGPU, columns, func(row []cell) error {
		var n [10]int64
		for i := range n {
			n[i], _ = row[i].Whole()
		}
		if row[1].Kind == pages.Null {
			n[1] = n[0]
		}
		name, _ := l.text(&row[2])
		chip, _ := l.text(&row[3])
		l.trace.GPUs = append(l.trace.GPUs, GPUInfo{ID: n[0], CUDADevice: n[1], Name: safe(name), Chip: safe(chip), SMs: n[4],
			MemoryBytes: n[5], MemoryBandwidth: n[6], ClockHz: n[7], CapMajor: n[8], CapMin: n[9],
			Fingerprint: fingerprint(textOf(&row[10]))})
		return nil
	})
}

// fingerprint stands for a text that must not be kept, such as the UUID of a GPU: equal fingerprints mean equal texts.
// The fingerprint of a fingerprint is itself, so that a scrubbed capture has those of its original. Empty for an empty
// text.
func fingerprint(text string) string {
	const mark = "sha256:"
	if text == "" {
		return ""
	}
	if hex, ok := strings.CutPrefix(text, mark); ok && len(hex) == 16 && strings.Trim(hex, "0123456789abcdef") == "" {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s%x", mark, sum[:8])
}

// GPU is the capture's description of a device: the one adapter that can be it. Adapters that cannot run CUDA (no
// multiprocessors) share device number 0 with the ones that can. If several adapters could be it, nothing is known.
func (t *Trace) GPU(device int32) GPUInfo {
	list := lists.Filter(t.GPUs, func(a GPUInfo) bool { return a.CUDADevice == int64(device) && a.Name != "" })
	lists.Sort(list, func(a, b GPUInfo) int { return cmp.Compare(b.SMs, a.SMs) })
	if len(list) == 0 || len(list) > 1 && list[1].SMs > 0 && list[1].Name != list[0].Name {
		return GPUInfo{}
	}
	return list[0]
}

// separateDevices distinguishes GPUs that several processes give the same number. A device number is the process's own:
// ranks that each see one GPU (CUDA_VISIBLE_DEVICES) all call it 0. If the capture says which adapter a process's
// device is, and two processes use one number for two adapters, devices are renumbered by adapter; else the numbers of
// the rows stay.
func (l *descriptions) separateDevices() error {
	table, ok := l.tables[RoleDevices]
	if !ok {
		return nil
	}
	t := l.trace
	type key struct{ pid, device int64 }
	adapter := map[key]int64{}
	err := l.scan(table, table.Known([]string{"gpuId", "cudaId", "pid"}), func(row []cell) error {
		gpu, ok1 := row[0].Whole()
		device, ok2 := row[1].Whole()
		pid, ok3 := row[2].Whole()
		if ok1 && ok2 && ok3 {
			adapter[key{pid, device}] = gpu
		}
		return nil
	})
	if err != nil {
		return err
	}
	of := map[int64]int64{}
	conflict := false
	for k, gpu := range adapter {
		if seen, ok := of[k.device]; ok && seen != gpu {
			conflict = true
		}
		of[k.device] = gpu
	}
	if !conflict {
		return nil
	}
	separate := func(device *int32, pid int64) {
		if gpu, ok := adapter[key{pid, int64(*device)}]; ok {
			*device = int32(gpu)
		}
	}
	for _, w := range []*Work{&t.Kernels.Work, &t.Copies.Work, &t.Sets.Work, &t.Graphs.Work, &t.HostFuncs, &t.Syncs.Work} {
		for i := range w.places {
			if p := &w.places[i]; p.proc.index != None {
				separate(&p.device, t.Procs[p.proc.index].PID)
			}
		}
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Proc != None {
			separate(&e.Device, t.Procs[e.Proc].PID)
		}
	}
	for i := range t.Allocs {
		a := &t.Allocs[i]
		separate(&a.Device, a.Owner>>24&tidBits)
	}
	for i := range t.GPUs {
		t.GPUs[i].CUDADevice = t.GPUs[i].ID
	}
	return nil
}
