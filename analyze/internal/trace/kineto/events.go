package kineto

import (
	"bytes"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
)

// event is one element of traceEvents, read by the allow-list of keys below. The rest of the file is dropped.
type event struct {
	phase, category, name string
	pid, tid              int64 // unknown: the track belongs to no process
	id                    int64 // of a flow; -1
	start, length         int64 // ns; unknown, -1
	args                  args
}

type args struct {
	device, context, stream, correlation int64  // unknown: -1
	node, graph                          int64  // of a CUDA graph, and which graph that is; 0 none
	occupancy                            int64  // estimated by the profiler, in percent; unknown: -1
	warps                                int64  // of the launch by SM, in thousandths
	sizes                                string // of an operator's inputs, as PyTorch writes them: "[[16, 4096], [4096, 8]]"
	sequence, forward                    int64  // of autograd: number of the call, -1; of a backward call the thread of the forward one, 0
	bytes                                int64  // unknown: -1
	registers, shared                    int64
	grid, block                          [3]int64
	text                                 string // of a metadata event: the name of a process or thread
	collective, group, ranks, dtype      string // of record_param_comms
	elements, size                       int64  // sent by one rank; ranks in the group
	event, recordedBy, waitStream        int64  // of a synchronization: event, recording call, waiting stream
	// Of PyTorch's allocator: bytes, negative if they are freed; then what the device's pool holds, and the part of it
	// in use.
	allocated, reserved, inUse    int64
	address, deviceID, deviceType int64
}

// unknown is a number that an event does not state. A thread may be negative: CUPTI's ids have 32 bits and a sign.
const unknown = math.MinInt64

// elements reads the values of the file's objects.
type elements struct {
	*tokens
	words    map[string]string
	decimals int    // most that a time has
	list     []byte // sizes of the operator that is read
	shapes   int    // lists of sizes that differ
}

// reset forgets the event before.
func (e *event) reset() {
	*e = event{pid: unknown, tid: unknown, id: -1, start: unknown, length: -1, args: noArgs}
}

// event reads one element of traceEvents. An element that is not an event is empty.
func (r *elements) event(e *event) error {
	e.reset()
	var seen uint8 // keys
	return r.object(func(key []byte) error {
		var err error
		bit := uint8(0)
		switch string(key) {
		case "ph":
			bit = 1
			e.phase, err = r.word()
		case "cat":
			bit = 2
			e.category, err = r.word()
		case "name":
			bit = 4
			e.name, err = r.word()
		case "pid":
			bit = 8
			e.pid, err = r.whole(unknown)
		case "tid":
			bit = 16
			e.tid, err = r.whole(unknown)
		case "ts":
			bit = 32
			e.start, err = r.nanoseconds(unknown)
		case "dur":
			bit = 64
			e.length, err = r.nanoseconds(-1)
		case "args":
			bit = 128
			err = r.object(func(key []byte) error { return r.arg(&e.args, key) })
			if e.args.occupancy > 100 || e.args.occupancy == 0 && e.args.warps >= 1000 { // a single warp on each SM is more
				e.args.occupancy = -1
			}
		case "id":
			e.id, err = r.whole(-1)
		default:
			err = r.skip()
		}
		if seen&bit != 0 {
			r.loose++
		}
		seen |= bit
		return err
	})
}

