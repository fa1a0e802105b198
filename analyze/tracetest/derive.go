package tracetest

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// withDerived returns the builder's rows, and the rows that every real export has about them: metadata, the session's
// times, contexts, streams and devices, lookup tables. A table that the test filled itself gets none.
func (b *Builder) withDerived() []entry {
	var own []entry
	filled := map[string]bool{}
	for _, e := range b.rows {
		if e.table == "StringIds" && !b.opts.explicitString(e.row) {
			continue // only makes plan number the text
		}
		own = append(own, e)
		filled[e.table] = true
	}
	out := own
	add := func(table string, rows ...Row) {
		if b.table(table) == nil || filled[table] {
			return
		}
		for _, r := range rows {
			out = append(out, entry{table, r})
		}
	}
	lo, hi := span(own)
	add("ANALYSIS_DETAILS", Row{"globalVid": Int(machineID(0, 1)), "duration": Int(hi - lo), "startTime": Int(lo), "stopTime": Int(hi)})
	add("TARGET_INFO_SESSION_START_TIME", Row{
		"utcEpochNs": Int(1767225600000000000 + sessionOf(own)), "utcTime": Text("2026-01-01T00:00:00"), "localTime": Text("2026-01-01T00:00:00"), "systemClockNs": Int(lo),
	})
	places := b.places(own)
	add("TARGET_INFO_CUDA_DEVICE", places.devices(b.gpus)...)
	add("TARGET_INFO_CUDA_CONTEXT_INFO", places.contexts()...)
	add("TARGET_INFO_CUDA_NULL_STREAM", places.nullStreams()...)
	add("TARGET_INFO_CUDA_STREAM", places.streams()...)
	add("META_DATA_CAPTURE", b.captureMeta()...)
	add("META_DATA_EXPORT", b.exportMeta()...)
	add("EXPORT_META_DATA", b.exportMeta()...)
	for _, e := range enumTables {
		if e.exists(b.version) {
			for _, r := range e.rows {
				out = append(out, entry{e.name, Row{"id": Int(r.id), "name": Text(r.name), "label": Text(r.label)}})
			}
		}
	}
	return slices.Clone(out)
}

// explicitString says whether a StringIds row says its id, rather than asking for the next one.
func (o *options) explicitString(r Row) bool { return !r["id"].IsNull() }

// sessionOf is how many ns into the second the session began: other events are of another session, as in reality.
func sessionOf(rows []entry) int64 {
	h := fnv.New32a()
	var b [16]byte
	for _, e := range rows {
		t := startOf(e.row)
		if t == Open {
			continue
		}
		end, _ := e.row["end"].AsInt()
		binary.LittleEndian.PutUint64(b[:], uint64(t))
		binary.LittleEndian.PutUint64(b[8:], uint64(end))
		_, _ = h.Write(b[:])
	}
	return int64(h.Sum32()) % 1_000_000_000
}

// span is the time from the first start to the last end of the rows, graph creation aside.
func span(rows []entry) (lo, hi int64) {
	first := true
	for _, e := range rows {
		t := startOf(e.row)
		if t == Open || e.table == "CUDA_GRAPH_EVENTS" {
			continue
		}
		end := t
		if v, ok := e.row["end"].AsInt(); ok {
			end = max(end, v)
		}
		if first {
			lo, hi, first = t, end, false
		}
		lo, hi = min(lo, t), max(hi, end)
	}
	return lo, hi
}

func (b *Builder) captureMeta() []Row {
	rows := []metaRow{
		{"CAPTURE_EVENT_TYPE", "NvtxEvents"},
		{"CAPTURE_EVENT_TYPE", "Cuda"},
		{"RATE_HZ", "0"},
		{"START_TRIGGER", "Immediate"},
		{"STOP_TRIGGER", "Delayed"},
		{"DEVICE_TYPE", "Unix"},
		{"PROCESS_0:COLLECT_NVTX_TRACE", "true"},
		{"PROCESS_0:COLLECT_CUDA_TRACE", "true"},
	}
	return metaRows(append(rows, b.meta[0]...))
}

