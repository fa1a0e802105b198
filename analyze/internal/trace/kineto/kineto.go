// Package kineto reads traces of the PyTorch profiler (Kineto's Chrome JSON, as torch.profiler and the /start_profile
// of vLLM and SGLang write it) and serves them as the tables of an Nsight Systems export, so that nothing above the
// rows knows who recorded a capture. The forms are those of Kineto's output_json.cpp and torch's profiler_kineto.cpp.
//
// Times are in nanoseconds from the first event of the file, whose own times count microseconds from anywhere.
package kineto

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Facts are the properties of a trace file.
type Facts struct {
	Cut        bool  // the file ends, or stops to be JSON, before its end
	Skipped    int64 // events of a known kind whose times or places cannot be read
	Loose      int64 // places that are not JSON or repeat a key: NaN, Infinity, a comma before a bracket
	Resolution int64 // of the times in ns: 1, 10, 100 or 1000
	ROCm       bool  // it was recorded with a GPU of AMD
}

// ErrForeign is the error of a JSON file that holds no trace.
var ErrForeign = errors.New("no trace of the PyTorch profiler")

// reader goes through a file from front to back.
type reader struct {
	in     *elements
	facts  Facts
	about  about
	events bool         // there is a list of events
	each   func(*event) // what is done with events
}

// about is what the file says once.
type about struct {
	rank, world int64 // of the run; -1 unknown
	base        int64 // ns since 1970 that times count from; 0 unknown
	gpus        [][]cell
}

// exporter makes rows of events.
type exporter struct {
	*ids
	facts  *Facts
	origin int64 // ns of the first event, which every time counts from; unknown before it

	tables map[string]*table
	procs  map[int64]string // name of a process
	called map[int64]string // name of a thread, by global id
	pids   []int64          // of processes that called CUDA

	messages lists.Numbering[message] // which stand for payloads until the rank of the program is known
	memory   *spill.Arena
	nameless map[moment]place   // rows without a correlation id
	recorded map[int64]recorded // CUDA events, by the correlation id of the call that recorded each
}

// moment is the key that a flow and its event share.
type moment struct{ pid, tid, start int64 }

// place of a row.
type place struct {
	table *table
	row   int
}

// recorded is a CUDA event in a stream.
type recorded struct{ device, stream, event int64 }

func newReader(rd io.Reader) *reader {
	return &reader{in: &elements{tokens: newTokens(rd), words: map[string]string{}}, about: about{rank: -1, world: -1}}
}

func newExporter(facts *Facts) *exporter {
	return &exporter{ids: &ids{threads: map[[2]int64]int64{}}, facts: facts, origin: unknown, memory: spill.New(),
		tables: map[string]*table{}, procs: map[int64]string{}, called: map[int64]string{},
		nameless: map[moment]place{}, recorded: map[int64]recorded{}}
}

// all reads the whole file; its facts say whether it was cut.
func (r *reader) all() error {
	err := r.document()
	switch {
	case r.in.err != nil && !errors.Is(r.in.err, io.EOF) && !errors.Is(r.in.err, io.ErrUnexpectedEOF):
		return r.in.err
	case !r.events:
		return ErrForeign
	}
	r.facts.Cut = err != nil
	r.facts.Loose = r.in.loose
	r.facts.Resolution = 1000
	for i := 0; i < min(r.in.decimals, 3); i++ {
		r.facts.Resolution /= 10
	}
	return nil
}

// Read reads a whole trace. An error is of rd, or [ErrForeign].
func Read(rd io.Reader) (*Source, Facts, error) {
	r := newReader(rd)
	x := newExporter(&r.facts)
	r.each = x.add
	if err := r.all(); err != nil {
		return nil, r.facts, errors.Join(err, x.memory.Close())
	}
	s := x.source(&r.about) // which may skip more events
	return s, r.facts, nil
}

// Is reports whether a JSON file is a trace, by its top level: it reads no further than to its list of events, and
// stops early at a schema.
func Is(rd io.Reader) bool {
	t, found := newTokens(rd), false
	if t.peek() != '{' {
		return false
	}
	_ = t.object(func(key []byte) error { // unreadable text is not a trace, or the answer is known
		switch string(key) {
		case "traceEvents":
			found = t.peek() == '['
			return errCut
		case "schema":
			return errCut
		}
		return t.skip()
	})
	return found
}