// numbers are the arguments that are whole numbers: their field, and the value if one is not stated.
var numbers = map[string]struct {
	of   func(a *args) *int64
	none int64
}{
	"device":                            {func(a *args) *int64 { return &a.device }, -1},
	"context":                           {func(a *args) *int64 { return &a.context }, -1},
	"stream":                            {func(a *args) *int64 { return &a.stream }, -1},
	"correlation":                       {func(a *args) *int64 { return &a.correlation }, -1},
	"graph node id":                     {func(a *args) *int64 { return &a.node }, 0},
	"graph id":                          {func(a *args) *int64 { return &a.graph }, 0},
	"Sequence number":                   {func(a *args) *int64 { return &a.sequence }, -1},
	"Fwd thread id":                     {func(a *args) *int64 { return &a.forward }, 0},
	"bytes":                             {func(a *args) *int64 { return &a.bytes }, -1},
	"est. achieved occupancy %":         {func(a *args) *int64 { return &a.occupancy }, -1},
	"registers per thread":              {func(a *args) *int64 { return &a.registers }, 0},
	"shared memory":                     {func(a *args) *int64 { return &a.shared }, 0},
	"In msg nelems":                     {func(a *args) *int64 { return &a.elements }, -1},
	"Group size":                        {func(a *args) *int64 { return &a.size }, -1},
	"event_id":                          {func(a *args) *int64 { return &a.event }, -1},
	"wait_on_cuda_event_id":             {func(a *args) *int64 { return &a.event }, -1},
	"wait_on_cuda_event_record_corr_id": {func(a *args) *int64 { return &a.recordedBy }, -1},
	"wait_on_stream":                    {func(a *args) *int64 { return &a.waitStream }, -1},
	"Bytes":                             {func(a *args) *int64 { return &a.allocated }, unknown},
	"Addr":                              {func(a *args) *int64 { return &a.address }, 0},
	"Device Id":                         {func(a *args) *int64 { return &a.deviceID }, -1},
	"Device Type":                       {func(a *args) *int64 { return &a.deviceType }, 0},
	"Total Reserved":                    {func(a *args) *int64 { return &a.reserved }, 0},
	"Total Allocated":                   {func(a *args) *int64 { return &a.inUse }, -1},
}

// noArgs states none of them.
var noArgs = func() (a args) {
	for _, n := range numbers {
		*n.of(&a) = n.none
	}
	return a
}()

func (r *elements) arg(a *args, key []byte) (err error) {
	switch string(key) {
	case "warps per SM":
		var ok bool
		if ok, err = r.value(); ok {
			a.warps, _, _ = microseconds(r.text)
		}
	case "Input Dims":
		a.sizes, err = r.sizes()
	case "grid":
		a.grid, err = r.extents()
	case "block":
		a.block, err = r.extents()
	case "name":
		a.text, err = r.word()
	case "Collective name":
		a.collective, err = r.word()
	case "Process Group Name":
		a.group, err = r.word()
	case "Process Group Ranks":
		a.ranks, err = r.word()
	case "dtype":
		a.dtype, err = r.word()
	default:
		n, ok := numbers[string(key)]
		if !ok {
			return r.skip()
		}
		*n.of(a), err = r.whole(n.none)
	}
	return err
}

// word is a string value; the texts of categories and names repeat, and are kept once.
func (r *elements) word() (string, error) {
	ok, err := r.value()
	if err != nil || !ok {
		return "", err
	}
	if s, seen := r.words[string(r.text)]; seen {
		return s, nil
	}
	s := strings.ToValidUTF8(string(r.text), "\uFFFD")
	if len(r.words) < maxWords {
		r.words[s] = s
	}
	return s, nil
}

const maxWords = 1 << 20 // beyond that, texts that are new are not looked up

// whole is a whole number, also as a string; def if it is anything else.
func (r *elements) whole(def int64) (int64, error) {
	ok, err := r.value()
	if err != nil || !ok {
		return def, err
	}
	if v, err := strconv.ParseInt(string(r.text), 10, 64); err == nil {
		return v, nil
	}
	if v, err := strconv.ParseFloat(string(r.text), 64); err == nil && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return int64(v), nil
	}
	return def, nil
}

// sizes is a list of the sizes of tensors, without those at its end that are none; empty if there is none, or if it is
// too long.
func (r *elements) sizes() (string, error) {
	r.list = r.list[:0]
	err := r.dims(0)
	n := len(r.list)
	for bytes.HasSuffix(r.list, []byte(", []]")) {
		r.list = append(r.list[:len(r.list)-len(", []]")], ']')
	}
	if n > maxSizes || len(r.list) <= len("[[]]") || r.list[0] != '[' {
		return "", err
	}
	if s, seen := r.words[string(r.list)]; seen {
		return s, err
	}
	if r.shapes++; r.shapes > maxShapes {
		return "", err
	}
	s := string(r.list)
	r.words[s] = s
	return s, err
}

const (
	maxSizes  = 512     // bytes
	maxShapes = 1 << 14 // lists that differ
)

// dims appends the numbers of a list of lists.
func (r *elements) dims(depth int) error {
	if r.peek() != '[' || depth == maxDims {
		v, err := r.whole(-1)
		r.list = strconv.AppendInt(r.list, max(v, -1), 10)
		return err
	}
	r.list = append(r.list, '[')
	first := true
	err := r.array(func() error {
		if !first && len(r.list) <= maxSizes {
			r.list = append(r.list, ", "...)
		}
		if first = false; len(r.list) > maxSizes {
			return r.skip()
		}
		return r.dims(depth + 1)
	})
	r.list = append(r.list, ']')
	return err
}

