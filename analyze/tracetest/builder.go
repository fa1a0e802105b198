package tracetest

import (
	"errors"
	"fmt"
	"slices"
)

// Builder collects the content of one export. Its methods keep the first error they meet, and Write returns it. A
// Builder may be written more than once, and added to in between. It is not safe for concurrent use.
type Builder struct {
	opts      options
	version   version
	tables    []tableDef
	rows      []entry
	processes []*Process
	gpus      []GPU
	meta      [2][]metaRow // capture, export
	samples   int64        // of CPUs so far
	stacks    int64        // of calls of the operating system so far
	counters  map[string]int64
	python    map[string]int64 // ids of names in Python's stacks, and processes whose domain has a name
	schemas   bool             // of NCCL's payloads are there
	err       error
}

// entry is one row waiting to be written.
type entry struct {
	table string
	row   Row
}

type metaRow struct{ name, value string }

// New starts an export. With no options it has schema [DefaultSchema] and the form real exports have: UTF-8, 4096-byte
// pages, no write-ahead log, no views, no empty tables.
func New(opts ...Option) *Builder {
	b := &Builder{opts: options{schema: DefaultSchema, pageSize: 4096}}
	for _, o := range opts {
		o(&b.opts)
	}
	v, err := parseVersion(b.opts.schema)
	b.fail(err)
	if _, known := productOf(b.opts.schema); err == nil && v > 0 && !known {
		b.fail(fmt.Errorf("schema version %q is not one this package knows", b.opts.schema))
	}
	b.version = v
	b.tables, err = schemaTables(v)
	b.fail(err)
	return b
}

func (b *Builder) fail(err error) {
	if err != nil {
		b.err = errors.Join(b.err, err)
	}
}

// table returns the definition of a table in the builder's schema version, or nil.
func (b *Builder) table(name string) *tableDef {
	i := slices.IndexFunc(b.tables, func(t tableDef) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return &b.tables[i]
}

// has says whether the schema version, with its options, has the column.
func (b *Builder) has(table, col string) bool {
	t := b.table(table)
	return t != nil && t.index(col) >= 0 && !b.opts.dropped(table, col)
}

// Row adds a row to any table; the other methods cover the usual ones. A table that no schema version has is created
// from the columns its rows name. Tables and columns that exist only in other versions than the builder's are left out,
// so that one recipe can be written in every generation.
func (b *Builder) Row(table string, row Row) {
	b.rows = append(b.rows, entry{table, row})
}

// Unused puts a text in StringIds that no row refers to, as real exports have many.
func (b *Builder) Unused(text string) { b.Row("StringIds", Row{"value": ID(text)}) }

// CaptureMeta adds a META_DATA_CAPTURE row, e.g. "CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph". Names may repeat.
func (b *Builder) CaptureMeta(name, value string) {
	b.meta[0] = append(b.meta[0], metaRow{name, value})
}

// ExportMeta adds a META_DATA_EXPORT row (EXPORT_META_DATA before 3.4.0), or replaces the value of one that [New]
// writes: the product, its version and the schema's.
func (b *Builder) ExportMeta(name, value string) {
	b.meta[1] = append(b.meta[1], metaRow{name, value})
}

// Env adds a TARGET_INFO_SYSTEM_ENV row, e.g. "NvDriverVersion", "570.172.08".
func (b *Builder) Env(name, value string) {
	b.Row("TARGET_INFO_SYSTEM_ENV", Row{
		"globalVid": Int(machineID(0, 1)), "devStateName": Text("Local (CLI)"), "name": Text(name),
		"nameEnum": Int(envEnum[name]), "value": Text(value),
	})
}

// envEnum numbers the properties as real exports do; others get 0.
var envEnum = map[string]int64{
	"CpuCores": 1, "CpuArchitecture": 3, "CpuDescription": 13, "NvDriverVersion": 205, "HardwarePlatform": 600,
	"SoftwarePlatform": 601, "OsDescription": 605, "CudaDriverVersion": 611, "SoftwareReleaseVersion": 618,
}

// GPU is an adapter of the machine, one TARGET_INFO_GPU row. Zero fields get the values of an H100 SXM.
type GPU struct {
	ID        int64  // 0-based adapter number
	Name      string // e.g. "NVIDIA H100 80GB HBM3"
	Memory    int64  // bytes
	Bandwidth int64  // bytes per second
	Clock     int64  // Hz
	SMs       int64
	Chip      string   // e.g. "GH100"
	Compute   [2]int64 // compute capability, e.g. {9, 0}
	UUID, Bus string
	Set       Row // overrides single columns
}

// GPU adds an adapter. Real exports list all of the machine's, used or not.
func (b *Builder) GPU(g GPU) {
	if g.Name == "" {
		g.Name = "NVIDIA H100 80GB HBM3"
	}
	if g.Chip == "" {
		g.Chip = "GH100"
	}
	if g.Compute == [2]int64{} {
		g.Compute = [2]int64{9, 0}
	}
	if g.UUID == "" {
		g.UUID = fmt.Sprintf("00000000-0000-0000-0000-%012x", g.ID)
	}
	if g.Bus == "" {
		g.Bus = fmt.Sprintf("0000:%02x:00.0", 16+g.ID)
	}
	b.gpus = append(b.gpus, g)
	row := Row{
		"vmId": Int(machineID(0, 1)), "id": Int(g.ID), "name": Text(g.Name), "busLocation": Text(g.Bus),
		"isDiscrete": Int(1), "l2CacheSize": Int(52428800), "totalMemory": Int(or(g.Memory, 85028765696)),
		"memoryBandwidth": Int(or(g.Bandwidth, 3352320000000)), "clockRate": Int(or(g.Clock, 1980000000)),
		"smCount": Int(or(g.SMs, 132)), "pwGpuId": Int(g.ID), "uuid": Text(g.UUID), "luid": Int(0),
		"chipName": Text(g.Chip), "cuDevice": Int(g.ID), "ctxswDevPath": Text(""), "ctrlDevPath": Text(""),
		"revision": Int(161), "nodeMask": Int(0), "constantMemory": Int(65536), "maxIPC": Int(4),
		"maxRegistersPerBlock": Int(65536), "maxShmemPerBlock": Int(49152), "maxShmemPerBlockOptin": Int(232448),
		"maxShmemPerSm": Int(233472), "maxRegistersPerSm": Int(65536), "threadsPerWarp": Int(32),
		"asyncEngines": Int(3), "maxWarpsPerSm": Int(64), "maxBlocksPerSm": Int(32), "maxThreadsPerBlock": Int(1024),
		"maxBlockDimX": Int(1024), "maxBlockDimY": Int(1024), "maxBlockDimZ": Int(64), "maxGridDimX": Int(2147483647),
		"maxGridDimY": Int(65535), "maxGridDimZ": Int(65535), "computeMajor": Int(g.Compute[0]),
		"computeMinor": Int(g.Compute[1]), "smMajor": Int(g.Compute[0]), "smMinor": Int(g.Compute[1]),
	}
	b.Row("TARGET_INFO_GPU", row.with(g.Set))
}