func (r *reader) document() error {
	if r.in.peek() == '[' { // the array form of a Chrome trace
		r.events = true
		return r.eventList()
	}
	if r.in.peek() != '{' {
		return errCut
	}
	return r.in.object(func(key []byte) (err error) {
		switch string(key) {
		case "traceEvents":
			r.events = r.in.peek() == '['
			err = r.eventList()
		case "deviceProperties":
			err = r.in.array(r.device)
		case "distributedInfo":
			err = r.in.object(func(key []byte) (err error) {
				switch string(key) {
				case "rank":
					r.about.rank, err = r.in.whole(-1)
				case "world_size":
					r.about.world, err = r.in.whole(-1)
				default:
					err = r.in.skip()
				}
				return err
			})
		case "baseTimeNanoseconds":
			r.about.base, err = r.in.whole(0)
		default: // it may be the environment of the process
			err = r.in.skip()
		}
		return err
	})
}

// deviceKeys are what is read of a GPU, in the order of the columns of TARGET_INFO_GPU.
var deviceKeys = []string{"id", "", "name", "numSms", "totalGlobalMem", "computeMajor", "computeMinor"}

func (r *reader) device() error {
	gpu := slices.Repeat([]cell{integer(0)}, len(deviceKeys))
	gpu[2] = text("")
	err := r.in.object(func(key []byte) (err error) {
		at := slices.Index(deviceKeys, string(key))
		switch {
		case at < 0:
			err = r.in.skip()
		case gpu[at].Kind == pages.Text:
			gpu[at].S, err = r.in.word()
		default:
			gpu[at].Bits, err = r.in.whole(0)
		}
		return err
	})
	gpu[1] = gpu[0] // cuDevice
	if len(r.about.gpus) < maxDevices {
		r.about.gpus = append(r.about.gpus, gpu)
	}
	return err
}

const maxDevices = 1 << 12

func (r *reader) eventList() error {
	var e event
	return r.in.array(func() error {
		if err := r.in.event(&e); err != nil {
			return err
		}
		r.each(&e)
		return nil
	})
}

// add files an event by its kind.
func (x *exporter) add(e *event) {
	switch e.phase {
	case "M":
		x.metadata(e)
	case "X":
		x.span(e)
	case "i":
		x.instant(e)
	case "s", "f":
		if kinds[e.category] == flow {
			x.tie(e)
		}
	}
}

func (x *exporter) span(e *event) {
	switch kinds[e.category] {
	case kernel:
		x.work(e, kernels, integer(x.textID(e.name)),
			integer(e.args.grid[0]), integer(e.args.grid[1]), integer(e.args.grid[2]),
			integer(e.args.block[0]), integer(e.args.block[1]), integer(e.args.block[2]),
			integer(e.args.registers), integer(e.args.shared), integer(min(e.args.node, 1)), known(cmp.Or(e.args.graph, -1)),
			known(e.args.occupancy))
	case memcpy:
		kind, from, to := copyOf(e.name)
		x.work(e, copies, known(e.args.bytes), known(kind), known(from), known(to))
	case memset:
		x.work(e, sets, known(e.args.bytes))
	case call:
		x.call(e)
	case annotation:
		x.annotation(e)
	case overhead:
		if e.pid < 0 { // of Kineto itself
			return
		}
		if thread, ok := x.thread(e); ok {
			x.row(e, overheads, -1, integer(thread), integer(x.textID(e.name)))
		}
	case python:
		if thread, ok := x.thread(e); ok {
			x.row(e, e.category, -1, integer(thread), integer(x.textID(withoutAddress(e.name))))
		}
	case wait:
		x.wait(e)
	case record:
		x.record(e.args.correlation, recorded{e.args.device, e.args.stream, e.args.event})
	case counted:
		x.row(e, e.category, -1)
	}
}

// Kinds of events, by their category.
const (
	other = iota
	kernel
	memcpy
	memset
	call
	annotation
	overhead
	python
	wait   // a synchronization
	record // of a CUDA event
	flow
	instant
	counted // only counted
)

var kinds = map[string]int{"kernel": kernel, "Kernel": kernel, "gpu_memcpy": memcpy, "Memcpy": memcpy, "gpu_memset": memset,
	"Memset": memset, "cuda_runtime": call, "cuda_driver": call, "Runtime": call, "Driver": call, "user_annotation": annotation,
	"cpu_op": annotation, "Operator": annotation, "overhead": overhead, "python_function": python, "cuda_sync": wait,
	"cuda_event": record, "ac2g": flow, "async_cpu_to_gpu": flow, "cpu_instant_event": instant, "cuda_profiler_range": counted,
	"collective_comm": counted}

func (x *exporter) metadata(e *event) {
	if e.pid < 0 || e.args.text == "" || len(x.called) > 1<<16 {
		return
	}
	switch e.name {
	case "process_name":
		x.procs[e.pid] = e.args.text
	case "thread_name":
		if e.tid != unknown {
			x.called[global(e.pid, x.threadOf(e.pid, e.tid))] = e.args.text
		}
	}
}