// maxDims is how deep lists of sizes are: those of a list of tensors.
const maxDims = 3

func (r *elements) extents() (list [3]int64, err error) {
	i := 0
	err = r.array(func() error {
		v, err := r.whole(0)
		if i < len(list) {
			list[i] = v
		}
		i++
		return err
	})
	return list, err
}

// nanoseconds is a time that the file states in microseconds, with all its decimals. They are read as text, since a
// double of a moment of today has a resolution of a quarter of a microsecond.
func (r *elements) nanoseconds(def int64) (int64, error) {
	ok, err := r.value()
	if err != nil || !ok {
		return def, err
	}
	if v, decimals, ok := microseconds(r.text); ok {
		r.decimals = max(r.decimals, decimals)
		return v, nil
	}
	return def, nil
}

// microseconds reads a decimal number of microseconds as nanoseconds, rounded half away from zero, and how many
// decimals it has.
func microseconds(text []byte) (ns int64, decimals int, ok bool) {
	if bytes.ContainsAny(text, "eE") {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil || math.Abs(v) > 1<<52 {
			return 0, 0, false
		}
		return int64(math.Round(v * 1000)), 3, true
	}
	number, negative := bytes.CutPrefix(text, []byte{'-'})
	whole, fraction, _ := bytes.Cut(number, []byte{'.'})
	us, err := strconv.ParseUint(string(whole), 10, 64)
	if err != nil || us > math.MaxInt64/2000 {
		return 0, 0, false
	}
	ns = int64(us) * 1000
	for i, scale := 0, int64(100); i < len(fraction); i, scale = i+1, scale/10 {
		c := fraction[i]
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		if scale > 0 {
			ns += int64(c-'0') * scale
		} else if i == 3 && c >= '5' {
			ns++
		}
	}
	if negative {
		ns = -ns
	}
	return ns, len(fraction), true
}

// message is the data of a collective about itself.
type message struct {
	group, ranks string // of the process group: its name, and its ranks as a list in brackets
	size         int64
	bytes        int64 // that one rank sends; -1 unknown
}

// widths are the bytes of an element, by the name of its type in c10 and in torch.
var widths = map[string]int64{"Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1,
	"Byte": 1, "Bool": 1, "ComplexFloat": 8, "ComplexDouble": 16, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1,
	"Float8_e5m2fnuz": 1}

func (a *args) message() (message, bool) {
	if a.collective == "" {
		return message{}, false
	}
	m := message{group: a.group, ranks: a.ranks, size: a.size, bytes: -1}
	if w := widths[a.dtype]; w > 0 && a.elements >= 0 && a.elements < 1<<48 {
		m.bytes = a.elements * w
	}
	return m, true
}

// communicator identifies the process group: the same number in all of its ranks, as far as name and list of ranks
// tell.
func (m *message) communicator() uint64 {
	h := fnv.New64a()
	h.Write([]byte(m.group + "\x00" + m.ranks))
	return h.Sum64() | 1
}

// rank of the program within the group, by its rank in the whole run; -1 unknown.
func (m *message) rank(global int64) int64 {
	for i, text := range strings.Split(strings.Trim(m.ranks, "[] "), ",") {
		if v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && v == global {
			return int64(i)
		}
	}
	return -1
}

// copyKinds are the numbers of CUDA for directions of copies and kinds of memory (CUpti_ActivityMemcpyKind,
// CUpti_ActivityMemoryKind as nsys writes them).
var (
	copyKinds   = map[string]int64{"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
	memoryKinds = map[string]int64{"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4}
)

// copyOf reads a name such as "Memcpy HtoD (Pageable -> Device)". ROCm's tracer says Host, which leaves the kind of
// memory unknown. Unknown is -1.
func copyOf(name string) (kind, from, to int64) {
	rest, ok := strings.CutPrefix(name, "Memcpy ")
	if !ok {
		return -1, -1, -1
	}
	direction, memory, _ := strings.Cut(rest, " ")
	a, b, _ := strings.Cut(strings.Trim(memory, "()"), " -> ")
	number := func(of map[string]int64, word string) int64 {
		if v, ok := of[word]; ok {
			return v
		}
		return -1
	}
	return number(copyKinds, direction), number(memoryKinds, a), number(memoryKinds, b)
}