func (b *Builder) exportMeta() []Row {
	product, _ := productOf(b.opts.schema)
	parts := append(strings.SplitN(b.opts.schema, ".", 3), "", "")
	year, release, _ := strings.Cut(product, ".")
	release, _, _ = strings.Cut(release, ".")
	rows := []metaRow{
		{"EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"},
		{"EXPORT_PRODUCT_VERSION", product},
		{"EXPORT_PRODUCT_DATE", year + "." + release},
		{"EXPORT_SCHEMA_VERSION", b.opts.schema},
		{"EXPORT_SCHEMA_VERSION_MAJOR", parts[0]},
		{"EXPORT_SCHEMA_VERSION_MINOR", parts[1]},
		{"EXPORT_SCHEMA_VERSION_MICRO", parts[2]},
		{"EXPORT_PLATFORM", "linux-desktop"},
		{"EXPORT_ARCH", "x64"},
		{"EXPORT_TIME_UTC", "2026-01-01T00:10:00"},
		{"EXPORT_TIME_LOCAL", "2026-01-01T00:10:00 +0000 UTC"},
	}
	for _, m := range b.meta[1] {
		i := slices.IndexFunc(rows, func(r metaRow) bool { return r.name == m.name })
		if i < 0 {
			rows = append(rows, m)
		} else {
			rows[i] = m
		}
	}
	return metaRows(rows)
}

func metaRows(rows []metaRow) []Row {
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{"name": Text(r.name), "value": Text(r.value)}
	}
	return out
}

// place is a stream that some GPU work ran on.
type place struct{ gpid, device, context, stream int64 }

type placeList []place

// places are the distinct streams of the rows, in order.
func (b *Builder) places(rows []entry) placeList {
	seen := map[place]bool{}
	for _, e := range rows {
		gpid, ok := e.row["globalPid"].AsInt()
		stream, ok2 := e.row["streamId"].AsInt()
		device, ok3 := e.row["deviceId"].AsInt()
		if ok && ok2 && ok3 && stream != NoStream {
			seen[place{gpid, device, e.row["contextId"].i, stream}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.gpid, b.gpid), cmp.Compare(a.device, b.device), cmp.Compare(a.context, b.context), cmp.Compare(a.stream, b.stream))
	})
}

// row is the machine and process of the place.
func (p place) row() Row {
	return Row{"hwId": Int(p.gpid >> 56), "vmId": Int(p.gpid >> 48 & 0xFF), "processId": Int(p.gpid >> 24 & 0xFFFFFF), "contextId": Int(p.context)}
}

func (l placeList) devices(gpus []GPU) []Row {
	var rows []Row
	for _, p := range slices.CompactFunc(slices.Clone(l), func(a, b place) bool { return a.gpid == b.gpid && a.device == b.device }) {
		row := Row{"gpuId": Int(p.device), "cudaId": Int(p.device), "pid": Int(p.gpid >> 24 & 0xFFFFFF), "numMultiprocessors": Int(132)}
		for _, g := range gpus {
			if g.ID == p.device {
				row["uuid"] = Text(g.UUID)
				row["numMultiprocessors"] = Int(or(g.SMs, 132))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// ofContexts has one place for each context.
func (l placeList) ofContexts() placeList {
	return slices.CompactFunc(slices.Clone(l), func(a, b place) bool { a.stream, b.stream = 0, 0; return a == b })
}

func (l placeList) contexts() []Row {
	var rows []Row
	for _, p := range l.ofContexts() {
		rows = append(rows, p.row().with(Row{"nullStreamId": Int(7), "deviceId": Int(p.device), "parentContextId": Int(0), "isGreenContext": Int(0)}))
	}
	return rows
}

// nullStreams are the contexts as exports before 3.4.0 list them.
func (l placeList) nullStreams() []Row {
	var rows []Row
	for _, p := range l.ofContexts() {
		rows = append(rows, p.row().with(Row{"streamId": Int(7), "deviceId": Int(p.device)}))
	}
	return rows
}

func (l placeList) streams() []Row {
	var rows []Row
	for _, p := range l {
		flag := int64(2)
		if p.stream == 7 {
			flag = 3
		}
		rows = append(rows, p.row().with(Row{"streamId": Int(p.stream), "priority": Int(0), "flag": Int(flag)}))
	}
	return rows
}