// work adds a row of the GPU. If a row does not say its device and stream, its tracks do.
func (x *exporter) work(e *event, name string, own ...cell) {
	device, stream := e.args.device, e.args.stream
	if device < 0 {
		device = e.pid
	}
	if stream < 0 {
		stream = e.tid
	}
	x.row(e, name, e.args.correlation, append([]cell{known(device), known(e.args.context), known(stream)}, own...)...)
}

func (x *exporter) call(e *event) {
	thread, ok := x.thread(e)
	if !ok {
		return
	}
	if !slices.Contains(x.pids, e.pid) && len(x.pids) < 1<<10 {
		x.pids = append(x.pids, e.pid)
	}
	x.facts.ROCm = x.facts.ROCm || strings.HasPrefix(e.name, "hip")
	x.row(e, apiCalls, e.args.correlation, integer(thread), integer(x.textID(e.name)))
}

// annotation adds a range: a step marker, an operator, or a range of the program.
func (x *exporter) annotation(e *event) {
	thread, ok := x.thread(e)
	if !ok {
		return
	}
	said := cell{}
	if m, ok := e.args.message(); ok {
		said = integer(int64(x.messages.Of(m)))
	}
	sizes := cell{}
	if e.args.sizes != "" {
		sizes = integer(x.textID(e.args.sizes))
	}
	x.row(e, ranges, e.args.sequence, integer(thread), integer(x.textID(e.name)), said, integer(payloadDomain), integer(pushPop),
		sizes, integer(min(max(e.args.forward, 0), 1)))
}

// wait adds a synchronization. The event it names is the record of the call that it names.
func (x *exporter) wait(e *event) {
	kind, ok := waitKinds[e.name]
	if !ok {
		x.row(e, "cuda_sync", -1)
		return
	}
	if e.args.recordedBy >= 0 && e.args.waitStream >= 0 {
		x.record(e.args.recordedBy, recorded{e.args.device, e.args.waitStream, e.args.event})
	}
	x.work(e, waits, integer(kind), known(e.args.event), known(e.args.recordedBy))
}

// waitKinds are the numbers of CUPTI for kinds of synchronization, by the names that Kineto gives them.
var waitKinds = map[string]int64{"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}

func (x *exporter) record(call int64, of recorded) {
	if call >= 0 && of.event >= 0 && len(x.recorded) < maxKept {
		x.recorded[call] = of
	}
}

// maxKept bounds how much is kept of each kind of thing that is not a row.
const maxKept = 1 << 20

// allocation is the name of an instant at which PyTorch's allocator did something.
const allocation = "[memory]"

// instant adds the events of PyTorch's allocator of GPU memory, and marks of any name; those of the profiler itself
// have no thread.
func (x *exporter) instant(e *event) {
	if e.pid < 0 || e.tid == unknown {
		return
	}
	e.length = 0
	a := &e.args
	switch {
	case e.name != allocation:
		x.row(e, ranges, -1, integer(global(e.pid, x.threadOf(e.pid, e.tid))), integer(x.textID("mark")), cell{},
			integer(payloadDomain), integer(mark))
	case a.deviceType != cuda && a.deviceType != hip || a.address == 0 || a.allocated == unknown || a.allocated == 0:
		x.row(e, "cpu_instant_event", -1)
	default:
		bytes, free := a.allocated, int64(0)
		if bytes < 0 {
			bytes, free = -bytes, 1
		}
		x.row(e, memory, -1, integer(global(e.pid, 0)), known(a.deviceID), integer(bytes), integer(a.address), integer(free),
			integer(deviceMemory), integer(1), integer(max(a.reserved, 0)), known(a.inUse))
	}
}

// Numbers of c10 for types of devices, of CUDA for kinds of memory, and of nsys for kinds of ranges.
const (
	cuda, hip    = 1, 6
	deviceMemory = 2
	pushPop      = 59
	mark         = 34
	domain       = 75
)

// tie gives a row its correlation id if it has none of its own.
func (x *exporter) tie(e *event) {
	at := moment{e.pid, e.tid, e.start}
	p, ok := x.nameless[at]
	if !ok || e.id < 0 {
		return
	}
	delete(x.nameless, at)
	p.table.late[p.row] = e.id
}

// payload is a message as NCCL of that rank writes it into the payloads of NVTX.
func (m *message) payload(rank int64) cell {
	b := make([]byte, payload.Head, payload.Head+32)
	binary.LittleEndian.PutUint32(b[payload.Schema:], 1)
	for _, v := range []uint64{m.communicator(), uint64(m.rank(rank)), uint64(m.size), uint64(m.bytes)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return cell{Kind: pages.Blob, S: string(b)}
}
